"""The backward pass: what it sums, what it frees, what it refuses."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onemodel_tensors as om
from onemodel_kernels.errors import OneModelError, ShapeError, UnsupportedError
from onemodel_tensors.autograd import hooks


def leaf(*values, dtype="float64"):
    return om.tensor(list(values), dtype=dtype, requires_grad=True)


def test_gradients_of_both_uses_are_summed():
    x = leaf(2.0, 3.0)
    y = x * x + 3 * x
    y.backward(om.ones(2, dtype="float64"))
    assert x.grad.tolist() == [7.0, 9.0]


def test_backward_adds_to_what_grad_holds():
    x = leaf(2.0)
    (x * 3).backward()
    (x * 4).backward()
    assert x.grad.tolist() == [7.0]
    x.grad = None
    (x * 4).backward()
    assert x.grad.tolist() == [4.0]


def test_two_leaves_never_share_a_gradient():
    a, b = leaf(1.0), leaf(2.0)
    (a + b).backward()
    a.grad.mul_(5)
    assert b.grad.tolist() == [1.0]


def test_weight_of_the_caller_is_copied():
    a, weight = leaf(1.0, 2.0), om.tensor([1.0, 2.0], dtype="float64")
    (a + 0).backward(weight)
    a.grad.zero_()
    assert weight.tolist() == [1.0, 2.0]


def test_grad_leaves_grad_alone():
    x = leaf(2.0, 3.0)
    (g,) = om.autograd.grad(x * x * x, x, om.ones(2, dtype="float64"))
    assert g.tolist() == [12.0, 27.0]
    assert x.grad is None


def test_grad_of_an_intermediate_result():
    x = leaf(2.0)
    h = x * 3
    y = h * h
    assert om.autograd.grad(y, [h, x])[0].tolist() == [12.0]


def test_grad_names_an_unused_input():
    x, z = leaf(2.0), leaf(1.0)
    y = x * 2
    with pytest.raises(OneModelError, match="input 1"):
        om.autograd.grad(y, [x, z], retain_graph=True)
    assert om.autograd.grad(y, [x, z], allow_unused=True)[1] is None


def test_second_backward_names_the_freed_operator():
    x = leaf(2.0)
    y = x * x
    y.backward()
    with pytest.raises(OneModelError, match=r"backward of Mul.*retain_graph"):
        y.backward()


def test_retain_graph_allows_a_second_pass():
    x = leaf(2.0)
    y = x * x
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [8.0]


def test_create_graph_is_refused():
    x = leaf(2.0)
    with pytest.raises(UnsupportedError, match="create_graph=False"):
        (x * x).backward(create_graph=True)


def test_backward_needs_a_weight_for_more_than_one_element():
    with pytest.raises(ShapeError, match="one element"):
        (leaf(1.0, 2.0) * 2).backward()
    with pytest.raises(ShapeError, match=r"expected a gradient of shape \(2,\)"):
        (leaf(1.0, 2.0) * 2).backward(om.ones(3, dtype="float64"))


def test_backward_needs_a_tensor_with_history():
    with pytest.raises(OneModelError, match="requires a gradient"):
        om.tensor([1.0]).backward()


def test_requires_grad_needs_a_floating_dtype():
    with pytest.raises(OneModelError, match="floating-point"):
        om.tensor([1]).requires_grad_()


def test_detach_stops_the_gradient():
    x = leaf(2.0)
    (x * x.detach()).backward()
    assert x.grad.tolist() == [2.0]


def test_records_are_freed_after_backward():
    x = leaf(2.0, 3.0)
    h = x * x
    kept = weakref.ref(h._array) if hasattr(type(h._array), "__weakref__") else None
    y = h * h
    record = y.grad_fn
    y.backward(om.ones(2, dtype="float64"))
    assert record.released
    assert record.saved == ()
    assert kept is None or kept() is not None


def test_long_chains_need_no_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    gc.collect()


def test_hook_sees_and_replaces_the_gradient():
    x = leaf(2.0)
    seen = []
    h = x * 3
    h.register_hook(lambda g: seen.append(g.tolist()))
    handle = h.register_hook(lambda g: g * 10)
    (h * 2).backward(retain_graph=True)
    assert seen == [[2.0]]
    assert x.grad.tolist() == [60.0]
    handle.remove()


def test_leaf_hook_gets_the_whole_sum():
    x = leaf(2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    (x * x + x).backward()
    assert seen == [[5.0]]


def test_hook_must_keep_the_shape():
    x = leaf(2.0)
    x.register_hook(lambda g: om.ones(3, dtype="float64"))
    with pytest.raises(ShapeError, match="hook"):
        (x * 2).backward()


def test_post_accumulate_hook_sees_grad():
    x = leaf(2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.tolist()))
    (x * 2).backward()
    assert seen == [[2.0]]


def test_retain_grad_keeps_an_intermediate_gradient():
    x = leaf(2.0)
    h = x * 3
    h.retain_grad()
    (h * h).backward()
    assert h.grad.tolist() == [12.0]


def test_saved_tensor_that_was_written_is_an_error():
    x = leaf(2.0, 3.0)
    b = om.tensor([1.0, 2.0], dtype="float64")
    y = x * b
    b.mul_(2)
    with pytest.raises(OneModelError, match=r"backward of Mul.*version"):
        y.backward(om.ones(2, dtype="float64"))


def test_output_that_a_gradient_needs_must_not_be_written():
    x = leaf(0.5, 0.7)
    y = x.exp()
    z = y * 1
    with om.no_grad():
        y.mul_(2)
    with pytest.raises(OneModelError, match="backward of Exp"):
        z.backward(om.ones(2, dtype="float64"))


def test_memory_stays_flat_over_many_steps():
    w = om.from_numpy(np.ones((64, 64), dtype=np.float32)).requires_grad_()
    x = om.from_numpy(np.ones((8, 64), dtype=np.float32))
    counts = []
    for _ in range(3):
        for _ in range(100):
            w.grad = None
            (x @ w).tanh().backward(om.ones(8, 64))
        gc.collect()
        counts.append(len(gc.get_objects()))
    assert counts[2] - counts[1] < 20
    assert w._array.storage_refs == 1


def test_gradcheck_finds_a_wrong_gradient():
    x = leaf(0.3, 0.7)

    def wrong(t):
        return t.detach() * t

    with pytest.raises(OneModelError, match="gradcheck: expected the gradient of output 0"):
        om.gradcheck(wrong, x)
    assert not om.gradcheck(wrong, x, raise_exception=False)


def test_what_a_hook_kept_does_not_change_later():
    x = leaf(2.0)
    kept = []
    x.register_hook(kept.append)
    (x * 3).backward()
    (x * 4).backward()
    assert [g.tolist() for g in kept] == [[3.0], [4.0]]
    assert x.grad.tolist() == [7.0]


def test_retained_gradients_belong_to_tensors_of_any_size():
    x = om.ones(2, 3, requires_grad=True)
    first, second = x * 2, x * 3
    for tensor in (first, second, second):
        tensor.retain_grad()
    (first * second).sum().backward()
    assert first.grad.tolist() == [[3.0] * 3] * 2
    assert second.grad.tolist() == [[2.0] * 3] * 2
    hooks._retained.clear()
    y = x * 2
    y.retain_grad()
    assert len(hooks._retained) == 1
    del y
    assert not hooks._retained


def test_only_the_chosen_leaves_are_added_to():
    x, w = om.ones(2, requires_grad=True), om.ones(2, requires_grad=True)
    y = (x * w).sum()
    y.backward(inputs=[x], retain_graph=True)
    om.autograd.backward([y], grad_tensors=[om.tensor(2.0)], inputs=x)
    assert x.grad.tolist() == [3.0, 3.0]
    assert w.grad is None
    with pytest.raises(om.OneModelError, match="input 0 to be a leaf"):
        (x * w).sum().backward(inputs=[y])


def rectified_twice(x):
    """Records that write over the gradient they are given, one behind the other."""
    first = om.relu(x * 2)
    return first, om.relu(first - 1)


def data(*values):
    return om.tensor(list(values), dtype="float32", requires_grad=True)


def test_records_that_write_over_their_gradient_give_the_same_bits():
    x = data(-1.0, 0.25, 1.0, float("nan"))
    _, y = rectified_twice(x)
    (y * y).sum().backward()
    want = data(-1.0, 0.25, 1.0, float("nan"))
    _, y = rectified_twice(want)
    seen = []
    y.register_hook(lambda g: seen.append(g))  # what a hook saw is not written over
    (y * y).sum().backward()
    assert x.grad.numpy().tobytes() == want.grad.numpy().tobytes()
    assert seen[0].tolist()[:3] == [0.0, 0.0, 2.0]


def test_the_callers_weight_is_not_written_over():
    x, weight = data(-1.0, 1.0), om.tensor([3.0, 4.0], dtype="float32")
    om.relu(x).backward(weight)
    assert weight.tolist() == [3.0, 4.0]
    assert x.grad.tolist() == [0.0, 4.0]


def test_gradients_that_are_asked_for_are_not_written_over():
    x = data(-1.0, 0.25, 1.0)
    first, y = rectified_twice(x)
    of_first, of_y, of_x = om.autograd.grad((y * 3).sum(), (first, y, x))
    assert of_y.tolist() == [3.0, 3.0, 3.0]
    assert of_first.tolist() == [0.0, 0.0, 3.0]
    assert of_x.tolist() == [0.0, 0.0, 6.0]


def test_a_gradient_that_two_inputs_get_is_not_written_over():
    a, b = data(-1.0, 1.0), data(1.0, -1.0)
    (om.relu(a * 1) + om.relu(b * 1)).mul(2).sum().backward()
    assert a.grad.tolist() == [0.0, 2.0]
    assert b.grad.tolist() == [2.0, 0.0]


def test_a_gradient_of_which_two_inputs_get_views_is_not_written_over():
    x = data(-1.0, 1.0, 2.0, -2.0)
    y = om.relu(x * 1).reshape(2, 2) + om.relu(x * -1).reshape(2, 2)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [-3.0, 3.0, 3.0, -3.0]


def test_a_second_pass_through_records_that_write_over_gradients():
    x = data(-1.0, 0.25, 1.0)
    _, y = rectified_twice(x)
    total = (y * y).sum()
    total.backward(retain_graph=True)
    once = x.grad.tolist()
    total.backward()
    assert x.grad.tolist() == [2 * g for g in once]


def test_batch_norm_writes_its_input_gradient_over_the_one_it_is_given():
    draw = np.random.default_rng(0)
    values = draw.standard_normal((3, 2, 4, 4), np.float32)
    results = []
    for kept in (False, True):
        x = om.from_numpy(values).requires_grad_(True)
        y = om.relu(om.functional.batch_norm(x, None, None, training=True))
        if kept:
            y.retain_grad()
        (y * y).sum().backward()
        results.append(x.grad.numpy().tobytes())
    assert results[0] == results[1]


def test_the_result_of_a_rectifier_may_be_written_into():
    x = data(-1.0, 2.0)
    y = om.relu(x)
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0]


def _combine(x, steps):
    """A graph of functions that write over gradients among ones that hand theirs on."""
    nodes = [x]
    for kind, first, second in steps:
        a, b = nodes[first % len(nodes)], nodes[second % len(nodes)]
        match kind:
            case "relu":
                nodes.append(om.relu(a))
            case "norm":
                nodes.append(om.functional.batch_norm(a, None, None, training=True))
            case "add":
                nodes.append(a + b)
            case "mul":
                nodes.append(a * b)
            case "view":
                nodes.append(a.reshape(4, 32).reshape(2, 4, 16))
            case "turn":
                nodes.append(a.transpose(0, 1).contiguous().transpose(0, 1))
            case "pool":
                pooled = om.functional.max_pool1d(a, 2)
                nodes.append(om.cat([pooled, pooled], 2))
            case "expand":
                nodes.append(a.sum(0, keepdim=True).expand(2, 4, 16) * 0.5)
    return nodes


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.lists(
        st.tuples(
            st.sampled_from(["relu", "norm", "add", "mul", "view", "turn", "pool", "expand"]),
            st.integers(0, 9),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=12,
    ),
    st.sets(st.integers(0, 12), max_size=3),
)
def test_writing_over_gradients_changes_none(seed, steps, kept):
    values = np.random.default_rng(seed).standard_normal((2, 4, 16), np.float32)
    weight = om.from_numpy(np.random.default_rng(seed + 1).standard_normal((2, 4, 16), np.float32))

    def gradients():
        x = om.from_numpy(values).requires_grad_(True)
        nodes = _combine(x, steps)
        held = [nodes[i] for i in sorted(kept) if 0 < i < len(nodes) and nodes[i].requires_grad]
        for node in held:
            node.retain_grad()
        (nodes[-1] + nodes[len(nodes) // 2] * 0.25).backward(weight)
        return [t.grad.numpy().tobytes() for t in (x, *held) if t.grad is not None]

    with pytest.MonkeyPatch.context() as patch:
        found = gradients()
        patch.setattr("onemodel_tensors.record._overwriting", set())
        assert found == gradients()
