"""The methods with a trailing underscore, and the augmented assignments: each the in-place form of one operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onemodel_tensors.ops import (
    activations, arithmetic, cumulative, division, indexing, logical, mathematics, powers, scattering, selection,
    triangles,
)
from onemodel_tensors.ops.in_place import in_place
from onemodel_tensors.tensor import Tensor, method

__all__ = ["IN_PLACE"]

IN_PLACE: dict[str, Callable[..., Tensor]] = {
    **{
        f"{name}_": getattr(mathematics, name)
        for name in (
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "expm1",
            "floor", "frac", "log", "log10", "log1p", "log2", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin",
            "sinh", "sqrt", "square", "tan", "tanh", "trunc",
        )
    },
    "add_": arithmetic.add,
    "sub_": arithmetic.sub,
    "mul_": arithmetic.mul,
    "div_": arithmetic.div,
    "neg_": arithmetic.neg,
    "addcmul_": arithmetic.addcmul,
    "addcdiv_": arithmetic.addcdiv,
    "lerp_": arithmetic.lerp,
    "pow_": powers.pow,
    "fmod_": division.fmod,
    "remainder_": division.remainder,
    "floor_divide_": division.floor_divide,
    "clamp_": selection.clamp,
    "clip_": selection.clamp,
    "clamp_min_": selection.clamp_min,
    "clamp_max_": selection.clamp_max,
    "masked_fill_": selection.masked_fill,
    "nan_to_num_": selection.nan_to_num,
    "relu_": activations.relu,
    "logical_not_": logical.logical_not,
    "bitwise_and_": logical.bitwise_and,
    "bitwise_or_": logical.bitwise_or,
    "bitwise_xor_": logical.bitwise_xor,
    "cumsum_": cumulative.cumsum,
    "tril_": triangles.tril,
    "triu_": triangles.triu,
    "scatter_": scattering.scatter,
    "scatter_add_": scattering.scatter_add,
    "index_add_": scattering.index_add,
    "index_fill_": scattering.index_fill,
    "index_copy_": scattering.index_copy,
    "index_put_": indexing.index_put,
}
"""The operator behind each in-place method."""

_AUGMENTED = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}


def _in_place_form(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    what = f"{name}()"

    def form(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return in_place(input, what, lambda x: function(x, *args, **kwargs))

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"The tensor becomes the result of ``{function.__name__}`` with it, and is returned."
    return form


for _name, _function in IN_PLACE.items():
    method(_name)(_in_place_form(_name, _function))
for _name, _form in _AUGMENTED.items():
    method(_name)(getattr(Tensor, _form))
