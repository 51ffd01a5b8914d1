"""What single layers promise beyond their shapes, gradients and traces."""

from __future__ import annotations

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_training import (
    GRU,
    LSTM,
    BatchNorm1d,
    BatchNorm2d,
    Conv2d,
    ConvTranspose2d,
    Dropout,
    Embedding,
    GroupNorm,
    Linear,
    MultiheadAttention,
    TransformerEncoderLayer,
    Upsample,
    layers,
    manual_seed,
    nn,
)


def test_batch_norm_moves_its_statistics() -> None:
    norm = BatchNorm1d(2, momentum=0.25)
    x = om.tensor([[1.0, 2.0], [3.0, 6.0]])
    y = norm(x)
    np.testing.assert_allclose(y.detach().numpy(), [[-1, -1], [1, 1]], rtol=1e-5)
    assert norm.running_mean.tolist() == [0.5, 1.0]
    assert norm.running_var.tolist() == [0.75 + 0.25 * 2.0, 0.75 + 0.25 * 8.0]
    assert norm.num_batches_tracked.item() == 1
    plain = BatchNorm1d(2, momentum=None)
    for scale in (1.0, 3.0):
        plain(x * scale)
    np.testing.assert_allclose(plain.running_mean.numpy(), [4.0, 8.0], rtol=1e-6)
    own = BatchNorm2d(1, track_running_stats=False).eval()
    assert list(own.state_dict()) == ["weight", "bias"]
    assert abs(own(om.rand(2, 1, 4, 4)).mean().item()) < 1e-6


def test_dropout_scales_what_it_keeps() -> None:
    manual_seed(3)
    out = Dropout(0.25)(om.ones(10_000))
    kept = out.numpy()
    assert set(np.unique(kept)) == {np.float32(0.0), np.float32(1 / 0.75)}
    assert abs((kept == 0).mean() - 0.25) < 0.02
    manual_seed(3)
    assert Dropout(0.25)(om.ones(10_000)).tolist() == out.tolist()
    channels = layers.Dropout2d(0.5)(om.ones(4, 50, 2, 2)).numpy()
    assert ((channels == channels[:, :, :1, :1]).all()) and (channels == 0).any()
    x = om.ones(3)
    assert Dropout(0.0)(x) is x
    assert Dropout(0.9).eval()(x) is x


def test_recurrent_lengths_stop_each_sequence() -> None:
    manual_seed(0)
    for layer in (LSTM(3, 4, 2, bidirectional=True), GRU(3, 4, 2, bidirectional=True)):
        x = om.randn(6, 2, 3)
        out, state = layer(x, lengths=om.tensor([4, 6]))
        alone, last = layer(x[:4, :1])
        states = state if isinstance(state, tuple) else (state,)
        lasts = last if isinstance(last, tuple) else (last,)
        assert out[:4, :1].tolist() == alone.tolist()
        assert not np.any(out[4:, 0].detach().numpy())
        for one, other in zip(states, lasts):
            assert one[:, :1].tolist() == other.tolist()


def test_recurrent_initial_states_and_errors() -> None:
    layer = LSTM(3, 4, bidirectional=True)
    state = (om.ones(2, 5, 4), om.zeros(2, 5, 4))
    out, (h, c) = layer(om.zeros(1, 5, 3), state)
    assert out.shape == (1, 5, 8)
    assert h.shape == c.shape == (2, 5, 4)
    with pytest.raises(ShapeError, match=r"expected c of shape \(2, 5, 4\)"):
        layer(om.zeros(1, 5, 3), (state[0], om.zeros(1, 5, 4)))
    with pytest.raises(ShapeError, match=r"input_size 3, got \(1, 5, 2\)"):
        layer(om.zeros(1, 5, 2))


def test_attention_masks() -> None:
    manual_seed(2)
    attention = MultiheadAttention(8, 2, batch_first=True).eval()
    x = om.randn(2, 5, 8)
    causal = om.ones(5, 5).triu(1).to("bool")
    full, weights = attention(x, x, x, attn_mask=causal)
    assert weights.shape == (2, 5, 5)
    np.testing.assert_allclose(weights.detach().numpy().sum(-1), 1.0, rtol=1e-5)
    assert not np.any(np.triu(weights.detach().numpy()[0], 1))
    for options in ({"attn_mask": causal}, {"is_causal": True}):
        fast, none = attention(x, x, x, need_weights=False, **options)
        assert none is None
        np.testing.assert_allclose(fast.detach().numpy(), full.detach().numpy(), atol=1e-6)
    padding = om.tensor([[False] * 5, [False, False, True, True, True]])
    padded, _ = attention(x, x, x, key_padding_mask=padding, need_weights=False)
    short, _ = attention(x[1:, :2], x[1:, :2], x[1:, :2], need_weights=False)
    np.testing.assert_allclose(padded[1, :2].detach().numpy(), short[0].detach().numpy(), atol=1e-6)
    single, _ = attention(x[0], x[0], x[0])
    np.testing.assert_allclose(
        single.detach().numpy(), attention(x, x, x)[0][0].detach().numpy(), atol=1e-6
    )
    other = MultiheadAttention(8, 2, kdim=3, vdim=5)
    assert sorted(other.state_dict()) == [
        "in_proj_bias", "k_proj_weight", "out_proj.bias", "out_proj.weight", "q_proj_weight",
        "v_proj_weight",
    ]  # fmt: skip
    assert other(om.ones(2, 1, 8), om.ones(4, 1, 3), om.ones(4, 1, 5))[0].shape == (2, 1, 8)


