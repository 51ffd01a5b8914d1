"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_kernels.ops import extents
from onemodel_kernels.ops.rules import OWN, operator
from onemodel_kernels.ops.spec import Call, Emitter, TensorType, integer, real, text

CHAIN = "One fused multiply-add chain for each output, over k ascending; exact."


def matmul_shape(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    """The shape of numpy's ``a @ b``."""
    if not a or not b:
        raise ShapeError("both inputs need at least 1 axis")
    left = tuple(a) if len(a) > 1 else (1, *a)
    right = tuple(b) if len(b) > 1 else (*b, 1)
    extents.unify(left[-1], right[-2], "the inner extents of {} and {}", tuple(a), tuple(b))
    result = extents.broadcast_shapes(left[:-2], right[:-2])
    if len(a) > 1:
        result = (*result, left[-2])
    if len(b) > 1:
        result = (*result, right[-1])
    return result


def _matmul(call: Call) -> list[TensorType]:
    return [(call.agree(), matmul_shape(call.shape(0), call.shape(1)))]


def _gemm(call: Call) -> list[TensorType]:
    dtype = call.agree()
    a, b = call.shape(0), call.shape(1)
    if len(a) != 2 or len(b) != 2:
        raise ShapeError(f"A and B must have 2 axes, but their shapes are {a} and {b}")
    m, k = (a[1], a[0]) if call["transA"] else a
    k2, n = (b[1], b[0]) if call["transB"] else b
    extents.unify(k, k2, "the inner extents of A and B")
    if call.has(2) and len(call.shape(2)) > 2:
        raise ShapeError(f"C {call.shape(2)} must broadcast to {(m, n)}")
    return [(dtype, (m, n))]


def _linear(call: Call) -> list[TensorType]:
    dtype = call.agree()
    x, w = call.shape(0), call.shape(1)
    if not x or len(w) != 2:
        raise ShapeError(f"x needs at least 1 axis and w needs 2, but their shapes are {x} and {w}")
    extents.unify(x[-1], w[1], "the inner extents of {} and {}", x, w)
    return [(dtype, (*x[:-1], w[0]))]


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[list[str]], list[str]]:
    """The labels of each operand and of the result; an ellipsis becomes the labels ``"0"``, ``"1"``
    …
    """
    text_ = equation.replace(" ", "")
    left, arrow, right = text_.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise AttributeValueError(
            f"the equation {equation!r} has {len(terms)} operands, {len(ranks)} were given"
        )
    wide = 0
    for term, rank in zip(terms, ranks, strict=True):
        if "..." in term:
            wide = max(wide, rank - len(term.replace("...", "")))
    operands = []
    for term, rank in zip(terms, ranks, strict=True):
        own = rank - len(term.replace("...", "")) if "..." in term else 0
        if own < 0 or ("..." not in term and len(term) != rank):
            raise ShapeError(f"{term!r} in {equation!r} does not fit {rank} axes")
        head, _, tail = term.partition("...")
        operands.append([*head, *(str(i) for i in range(wide - own, wide)), *tail])
    every = [label for labels in operands for label in labels]
    if arrow:
        head, dots, tail = right.partition("...")
        result = [*head, *((str(i) for i in range(wide)) if dots else ()), *tail]
    else:
        once = sorted({label for label in every if not label.isdigit() and every.count(label) == 1})
        result = [*(str(i) for i in range(wide)), *once]
    missing = [label for label in result if label not in every]
    if missing:
        raise AttributeValueError(f"{equation!r}: the result names {missing}, which no operand has")
    return operands, result


