"""Passes over graphs: each in a file of its own, run by a pipeline."""

from onemodel_graph.passes.pipeline import optimise

__all__ = ["optimise"]
