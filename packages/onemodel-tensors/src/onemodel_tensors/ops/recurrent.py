"""Recurrent layers: LSTM, GRU and plain RNN, several layers deep, in one or both directions.

One record is made for each layer. A gate's value is one chain of fused multiply-adds that starts from its biases,
takes the input's features and then the state's; steps run in time order, samples apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_kernels import Array
from onemodel_kernels.errors import AttributeValueError, DtypeError, ShapeError
from onemodel_tensors.apply import kernel, recorded_outputs
from onemodel_tensors.autograd.mode import is_grad_enabled
from onemodel_tensors.ops.dropping import dropout as drop
from onemodel_tensors.ops.gathering import integer_index
from onemodel_tensors.ops.joining import cat
from onemodel_tensors.ops.permuting import transpose
from onemodel_tensors.ops.slicing import slice_axes
from onemodel_tensors.record import BackwardRecord, Gradients
from onemodel_tensors.tensor import Tensor

__all__ = [
    "gru",
    "gru_cell",
    "lstm",
    "lstm_cell",
    "rnn_relu",
    "rnn_relu_cell",
    "rnn_tanh",
    "rnn_tanh_cell",
]

_GATES = {"LSTMLayer": 4, "GRULayer": 3, "RNNLayer": 1}


def lstm(
    input: Tensor,
    hx: Sequence[Tensor] | None,
    params: Sequence[Tensor],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    lengths: Any = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory.

    ``i, f, o = sigmoid(…)``, ``g = tanh(…)``, ``c' = f*c + i*g``, ``h = o*tanh(c')``.

    Args:
        input: (T, B, I), (B, T, I) with ``batch_first``, or (T, I) for one sample; floating point.
        hx: the states (h, c) at the start, each (layers*directions, B, H), or ``None`` for zeros.
        params: for each layer and direction w_ih (4H, I), w_hh (4H, H) and, with biases, b_ih and b_hh (4H,); the gates
            in the order i, f, g, o.
        has_biases: whether the parameters include biases.
        num_layers: how many layers.
        dropout: the probability of dropping elements between layers while training.
        train: whether to drop.
        bidirectional: whether each layer also runs from the last step to the first.
        batch_first: whether the batch is the first axis of input and output.
        lengths: (B,) integers, or a sequence: the steps of each sample that count. The output past them is 0.

    Returns:
        The output (T, B, directions*H), and the states at the end, each (layers*directions, B, H).

    Raises:
        ShapeError: shapes do not fit.
        AttributeValueError: the number of parameters does not fit.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """
    states = (None, None) if hx is None else tuple(hx)
    y, (h, c) = _stack(
        "LSTMLayer",
        {},
        input,
        states,
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        lengths,
    )
    return y, h, c


def gru(
    input: Tensor,
    hx: Tensor | None,
    params: Sequence[Tensor],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    lengths: Any = None,
) -> tuple[Tensor, Tensor]:
    """Gated recurrent unit; arguments as :func:`lstm` with one state and 3H gates in the order r, z, n.

    ``r, z = sigmoid(…)``, ``n = tanh(W x + b + r * (U h + b'))``, ``h' = (1 - z)*n + z*h``.

    Source: Cho et al., Learning phrase representations using RNN encoder-decoder, 2014.
    """
    y, (h,) = _stack(
        "GRULayer",
        {},
        input,
        (hx,),
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        lengths,
    )
    return y, h


def rnn_tanh(
    input: Tensor,
    hx: Tensor | None,
    params: Sequence[Tensor],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    lengths: Any = None,
) -> tuple[Tensor, Tensor]:
    """``h' = tanh(W x + b + U h + b')``; arguments as :func:`lstm` with one state and H rows of weights."""
    y, (h,) = _stack(
        "RNNLayer",
        {"nonlinearity": "tanh"},
        input,
        (hx,),
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        lengths,
    )
    return y, h


def rnn_relu(
    input: Tensor,
    hx: Tensor | None,
    params: Sequence[Tensor],
    has_biases: bool = True,
    num_layers: int = 1,
    dropout: float = 0.0,
    train: bool = False,
    bidirectional: bool = False,
    batch_first: bool = False,
    *,
    lengths: Any = None,
) -> tuple[Tensor, Tensor]:
    """``h' = relu(W x + b + U h + b')``; arguments as :func:`lstm` with one state and H rows of weights."""
    y, (h,) = _stack(
        "RNNLayer",
        {"nonlinearity": "relu"},
        input,
        (hx,),
        params,
        has_biases,
        num_layers,
        dropout,
        train,
        bidirectional,
        batch_first,
        lengths,
    )
    return y, h


