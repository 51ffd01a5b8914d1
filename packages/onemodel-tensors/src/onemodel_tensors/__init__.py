"""Eager tensors and automatic differentiation over the OneModel kernels."""
