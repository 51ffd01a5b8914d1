"""The backward pass: records in reverse order of a topological sort, gradients summed where paths meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import OneModelError, ShapeError, UnsupportedError
from onemodel_tensors import recording
from onemodel_tensors.autograd.hooks import run_hooks
from onemodel_tensors.autograd.nodes import Leaf, Node, Output
from onemodel_tensors.record import BackwardRecord, Gradients

if TYPE_CHECKING:
    from onemodel_tensors.tensor import Tensor

__all__ = ["backward", "grad"]

_ADD = Kernel("Add")
_Key = tuple[int, int]


def backward(
    tensors: Sequence[Tensor] | Tensor,
    grad_tensors: Sequence[Tensor | None] | Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Tensor] | Tensor | None = None,
) -> None:
    """Add, to the ``grad`` of every leaf that the tensors depend on, the gradient of their weighted sum.

    Args:
        tensors: results of recorded operators.
        grad_tensors: one weight tensor for each, of its shape; ``None`` stands for 1 and needs a tensor of one element.
        retain_graph: keep the records, so that a second pass can go through them.
        create_graph: must be false: gradients are computed on arrays and have no gradients themselves.
        inputs: the leaves to add to; all if ``None``.

    Raises:
        OneModelError: a tensor requires no gradient, a record was released by an earlier pass, or a tensor that a
            gradient needs was written in place since.
        ShapeError: a weight has another shape.
        UnsupportedError: ``create_graph`` is true.

    Determinism: gradients are summed in an order given by the graph alone.
    """
    roots, weights = _roots("backward", tensors, grad_tensors, create_graph)
    chosen = None
    if inputs is not None:
        from onemodel_tensors.tensor import Tensor

        chosen = set()
        for position, leaf in enumerate((inputs,) if isinstance(inputs, Tensor) else inputs):
            if not isinstance(leaf._node, Leaf):
                raise OneModelError(
                    f"backward: expected input {position} to be a leaf that requires a gradient; grad() gives the "
                    "gradients of other tensors"
                )
            chosen.add(id(leaf._node))
    _run(roots, weights, bool(retain_graph), None, chosen)


def grad(
    outputs: Sequence[Tensor] | Tensor,
    inputs: Sequence[Tensor] | Tensor,
    grad_outputs: Sequence[Tensor | None] | Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of the weighted sum of ``outputs`` with respect to ``inputs``; no ``grad`` is touched.

    Args:
        outputs: results of recorded operators.
        inputs: leaves or intermediate results that they depend on.
        grad_outputs: one weight tensor for each output; ``None`` stands for one and needs an output of one element.
        retain_graph: keep the records for a second pass.
        create_graph: must be false.
        allow_unused: give ``None`` for an input that the outputs do not depend on, instead of raising.

    Returns:
        One tensor for each input, of its shape and dtype.

    Raises:
        OneModelError: as :func:`backward`; an input requires no gradient; an input is not used.
    """
    from onemodel_tensors.tensor import Tensor

    wanted = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    for position, tensor in enumerate(wanted):
        if tensor._node is None:
            raise OneModelError(
                f"grad: expected input {position} to require a gradient; call requires_grad_() first"
            )
    roots, weights = _roots("grad", outputs, grad_outputs, create_graph)
    keys = [_key(tensor._node) for tensor in wanted if tensor._node is not None]
    found = _run(
        roots, weights, bool(retain_graph), {key: tensor._node for key, tensor in zip(keys, wanted)}
    )
    results: list[Tensor | None] = []
    shared = {id(weight) for weight in weights}
    for position, key in enumerate(keys):
        array = found.get(key)
        if array is None and not allow_unused:
            raise OneModelError(
                f"grad: expected the outputs to depend on input {position}, but they do not; "
                "allow_unused=True gives None for it"
            )
        if array is None:
            results.append(None)
            continue
        if id(array) in shared or array.storage_refs > 1:
            array = array.copy()
        shared.add(id(array))
        results.append(Tensor(array))
    return tuple(results)


def _roots(
    what: str,
    tensors: Sequence[Tensor] | Tensor,
    gradients: Sequence[Tensor | None] | Tensor | None,
    create_graph: bool,
) -> tuple[list[Node], list[Array]]:
    from onemodel_tensors.tensor import Tensor

    if recording.active:
        recorder = recording.active_recorder()
        if recorder is not None:
            recorder.before_backward(f"{what}()")
    if create_graph:
        raise UnsupportedError(
            f"{what}: expected create_graph=False: gradients are computed on arrays and cannot be differentiated again"
        )
    listed = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
    given = (gradients,) if isinstance(gradients, Tensor) or gradients is None else tuple(gradients)
    if gradients is None:
        given = (None,) * len(listed)
    if len(given) != len(listed):
        raise ShapeError(
            f"{what}: expected one gradient for each of {len(listed)} tensors, got {len(given)}"
        )
    nodes: list[Node] = []
    weights: list[Array] = []
    for tensor, weight in zip(listed, given):
        array = tensor._array
        if tensor._node is None:
            raise OneModelError(
                f"{what}: expected a tensor that requires a gradient, got one of shape {array.shape} that does not "
                "depend on any tensor with requires_grad, or was computed under no_grad"
            )
        if weight is None:
            if array.size != 1:
                raise ShapeError(
                    f"{what}: expected a tensor of one element when no gradient is given, got shape {array.shape}; "
                    "sum() it, or pass a gradient of its shape"
                )
            weights.append(Array.full(array.shape, 1, array.dtype))
        else:
            if weight._array.shape != array.shape or weight.dtype != array.dtype:
                raise ShapeError(
                    f"{what}: expected a gradient of shape {array.shape} and dtype {array.dtype}, "
                    f"got {weight._array.shape} and {weight.dtype}"
                )
            weights.append(weight._array)
        nodes.append(tensor._node)
    return nodes, weights


