"""Modules, layers, losses, optimisers and a training loop for OneModel, deterministic by seed."""
