"""Sums of products in Einstein's notation."""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors.ops.arithmetic import mul
from onemodel_tensors.ops.permuting import permute
from onemodel_tensors.ops.products import matmul
from onemodel_tensors.ops.reductions import sum
from onemodel_tensors.ops.slicing import diagonal
from onemodel_tensors.tensor import Tensor

__all__ = ["einsum"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FIRST_OF_ELLIPSIS = 1000

Labels = list[int]
"""The label of each axis: a letter's code, or a number for an axis of the ellipsis."""


def einsum(equation: str, *operands: Any) -> Tensor:
    """The sum over all axes whose label the output lacks of the products of the operands' elements.

    Operands are contracted from left to right, each pair by one matrix product.

    Args:
        equation: labels of the operands' axes and of the output's, as ``"bij,bjk->bik"``. Without ``->`` the output has
            the labels that occur once, in alphabetical order. ``...`` stands for axes that broadcast.
        operands: tensors of one dtype; also a list of them.

    Raises:
        AttributeValueError: the equation has no sense.
        ShapeError: a label has two extents, or an operand another number of axes.
    """
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    inputs, output = _parsed(equation, operands)
    _check_extents(equation, inputs, operands)
    tensors: list[tuple[Tensor, Labels]] = [
        _without_repeats(t, labels) for t, labels in zip(operands, inputs)
    ]
    current, labels = tensors[0]
    for position, (other, others) in enumerate(tensors[1:], 1):
        later = {label for _, rest in tensors[position + 1 :] for label in rest} | set(output)
        current, labels = _contracted(current, labels, other, others, later)
    gone = tuple([axis for axis, label in enumerate(labels) if label not in output])
    if gone:
        current = sum(current, gone)
        labels = [label for label in labels if label in output]
    order = tuple([labels.index(label) for label in output])
    return current if order == tuple(range(len(order))) else permute(current, order)


def _labels(term: str, rank: int, equation: str) -> Labels:
    before, dots, after = term.partition("...")
    letters = before + after
    if any(c not in _LETTERS for c in letters):
        raise AttributeValueError(
            f"einsum: expected letters and '...', got {term!r} in {equation!r}"
        )
    missing = rank - len(letters)
    if missing < 0 or (missing and not dots):
        raise ShapeError(
            f"einsum: expected an operand of {len(letters)} axes for {term!r}, got one of {rank}"
        )
    # Axes of the ellipsis are aligned at the last one.
    middle = [_FIRST_OF_ELLIPSIS - distance for distance in range(missing, 0, -1)]
    return [*map(ord, before), *middle, *map(ord, after)]


def _parsed(equation: str, operands: tuple[Tensor, ...]) -> tuple[list[Labels], Labels]:
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise AttributeValueError(
            f"einsum: expected one operand for each of the {len(terms)} terms of {equation!r}, got {len(operands)}"
        )
    inputs = [_labels(term, t._array.ndim, equation) for term, t in zip(terms, operands)]
    used = [label for labels in inputs for label in labels]
    dots = sorted({label for label in used if label > 255})
    if not arrow:
        once = sorted(label for label in set(used) if label <= 255 and used.count(label) == 1)
        return inputs, [*dots, *once]
    before, ellipsis, after = right.partition("...")
    output = [*map(ord, before), *(dots if ellipsis else []), *map(ord, after)]
    if len(set(output)) != len(output) or any(label not in used for label in output):
        raise AttributeValueError(
            f"einsum: expected output labels that occur once and in an operand, got {right!r} in {equation!r}"
        )
    return inputs, output


def _check_extents(equation: str, inputs: list[Labels], operands: tuple[Tensor, ...]) -> None:
    extents: dict[int, int] = {}
    for labels, tensor in zip(inputs, operands):
        for label, extent in zip(labels, tensor._array.shape):
            known = extents.get(label, 1)
            if known not in (1, extent) and extent != 1:
                name = chr(label) if label <= 255 else "..."
                raise ShapeError(
                    f"einsum: expected one extent for {name!r} in {equation!r}, got {known} and {extent}"
                )
            extents[label] = extent if known == 1 else known


def _without_repeats(tensor: Tensor, labels: Labels) -> tuple[Tensor, Labels]:
    """The diagonal of axes that bear one label."""
    labels = list(labels)
    for label in labels:
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = diagonal(tensor, 0, first, second)
            labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label]
    return tensor, labels


def _contracted(
    a: Tensor, in_a: Labels, b: Tensor, in_b: Labels, later: set[int]
) -> tuple[Tensor, Labels]:
    """One pair: labels that both have and nobody needs later are summed by a matrix product."""
    a, in_a = _summed(a, in_a, set(in_b) | later)
    b, in_b = _summed(b, in_b, set(in_a) | later)
    joint = [
        label
        for label in in_a
        if label in in_b
        and label not in later
        and a._array.shape[in_a.index(label)] == b._array.shape[in_b.index(label)]
    ]
    batch = [label for label in in_a if label in in_b and label not in joint]
    only_a = [label for label in in_a if label not in in_b]
    only_b = [label for label in in_b if label not in in_a]
    if not joint:
        left = permute(a, tuple([in_a.index(n) for n in (*batch, *only_a)]))
        right = permute(b, tuple([in_b.index(n) for n in (*batch, *only_b)]))
        for _ in only_b:
            left = left.unsqueeze(-1)
        for _ in only_a:
            right = right.unsqueeze(len(batch))
        product = mul(left, right)
        return _summed(product, [*batch, *only_a, *only_b], later)
    left = permute(a, tuple([in_a.index(n) for n in (*batch, *only_a, *joint)]))
    right = permute(b, tuple([in_b.index(n) for n in (*batch, *joint, *only_b)]))
    count = len(batch)
    shape_a, shape_b = left.shape, right.shape
    rows, columns = shape_a[count : count + len(only_a)], shape_b[count + len(joint) :]
    left = _grouped(left, shape_a[:count], rows, shape_a[count + len(only_a) :])
    right = _grouped(right, shape_b[:count], shape_b[count : count + len(joint)], columns)
    product = matmul(left, right)
    if len(only_a) != 1 or len(only_b) != 1:
        product = product.reshape(*product.shape[:count], *rows, *columns)
    return _summed(product, [*batch, *only_a, *only_b], later)


def _grouped(
    tensor: Tensor, batch: tuple[int, ...], first: tuple[int, ...], last: tuple[int, ...]
) -> Tensor:
    if len(first) == 1 and len(last) == 1:
        return tensor
    return tensor.reshape(*batch, _product(first), _product(last))


def _product(extents: tuple[int, ...]) -> int:
    result = 1
    for extent in extents:
        result = result * extent
    return result


def _summed(tensor: Tensor, labels: Labels, kept: set[int]) -> tuple[Tensor, Labels]:
    gone = tuple([axis for axis, label in enumerate(labels) if label not in kept])
    if not gone:
        return tensor, labels
    return sum(tensor, gone), [label for label in labels if label in kept]
