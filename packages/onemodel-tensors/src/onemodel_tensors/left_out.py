"""Names that PyTorch users may look for and that this library does not have, and what to use instead.

Looking one up raises an AttributeError that says so; ``hasattr`` is false.
"""

from __future__ import annotations

from onemodel_kernels.errors import UnsupportedError

__all__ = ["LeftOutError", "missing"]


class LeftOutError(UnsupportedError, AttributeError):
    """An operator of other libraries that is not offered here."""


_COMPLEX = "there is no complex dtype"
_TABLE = {
    "as_strided": "use slices, unfold or expand",
    "bucketize": "compare with the boundaries and sum: (x.unsqueeze(-1) > boundaries).sum(-1)",
    "complex": _COMPLEX,
    "cummax": "use cumsum or a loop with maximum",
    "cummin": "use cumsum or a loop with minimum",
    "cuda": "there is no device but the CPU",
    "digamma": "",
    "erfinv": "",
    "fft": _COMPLEX,
    "fractional_max_pool2d": "use max_pool2d or adaptive_max_pool2d",
    "histc": "use bincount of the bins' numbers",
    "histogram": "use bincount of the bins' numbers",
    "imag": _COMPLEX,
    "istft": _COMPLEX,
    "jit": "NnModule.trace records a model as a graph",
    "kron": "use einsum and reshape",
    "kthvalue": "use sort or topk",
    "lgamma": "",
    "linalg": "norms are vector_norm and norm; there are no decompositions",
    "masked_scatter": "use index_put, or where",
    "masked_scatter_": "use index_put_, or where",
    "max_unpool2d": "use scatter with the indices of max_pool2d",
    "mode": "use unique or bincount",
    "nanmedian": "select the numbers first, then median",
    "polygamma": "",
    "put_": "use index_put_ on reshape(-1)",
    "quantile": "use sort and lerp between two positions",
    "resize_": "make a new tensor",
    "searchsorted": "compare with the boundaries and sum: (x.unsqueeze(-1) > boundaries).sum(-1)",
    "set_": "make a new tensor, or assign to .data",
    "sparse": "tensors are dense",
    "stft": _COMPLEX,
    "to_sparse": "tensors are dense",
    "view_as_complex": _COMPLEX,
    "view_as_real": _COMPLEX,
    "vmap": "operators broadcast over leading axes",
}


def missing(name: str, where: str) -> AttributeError:
    """The error for a name that was looked up in ``where`` and is not there."""
    if name not in _TABLE:
        return AttributeError(f"{where} has no attribute {name!r}")
    hint = _TABLE[name]
    return LeftOutError(f"{name}: not offered by {where}" + (f"; {hint}" if hint else ""))
