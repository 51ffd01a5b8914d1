"""Convolutions and transposed convolutions of 1 to 3 spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.products import CHAIN
from onemodel_kernels.ops.rules import operator
from onemodel_kernels.ops.spec import Call, Emitter, Shape, TensorType, integer, integers, text
from onemodel_kernels.ops.written import require_writable

TAPS = CHAIN.replace("over k", "from the bias over (channel, kernel position)")


def window_attributes(
    call: Call, kernel: Sequence[int], at: int = 0
) -> tuple[tuple[int, ...], ...]:
    """(strides, dilations, pads) of a convolution or pool with defaults filled in and ``auto_pad``
    resolved.

    ``SAME_*`` needs static spatial extents, since the pads are computed from them.
    """
    n = len(kernel)
    given = call.attributes
    strides = tuple(given.get("strides") or (1,) * n)
    dilations = tuple(given.get("dilations") or (1,) * n)
    pads = tuple(given.get("pads") or (0,) * (2 * n))
    if not len(strides) == len(dilations) == n or len(pads) != 2 * n:
        raise AttributeValueError(
            f"strides {strides}, dilations {dilations} and pads {pads} must fit {n} spatial axes"
        )
    if n and (min(strides) < 1 or min(dilations) < 1):
        raise AttributeValueError(f"strides {strides} and dilations {dilations} must be at least 1")
    mode = given.get("auto_pad") or "NOTSET"
    if mode == "NOTSET":
        return strides, dilations, pads
    if mode == "VALID":
        return strides, dilations, (0,) * (2 * n)
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise AttributeValueError(
            f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not {mode!r}"
        )
    begins, ends = [], []
    for size, k, s, d in zip(call.shape(at)[2:], kernel, strides, dilations, strict=True):
        if extents.is_static(size):
            pad = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
        elif s == 1:
            pad = d * (k - 1)
        else:
            raise ShapeError("auto_pad with a stride needs static spatial extents: write the pads")
        small, large = pad // 2, pad - pad // 2
        begins.append(small if mode == "SAME_UPPER" else large)
        ends.append(large if mode == "SAME_UPPER" else small)
    return strides, dilations, (*begins, *ends)


def _conv_kernel(call: Call, weight: int = 1) -> tuple[int, ...]:
    return _kernel_of(call, call.shape(0), call.shape(weight))


def _kernel_of(call: Call, x: Shape, w: Shape) -> tuple[int, ...]:
    if len(x) < 3 or len(w) != len(x):
        raise ShapeError(
            f"X (N, C, spatial…) and W (M, C/group, kernel…) must agree, but they are {x} and {w}"
        )
    kernel = tuple(w[2:])
    stated = call.attributes.get("kernel_shape")
    if stated is not None and tuple(stated) != kernel:
        raise AttributeValueError(f"kernel_shape {stated} must be the weight's {kernel}")
    return kernel


def conv_type(call: Call, weight: int, bias: int, dtype: str) -> list[TensorType]:
    """The output type of a convolution whose weight and bias are the named tensor inputs."""
    x, w = call.shape(0), call.shape(weight)
    kernel = _kernel_of(call, x, w)
    group = call["group"]
    extents.unify(x[1], w[1] * group, "the channels of X {} and of W {} with group {}", x, w, group)
    if w[0] % group:
        raise ShapeError(f"the {w[0]} output channels must be a multiple of group {group}")
    if call.has(bias):
        extents.unify(call.shape(bias)[0], w[0], "the extent of B and the output channels")
    strides, dilations, pads = window_attributes(call, kernel)
    n = len(kernel)
    sizes = [
        extents.window(x[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[n + i])
        for i in range(n)
    ]
    return [(dtype, (x[0], w[0], *sizes))]


def _conv(call: Call) -> list[TensorType]:
    return conv_type(call, 1, 2, call.agree())


def prepare_conv(call: Call, weight: int = 1) -> dict[str, Any]:
    """The kernel attributes of a convolution: explicit strides, pads, dilations and group."""
    strides, dilations, pads = window_attributes(call, _conv_kernel(call, weight))
    return {"strides": strides, "pads": pads, "dilations": dilations, "group": call["group"]}


def _transposed(call: Call) -> tuple[tuple[int, ...], ...]:
    """(kernel, strides, dilations, pads, output_padding), ``output_shape`` and ``auto_pad``
    resolved.
    """
    kernel = _conv_kernel(call)
    n = len(kernel)
    strides = tuple(call["strides"] or (1,) * n)
    dilations = tuple(call["dilations"] or (1,) * n)
    extra = tuple(call["output_padding"] or (0,) * n)
    pads = tuple(call["pads"] or (0,) * (2 * n))
    mode = call["auto_pad"] or "NOTSET"
    target = call["output_shape"]
    if mode in ("SAME_UPPER", "SAME_LOWER") and target is None:
        target = tuple(
            extents.mul(size, s) for size, s in zip(call.shape()[2:], strides, strict=True)
        )
    if target is not None:
        begins, ends = [], []
        for i, size in enumerate(call.shape()[2:]):
            full = extents.transposed_window(
                size, kernel[i], strides[i], dilations[i], 0, 0, extra[i]
            )
            total = extents.sub(full, tuple(target)[-n:][i])
            if not extents.is_static(total):
                raise ShapeError("output_shape needs static spatial extents: write the pads")
            if total < 0:
                # The asked shape is larger: what is missing is added at the end.
                extra = (*extra[:i], extra[i] - total, *extra[i + 1 :])
                total = 0
            first = total // 2 if mode == "SAME_UPPER" else total - total // 2
            begins.append(first)
            ends.append(total - first)
        pads = (*begins, *ends)
    elif mode == "VALID":
        pads = (0,) * (2 * n)
    return kernel, strides, dilations, pads, extra


def _conv_transpose(call: Call) -> list[TensorType]:
    dtype = call.agree()
    x, w = call.shape(0), call.shape(1)
    kernel, strides, dilations, pads, extra = _transposed(call)
    extents.unify(x[1], w[0], "the channels of X {} and of W {}", x, w)
    n = len(kernel)
    sizes = tuple(
        extents.transposed_window(
            x[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[n + i], extra[i]
        )
        for i in range(n)
    )
    return [(dtype, (x[0], w[1] * call["group"], *sizes))]


def _prepare_conv_transpose(call: Call) -> dict[str, Any]:
    _, strides, dilations, pads, extra = _transposed(call)
    return {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "group": call["group"],
        "output_padding": extra,
    }


def _col2im(call: Call) -> list[TensorType]:
    image, block = tuple(call.static("image_shape")), tuple(call.static("block_shape"))
    n, columns, _ = call.shape()
    return [(call.dtype(), (n, extents.floordiv(columns, extents.product(block)), *image))]


def _emit_col2im(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    """A transposed convolution of the columns with one-hot weights: each column adds its block to
    the image.
    """
    image, block = tuple(call["image_shape"]), tuple(call["block_shape"])
    n = len(image)
    dtype = call.dtype()
    strides = tuple(call["strides"] or (1,) * n)
    dilations = tuple(call["dilations"] or (1,) * n)
    pads = tuple(call["pads"] or (0,) * (2 * n))
    batch, channels, *sizes = _col2im(call)[0][1]
    taps = extents.product(block)
    grid = tuple(
        extents.window(image[i], block[i], strides[i], dilations[i], pads[i], pads[n + i])
        for i in range(n)
    )
    x = emit.emit("Reshape", inputs[0], shape=(batch * channels, taps, *grid), allowzero=1)
    require_writable("blocks of columns", taps, taps)
    eye = [[1.0 if i == j else 0.0 for j in range(taps)] for i in range(taps)]
    w = emit.emit("Reshape", emit.constant(eye, dtype), shape=(taps, 1, *block))
    y = emit.emit("ConvTranspose", x, w, strides=strides, dilations=dilations, pads=pads)
    _, full = emit.type(y)
    missing = tuple(want - have for want, have in zip(sizes, full[2:], strict=True))
    if any(missing):
        y = emit.emit("Pad", y, pads=(0, 0) + (0,) * n + (0, 0, *missing), mode="constant")
    return emit.emit("Reshape", y, shape=(batch, channels, *sizes), allowzero=1)


def _causal(call: Call) -> list[TensorType]:
    dtype = call.agree()
    x, w = call.shape(0), call.shape(1)
    if len(x) != 3 or len(w) != 3:
        raise ShapeError(
            f"input (N, C, L) and weight (C, 1, k) must have 3 axes, but they are {x} and {w}"
        )
    extents.unify(x[1], w[0], "the channels of the input {} and of the weight {}", x, w)
    extents.unify(w[1], 1, "the middle extent of the weight")
    if call["activation"] not in ("none", "silu", "swish"):
        raise AttributeValueError(
            f"activation must be none, silu or swish, but it is {call['activation']!r}"
        )
    past = (x[0], x[1], extents.sub(w[2], 1))
    if call.has(3) and tuple(call.shape(3)) != past:
        raise ShapeError(f"past_state must have the shape {past}, but it has {call.shape(3)}")
    return [(dtype, x), (dtype, past)]


def _emit_causal(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    x, w, bias, past = (*inputs, None, None)[:4]
    _, (_, shape) = _causal(call)
    taps = shape[2]
    if past is not None:
        x = emit.emit("Concat", past, x, axis=2)
    elif taps:
        x = emit.emit("Pad", x, pads=(0, 0, taps, 0, 0, 0), mode="constant")
    y = emit.emit("Conv", x, w, bias, group=call.shape(1)[0])
    if call["activation"] != "none":
        y = emit.emit("Silu", y)
    total = emit.type(x)[1][2]
    present = emit.emit("Slice", x, starts=(total - taps,), ends=(total,), axes=(2,))
    return y, present


WINDOW = {
    "group": integer(1),
    "pads": integers(),
    "auto_pad": text("NOTSET"),
    "strides": integers(),
    "dilations": integers(),
    "kernel_shape": integers(),
}
SPECS = [
    operator(
        "Conv",
        "X W B?",
        "Y",
        _conv,
        WINDOW,
        since_version=11,
        prepare=prepare_conv,
        determinism=TAPS,
        doc="The correlation of X with W, plus B.",
    ),
    operator(
        "ConvTranspose",
        "X W B?",
        "Y",
        _conv_transpose,
        {**WINDOW, "output_padding": integers(), "output_shape": integers()},
        since_version=11,
        prepare=_prepare_conv_transpose,
        determinism=TAPS,
        doc="The gradient of Conv with respect to its input.",
    ),
    operator(
        "Col2Im",
        "input @image_shape @block_shape",
        "output",
        _col2im,
        {"strides": integers(), "pads": integers(), "dilations": integers()},
        since_version=18,
        decompose=_emit_col2im,
        determinism=TAPS,
        doc="Columns of blocks added up into an image.",
    ),
    operator(
        "CausalConvWithState",
        "input weight bias? past_state?",
        "output present_state",
        _causal,
        {"activation": text("none")},
        since_version=27,
        decompose=_emit_causal,
        determinism=TAPS,
        doc="A depthwise convolution over this and the k - 1 steps before, which the state carries.",
    ),
]