def _key(node: Node) -> _Key:
    return (id(node.record), node.index) if isinstance(node, Output) else (id(node), 0)


def _order(roots: Sequence[Node]) -> list[BackwardRecord]:
    """All records below the roots, each after every record that its inputs come from."""
    order: list[BackwardRecord] = []
    seen: set[int] = set()
    for root in roots:
        if isinstance(root, Leaf):
            continue
        first = root.record if isinstance(root, Output) else root
        if id(first) in seen:
            continue
        seen.add(id(first))
        stack = [(first, iter(first.edges))]
        while stack:
            record, edges = stack[-1]
            for edge in edges:
                if edge is None or isinstance(edge, Leaf):
                    continue
                below = edge.record if isinstance(edge, Output) else edge
                if id(below) not in seen:
                    seen.add(id(below))
                    stack.append((below, iter(below.edges)))
                    break
            else:
                order.append(record)
                stack.pop()
    return order


def _run(
    roots: list[Node],
    weights: list[Array],
    retain_graph: bool,
    wanted: dict[_Key, Node | None] | None,
    chosen: set[int] | None = None,
) -> dict[_Key, Array]:
    """The pass itself. With ``wanted`` the gradients of those nodes are returned, else (chosen) leaves accumulate."""
    order = _order(roots)
    pending: dict[_Key, Array] = {}
    owned: set[_Key] = set()
    leaves: dict[int, Leaf] = {}
    found: dict[_Key, Array] = {}

    def receive(node: Node, gradient: Array) -> None:
        key = _key(node)
        if isinstance(node, Leaf):
            leaves[id(node)] = node
        before = pending.get(key)
        if before is None:
            pending[key] = gradient
        elif key in owned:
            _ADD.run_into([before], [before, gradient])
        else:
            pending[key] = _ADD(before, gradient)
            owned.add(key)

    for node, weight in zip(roots, weights):
        receive(node, weight)
    for record in reversed(order):
        identity = id(record)
        outputs: list[Array | None] = [
            pending.pop((identity, index), None) for index in range(record.outputs)
        ]
        if all(gradient is None for gradient in outputs):
            continue
        if record.hooks is not None:
            for index, hooks in record.hooks.items():
                gradient = outputs[index]
                if gradient is not None:
                    outputs[index] = run_hooks(hooks, gradient)
        if wanted is not None:
            for index, gradient in enumerate(outputs):
                if gradient is not None and (identity, index) in wanted:
                    found[identity, index] = gradient
        if record.gradient is None:
            raise OneModelError(
                f"backward of {record.operator}: expected a graph that still exists, but an earlier backward pass "
                "freed it; pass retain_graph=True to that one, or run the forward pass again"
            )
        record.check_versions()
        if record.overwrites:
            record.owns_gradient = (
                (identity, 0) in owned
                and record.hooks is None
                and (wanted is None or (identity, 0) not in wanted)
            )
        gradients = record.gradient(record, *outputs)
        edges = record.edges
        if not retain_graph:
            record.release()
        for edge, below in zip(edges, gradients):
            if edge is not None and below is not None:
                key = _key(edge)
                if (
                    (type(edge) is Leaf or (type(edge) is BackwardRecord and edge.overwrites))
                    and key not in pending
                    and _is_private(below, outputs, gradients, record.owns_gradient)
                ):
                    owned.add(key)
                receive(edge, below)
    for identity, leaf in leaves.items():
        key = (identity, 0)
        total = pending.pop(key)
        if leaf.hooks:
            total = run_hooks(leaf.hooks, total)
            owned.discard(key)  # a hook may keep what it saw
        if wanted is None:
            if chosen is not None and identity not in chosen:
                continue
            _accumulate(leaf, total, key in owned)
        elif key in wanted:
            found[key] = total
    return found


def _is_private(
    gradient: Array, outputs: list[Array | None], gradients: Gradients, owns_outputs: bool
) -> bool:
    """Whether nobody else can hold an array that a gradient function returned."""
    return (
        gradient.storage_refs == 1
        and gradient.is_contiguous
        and (owns_outputs or all(gradient is not other for other in outputs))
        and [other is gradient for other in gradients].count(True) == 1
    )


def _accumulate(leaf: Leaf, gradient: Array, owned: bool) -> None:
    from onemodel_tensors.tensor import Tensor

    if leaf.grad is None:
        # A gradient may be shared: with another leaf, with a caller's weight, or as a view of a larger one.
        leaf.grad = Tensor(gradient if owned else gradient.copy())
    else:
        present = leaf.grad._array
        if present.is_contiguous and not present.read_only:
            _ADD.run_into([present], [present, gradient])
        else:
            leaf.grad._array = _ADD(present, gradient)
    if leaf.after:
        for call in tuple(leaf.after.values()):
            call()