def test_state_dict_keys_of_composite_layers() -> None:
    assert list(TransformerEncoderLayer(4, 2, 8).state_dict()) == [
        "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
        "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight",
        "linear2.bias", "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias",
    ]  # fmt: skip
    assert list(LSTM(2, 3, bidirectional=True).state_dict()) == [
        "weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l0_reverse",
        "weight_hh_l0_reverse", "bias_ih_l0_reverse", "bias_hh_l0_reverse",
    ]  # fmt: skip


def test_embedding_padding_gets_no_gradient() -> None:
    table = Embedding(4, 2, padding_idx=-1)
    table(om.tensor([3, 1, 3])).sum().backward()
    assert table.weight.grad.tolist() == [[0, 0], [1, 1], [0, 0], [0, 0]]
    frozen = Embedding.from_pretrained(om.ones(3, 2))
    assert not frozen.weight.requires_grad


def test_transposed_convolution_to_a_size() -> None:
    layer = ConvTranspose2d(1, 1, 3, stride=2, padding=1)
    assert layer(om.ones(1, 1, 4, 4), output_size=(8, 7)).shape == (1, 1, 8, 7)
    with pytest.raises(AttributeValueError, match="from 7 to 8, got 9"):
        layer(om.ones(1, 1, 4, 4), output_size=(9, 7))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Conv2d(3, 4, 3, groups=2), "groups that divide 3 and 4"),
        (lambda: Conv2d(2, 4, 3, stride=2, padding="same"), "needs stride 1"),
        (lambda: Conv2d(2, 4, (3, 3, 3)), "an int or 2 ints"),
        (lambda: Conv2d(2, 4, 3, padding_mode="mirror"), "zeros, reflect, replicate or circular"),
        (lambda: GroupNorm(4, 6), "num_groups that divides 6"),
        (lambda: MultiheadAttention(6, 4), "num_heads that divides embed_dim 6"),
        (lambda: Dropout(1.5), "probability from 0 to 1, got 1.5"),
        (lambda: Embedding(3, 2, padding_idx=3), "padding_idx from -3 to 2"),
        (lambda: LSTM(0, 3), "input_size of 1 or more, got 0"),
        (lambda: Upsample(), "size or scale_factor"),
    ],
)
def test_bad_settings_say_what_is_allowed(make: object, message: str) -> None:
    with pytest.raises(AttributeValueError, match=message):
        make()  # type: ignore[operator]


def test_wrong_inputs_name_the_layer() -> None:
    with pytest.raises(ShapeError, match="BatchNorm2d: expected 4 axes"):
        BatchNorm2d(3)(om.ones(2, 3))
    with pytest.raises(ShapeError):
        Linear(3, 2)(om.ones(2, 4))


def test_layers_take_the_device_and_dtype_of_their_peers() -> None:
    options = {"device": om.device("cpu"), "dtype": None}
    for layer in (
        nn.Linear(2, 3, **options),
        nn.Conv2d(1, 2, 3, **options),
        nn.LSTM(2, 3, **options),
    ):
        assert {parameter.dtype for parameter in layer.parameters()} == {"float32"}
    assert nn.LayerNorm(3, device="cpu", dtype=om.float64).weight.dtype == "float64"
    with pytest.raises(AttributeValueError, match="Linear: expected device 'cpu', got 'cuda'"):
        nn.Linear(2, 3, device="cuda")


@pytest.mark.parametrize("batch_first", [False, True])
def test_attention_with_added_keys(batch_first: bool) -> None:
    manual_seed(5)
    layer = nn.MultiheadAttention(
        8, 2, add_bias_kv=True, add_zero_attn=True, batch_first=batch_first, dtype="float64"
    )
    assert tuple(layer.state_dict()["bias_k"].shape) == (1, 1, 8)
    x = om.randn(3, 3, 8, dtype="float64", generator=om.Generator(1))
    padding = om.tensor([[False, False, True]] * 3)
    explicit, weights = layer(x, x, x, key_padding_mask=padding, is_causal=True)
    fused, _ = layer(x, x, x, key_padding_mask=padding, is_causal=True, need_weights=False)
    assert weights is not None
    assert tuple(weights.shape) == (3, 3, 5)
    assert not weights[:, :, 2].detach().numpy().any()
    assert not weights[:, 0, 1].detach().numpy().any()
    # The fused attention rounds its products in another order, in double precision.
    np.testing.assert_allclose(explicit.detach().numpy(), fused.detach().numpy(), rtol=1e-12)


def test_a_query_that_sees_no_key_gives_the_projection_of_zeros() -> None:
    layer = nn.MultiheadAttention(4, 1, batch_first=True)
    x = om.randn(1, 2, 4, generator=om.Generator(2)).requires_grad_()
    mask = om.tensor([[True, True], [False, False]])
    results = [layer(x, x, x, attn_mask=mask, need_weights=need)[0] for need in (True, False)]
    for result in results:
        assert result[0, 0].tolist() == layer.out_proj.bias.tolist()
        (gradient,) = om.autograd.grad(result[0, 0].sum(), [x])
        assert not gradient.numpy().any()