def _einsum(call: Call) -> list[TensorType]:
    dtype = call.agree()
    shapes = [shape for shape in call.shapes if shape is not None]
    operands, result = parse_equation(call["equation"], [len(s) for s in shapes])
    sizes: dict[str, Any] = {}
    for labels, shape in zip(operands, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            if label not in sizes:
                sizes[label] = extent
            elif label.isdigit():
                sizes[label] = extents.broadcast(sizes[label], extent)
            else:
                known = sizes[label]
                sizes[label] = (
                    extents.broadcast(known, extent)
                    if 1 in (known, extent)
                    else extents.unify(
                        known, extent, f"the extents of {label!r} in {call['equation']!r}"
                    )
                )
    return [(dtype, tuple(sizes[label] for label in result))]


def _diagonal(emit: Emitter, x: Any, labels: list[str]) -> tuple[Any, list[str]]:
    """Takes repeated labels of one operand to their diagonal."""
    for label in list(dict.fromkeys(labels)):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            _dtype, shape = emit.type(x)
            n = shape[first]
            rest = [a for a in range(len(shape)) if a not in (first, second)]
            x = emit.emit("Transpose", x, perm=(*rest, first, second))
            lead = tuple(shape[a] for a in rest)
            x = emit.emit("Reshape", x, shape=(*lead, n * n), allowzero=1)
            picks = emit.constant([i * (n + 1) for i in range(n)], "int64")
            x = emit.emit("Gather", x, picks, axis=len(lead))
            labels = [labels[a] for a in rest] + [label]
    return x, labels


def _sum_away(emit: Emitter, x: Any, labels: list[str], keep: set[str]) -> tuple[Any, list[str]]:
    axes = tuple(a for a, label in enumerate(labels) if label not in keep)
    if axes:
        x = emit.emit("ReduceSum", x, axes=axes, keepdims=0)
        labels = [label for label in labels if label in keep]
    return x, labels


def _contract(emit: Emitter, x: Any, xl: list[str], y: Any, yl: list[str], keep: set[str]) -> Any:
    """One pair: batch labels first, then a MatMul over the labels that both have and nobody needs
    later.
    """
    x, xl = _sum_away(emit, x, xl, keep | set(yl))
    y, yl = _sum_away(emit, y, yl, keep | set(xl))
    _, xs = emit.type(x)
    _, ys = emit.type(y)
    size = dict(zip(yl, ys, strict=True))
    for label, extent in zip(xl, xs, strict=True):
        size[label] = max(extent, size.get(label, extent)) if size.get(label, 1) != 0 else 0
    batch = [label for label in xl if label in yl and label in keep]
    inner = [label for label in xl if label in yl and label not in keep]
    rows = [label for label in xl if label not in yl]
    columns = [label for label in yl if label not in xl]

    def arrange(value: Any, labels: list[str], order: list[str], groups: list[list[str]]) -> Any:
        _, shape = emit.type(value)
        want = tuple(size[label] for label in labels)
        if tuple(shape) != want:
            value = emit.emit("Expand", value, shape=want)
        perm = tuple(labels.index(label) for label in order)
        if perm != tuple(range(len(perm))):
            value = emit.emit("Transpose", value, perm=perm)
        return emit.emit(
            "Reshape",
            value,
            allowzero=1,
            shape=tuple(extents.product(size[g] for g in group) for group in groups),
        )

    left = arrange(x, xl, batch + rows + inner, [batch, rows, inner])
    right = arrange(y, yl, batch + inner + columns, [batch, inner, columns])
    result = emit.emit("MatMul", left, right)
    labels = batch + rows + columns
    return emit.emit(
        "Reshape", result, shape=tuple(size[label] for label in labels), allowzero=1
    ), labels


def _emit_einsum(emit: Emitter, call: Call, inputs: Sequence[Any]) -> Any:
    shapes = [shape for shape in call.shapes if shape is not None]
    operands, result = parse_equation(call["equation"], [len(s) for s in shapes])
    x, labels = _diagonal(emit, inputs[0], operands[0])
    for position in range(1, len(operands)):
        y, other = _diagonal(emit, inputs[position], operands[position])
        later = {label for labels_ in operands[position + 1 :] for label in labels_} | set(result)
        x, labels = _contract(emit, x, labels, y, other, later)
    x, labels = _sum_away(emit, x, labels, set(result))
    perm = tuple(labels.index(label) for label in result)
    if perm != tuple(range(len(perm))):
        x = emit.emit("Transpose", x, perm=perm)
    (_, target), (_, shape) = _einsum(call)[0], emit.type(x)
    return x if tuple(shape) == tuple(target) else emit.emit("Expand", x, shape=tuple(target))


SPECS = [
    operator(
        "MatMul", "A B", "Y", _matmul, since_version=13, determinism=CHAIN, doc="numpy's a @ b."
    ),
    operator(
        "Gemm",
        "A B C?",
        "Y",
        _gemm,
        {"beta": real(1.0), "transB": integer(0), "alpha": real(1.0), "transA": integer(0)},
        since_version=13,
        determinism=CHAIN,
        doc="alpha * op(A) op(B) + beta * C.",
    ),
    operator(
        "Linear",
        "x w b?",
        "y",
        _linear,
        domain=OWN,
        determinism=CHAIN + " It starts from the bias.",
        doc="x wᵀ + b over the leading axes.",
    ),
    operator(
        "Einsum",
        "Inputs*",
        "Output",
        _einsum,
        {"equation": text(required=True)},
        since_version=12,
        decompose=_emit_einsum,
        determinism=CHAIN,
        doc="The sum of products that the equation names.",
    ),
]
