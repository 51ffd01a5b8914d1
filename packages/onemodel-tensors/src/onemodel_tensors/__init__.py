"""Eager tensors and automatic differentiation over the OneModel kernels."""

import onemodel_tensors._interfaces  # noqa: F401  isort: skip
from onemodel_tensors.tensor import Tensor
from onemodel_tensors.interop import as_tensor, asarray, from_dlpack, from_numpy, tensor