def _stack(
    operator: str,
    extra: dict[str, Any],
    input: Tensor,
    states: tuple[Tensor | None, ...],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    rate: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
    lengths: Any,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    directions = 2 if bidirectional else 1
    each = directions * (4 if has_biases else 2)
    if len(params) != num_layers * each:
        raise AttributeValueError(
            f"{operator}: expected {num_layers * each} parameters for {num_layers} layers of {directions} directions, "
            f"got {len(params)}"
        )
    single = input._array.ndim == 2
    if single:
        input = input.unsqueeze(0 if batch_first else 1)
        states = tuple([None if s is None else s.unsqueeze(1) for s in states])
    if input._array.ndim != 3:
        raise ShapeError(
            f"{operator}: expected an input of 3 axes, or 2 for one sample, got {input._array.shape}"
        )
    x = transpose(input, 0, 1) if batch_first else input
    count = None if lengths is None else _lengths(lengths)
    ends: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        first = layer * directions
        begin = tuple([_of_layer(s, first, directions, num_layers) for s in states])
        if layer and train and rate > 0:
            x = drop(x, rate)
        weights = tuple(params[layer * each : (layer + 1) * each])
        x, *end = _layer(operator, extra, x, begin, count, weights, directions, has_biases)
        ends.append(tuple(end))
    finals = tuple(
        [
            cat([end[n] for end in ends], 0) if num_layers > 1 else ends[0][n]
            for n in range(len(states))
        ]
    )
    y = transpose(x, 0, 1) if batch_first else x
    if single:
        return y.squeeze(0 if batch_first else 1), tuple([f.squeeze(1) for f in finals])
    return y, finals


def _lengths(lengths: Any) -> Tensor:
    if isinstance(lengths, Tensor):
        return integer_index(lengths, "lengths").to("int64")
    from onemodel_tensors.interop import tensor

    return tensor(lengths, dtype="int64")


def _of_layer(state: Tensor | None, first: int, directions: int, layers: int) -> Tensor | None:
    if state is None or layers == 1:
        return state
    return slice_axes(state, [(0, first, first + directions, 1)])


def _layer(
    operator: str,
    extra: dict[str, Any],
    x: Tensor,
    begin: tuple[Tensor | None, ...],
    lengths: Tensor | None,
    weights: tuple[Tensor, ...],
    directions: int,
    has_biases: bool,
) -> tuple[Tensor, ...]:
    gates = _GATES[operator]
    hidden = weights[1]._array.shape[-1]
    _check(operator, x, begin, weights, gates, hidden, directions, has_biases)
    attributes = {
        "hidden_size": hidden,
        "directions": directions,
        "has_bias": int(has_biases),
        **extra,
    }
    inputs = (x, *begin, lengths, *weights)
    arrays = [None if t is None else t._array for t in inputs]
    learning = is_grad_enabled() and any(t is not None and t._node is not None for t in inputs)
    *outputs, saved = kernel(operator, save=int(learning), **attributes)(*arrays)
    kept = (*arrays, *outputs, saved) if learning else ()
    return recorded_outputs(operator, inputs, attributes, outputs, _layer_gradient, kept)


def _layer_gradient(record: BackwardRecord, *gradients: Array | None) -> Gradients:
    states = 2 if record.operator == "LSTMLayer" else 1
    found = kernel(f"{record.operator}Grad", **record.attributes)(*gradients, *record.saved)
    # The lengths, between the states and the weights, have no gradient.
    return (*found[: 1 + states], None, *found[1 + states :])


def _check(
    operator: str,
    x: Tensor,
    begin: tuple[Tensor | None, ...],
    weights: tuple[Tensor, ...],
    gates: int,
    hidden: int,
    directions: int,
    has_biases: bool,
) -> None:
    _, batch, features = x._array.shape
    rows = gates * hidden
    wanted = [(rows, features), (rows, hidden), *([(rows,)] * 2 if has_biases else [])] * directions
    for weight, shape in zip(weights, wanted):
        if weight._array.shape != shape:
            raise ShapeError(
                f"{operator}: expected parameters of shapes {wanted} for an input of {features} features, "
                f"got {weight._array.shape}"
            )
        if weight._array.dtype != x._array.dtype:
            raise DtypeError(
                f"{operator}: expected one dtype, got {x._array.dtype} and {weight._array.dtype}"
            )
    for state in begin:
        if state is not None and state._array.shape != (directions, batch, hidden):
            raise ShapeError(
                f"{operator}: expected states of shape {(directions, batch, hidden)} for each layer, "
                f"got {state._array.shape}"
            )


def _cell(run: Any, input: Tensor, states: Any, weights: Sequence[Tensor | None]) -> Any:
    given = [w for w in weights if w is not None]
    return run(input.unsqueeze(0), states, given, has_biases=len(given) == 4)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of :func:`lstm`: input (B, I), states (h, c) each (B, H); gives the next (h, c)."""
    states = tuple([state.unsqueeze(0) for state in hx])
    _, h, c = _cell(lstm, input, states, (w_ih, w_hh, b_ih, b_hh))
    return h.squeeze(0), c.squeeze(0)


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of :func:`gru`: input (B, I), state (B, H); gives the next state."""
    _, h = _cell(gru, input, hx.unsqueeze(0), (w_ih, w_hh, b_ih, b_hh))
    return h.squeeze(0)  # type: ignore[no-any-return]


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of :func:`rnn_tanh`: input (B, I), state (B, H); gives the next state."""
    _, h = _cell(rnn_tanh, input, hx.unsqueeze(0), (w_ih, w_hh, b_ih, b_hh))
    return h.squeeze(0)  # type: ignore[no-any-return]


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of :func:`rnn_relu`: input (B, I), state (B, H); gives the next state."""
    _, h = _cell(rnn_relu, input, hx.unsqueeze(0), (w_ih, w_hh, b_ih, b_hh))
    return h.squeeze(0)  # type: ignore[no-any-return]
