"""The order in which the axes of a tensor are stored, and how it passes through an operator.

An order is a permutation: a value ``v`` stored in the order ``p`` is held as a tensor ``w`` with
``v = Transpose(w, perm=p)``, so that axis ``a`` of ``v`` is axis ``p[a]`` of ``w``.
"""

from __future__ import annotations

from dataclasses import dataclass

from onemodel_graph.ir import Node
from onemodel_kernels import Array

Order = tuple[int, ...]


def identity(rank: int) -> Order:
    """The order in which nothing moves."""
    return tuple(range(rank))


def inverse(order: Order) -> Order:
    """The permutation that undoes one."""
    return tuple(order.index(axis) for axis in range(len(order)))


def permutation(node: Node | None) -> Order | None:
    """The permutation of a Transpose that states one."""
    if node is None or node.operator != "Transpose" or node.domain:
        return None
    found = node.attributes.get("perm")
    if found is None or sorted(found) != list(range(len(found))):
        return None
    return tuple(found)


def stored(array: Array, order: Order) -> Array:
    """A constant, with axes added in front up to the rank of an order, held in that order."""
    wide = array.view_or_copy((1,) * (len(order) - array.ndim) + tuple(array.shape))
    return wide.permute(inverse(order)).contiguous()


@dataclass(frozen=True, slots=True)
class Step:
    """How the axes of a node's results follow from those of its inputs.

    Attributes:
        inputs: Positions of the inputs whose axes take part.
        removed: Axes of the input that the result does not have.
        added: Axes of the result that the input does not have.
    """

    inputs: tuple[int, ...] = (0,)
    removed: tuple[int, ...] = ()
    added: tuple[int, ...] = ()

    @property
    def grow(self) -> int:
        """How many axes more the result has."""
        return len(self.added) - len(self.removed)

    def after(self, order: Order) -> Order:
        """The order of the result for inputs in an order."""
        if self.removed:
            left = [order[a] for a in range(len(order)) if a not in self.removed]
            return tuple(sorted(left).index(axis) for axis in left)
        if not self.added:
            return order
        # New axes keep their places; the others fill the rest in the order of the input.
        places = [a for a in range(len(order) + len(self.added)) if a not in self.added]
        rest = iter(order)
        return tuple(
            a if a in self.added else places[next(rest)]
            for a in range(len(places) + len(self.added))
        )

    def before(self, order: Order) -> Order:
        """The order of the inputs for a result in an order."""
        return Step(self.inputs, self.added, self.removed).after(order)
