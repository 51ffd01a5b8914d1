"""RNN, GRU and LSTM layers, and their single-step cells."""

from __future__ import annotations

import math
from typing import Any

import onemodel_tensors as om
from onemodel_kernels.errors import AttributeValueError, ShapeError
from onemodel_tensors import Tensor
from onemodel_tensors import functional as F
from onemodel_tensors.devices import require_cpu
from onemodel_training import init
from onemodel_training.layers.projected import projected_lstm
from onemodel_training.module import NnModule
from onemodel_training.packing import PackedSequence
from onemodel_training.parameter import Parameter

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNCell"]


class _Recurrent(NnModule):
    gates: int

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        dtype: str | None,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        kind = type(self).__name__
        for name, value in (
            ("input_size", input_size),
            ("hidden_size", hidden_size),
            ("num_layers", num_layers),
        ):
            if value < 1:
                raise AttributeValueError(f"{kind}: expected {name} of 1 or more, got {value}")
        if not 0.0 <= dropout <= 1.0:
            raise AttributeValueError(f"{kind}: expected dropout from 0 to 1, got {dropout}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if not 0 <= proj_size < hidden_size:
            raise AttributeValueError(
                f"{kind}: expected proj_size from 0 to below hidden_size {hidden_size}, got {proj_size}"
            )
        state = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * directions
            for direction in range(directions):
                tail = f"l{layer}" + ("_reverse" if direction else "")
                setattr(self, f"weight_ih_{tail}", Parameter(om.empty(rows, width, dtype=dtype)))
                setattr(self, f"weight_hh_{tail}", Parameter(om.empty(rows, state, dtype=dtype)))
                if bias:
                    setattr(self, f"bias_ih_{tail}", Parameter(om.empty(rows, dtype=dtype)))
                    setattr(self, f"bias_hh_{tail}", Parameter(om.empty(rows, dtype=dtype)))
                if proj_size:
                    projection = Parameter(om.empty(proj_size, hidden_size, dtype=dtype))
                    setattr(self, f"weight_hr_{tail}", projection)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws every parameter from U(-1/√H, 1/√H)."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: there is no packed form to refresh. For code that calls it."""

    def _weights(self) -> list[Tensor]:
        """In the order l0, l0_reverse, l1 …, each w_ih, w_hh, b_ih, b_hh."""
        return [parameter for parameter in self._parameters.values() if parameter is not None]

    def _drop(self) -> float:
        return self.dropout if self.dropout and self.num_layers > 1 and self.training else 0.0

    def _check(self, input: Tensor) -> None:
        if input.ndim not in (2, 3) or input.shape[-1] != self.input_size:
            layout = "(N, T, input_size)" if self.batch_first else "(T, N, input_size)"
            raise ShapeError(
                f"{type(self).__name__}: expected {layout} or (T, input_size) with input_size "
                f"{self.input_size}, got {tuple(input.shape)}"
            )

    def _unpacked(self, sequence: PackedSequence) -> Tensor:
        padded = sequence.padded
        return padded.transpose(0, 1) if self.batch_first else padded

    def _packed(self, output: Tensor, sequence: PackedSequence) -> PackedSequence:
        padded = output.transpose(0, 1) if self.batch_first else output
        return PackedSequence(padded, sequence.lengths)

    def extra_repr(self) -> str:
        """Sizes and options."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0.0),
            ("bidirectional", False),
            ("proj_size", 0),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text


def _state_shape_check(layer: _Recurrent, state: Tensor, batch: int, what: str) -> None:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    width = (layer.proj_size or layer.hidden_size) if what == "h" else layer.hidden_size
    wanted = (count, batch, width)
    if state.ndim != 3 or tuple(state.shape) != wanted:
        raise ShapeError(
            f"{type(layer).__name__}: expected {what} of shape {wanted}, got {tuple(state.shape)}"
        )


class _HiddenStateLayer(_Recurrent):
    """RNN and GRU: one state."""

    def _run(self, input: Tensor, hx: Tensor | None, lengths: Tensor | None) -> Any:
        raise TypeError(f"{type(self).__name__}: a subclass defines _run")

    def forward(
        self, input: Any, hx: Tensor | None = None, lengths: Tensor | None = None
    ) -> tuple[Any, Tensor]:
        """Runs the layer over a sequence.

        Args:
            input: (T, N, input_size), (N, T, input_size) with ``batch_first``, or (T, input_size);
                or a PackedSequence, then the outputs are one too.
            hx: (num_layers·directions, N, H), zeros if None; without N for a single sequence.
            lengths: (N) integers; steps past a sequence's length give zeros and leave its state.

        Returns:
            The outputs (T, N, H·directions), in the input's layout, and the last states in the
            shape of ``hx``.
        """
        if isinstance(input, PackedSequence):
            output, state = self(self._unpacked(input), hx, input.lengths)
            return self._packed(output, input), state
        self._check(input)
        single = input.ndim == 2
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else hx.unsqueeze(1)
        if hx is not None:
            _state_shape_check(self, hx, input.shape[0 if self.batch_first else 1], "hx")
        output, state = self._run(input, hx, lengths)
        if single:
            return output.squeeze(0 if self.batch_first else 1), state.squeeze(1)
        return output, state


class RNN(_HiddenStateLayer):
    """h' = tanh(W_ih·x + b_ih + W_hh·h + b_hh), or relu of it.

    Args:
        input_size: width of the input. hidden_size: H. num_layers: layers one over another.
        nonlinearity: tanh or relu. bias: whether there are biases.
        batch_first: (N, T, …) instead of (T, N, …).
        dropout: between layers, in training mode. bidirectional: also run backwards.
        dtype: of the parameters.

    State: for layer k ``weight_ih_lk`` (H, in), ``weight_hh_lk`` (H, H), ``bias_ih_lk``,
    ``bias_hh_lk`` (H), and the same with ``_reverse``; from U(-1/√H, 1/√H).
    """

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        if nonlinearity not in ("tanh", "relu"):
            raise AttributeValueError(
                f"RNN: expected nonlinearity tanh or relu, got {nonlinearity!r}"
            )
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )
        self.nonlinearity = nonlinearity

    def _run(self, input: Tensor, hx: Tensor | None, lengths: Tensor | None) -> Any:
        function = F.rnn_tanh if self.nonlinearity == "tanh" else F.rnn_relu
        drop = self._drop()
        return function(
            input, hx, self._weights(), self.bias, self.num_layers, drop, bool(drop),
            self.bidirectional, self.batch_first, lengths=lengths,
        )  # fmt: skip


class GRU(_HiddenStateLayer):
    """Gated recurrent units; gates in the order r, z, n.

    r, z = σ(W_ih·x + b_ih + W_hh·h + b_hh); n = tanh(W_in·x + b_in + r·(W_hn·h + b_hn));
    h' = (1 − z)·n + z·h. Arguments as in RNN. State: as in RNN with 3H rows.
    Source: Cho et al. 2014.
    """

    gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )

    def _run(self, input: Tensor, hx: Tensor | None, lengths: Tensor | None) -> Any:
        drop = self._drop()
        return F.gru(
            input, hx, self._weights(), self.bias, self.num_layers, drop, bool(drop),
            self.bidirectional, self.batch_first, lengths=lengths,
        )  # fmt: skip


class LSTM(_Recurrent):
    """Long short-term memory; gates in the order i, f, g, o.

    i, f, o = σ(…), g = tanh(…) of W_ih·x + b_ih + W_hh·h + b_hh; c' = f·c + i·g;
    h' = o·tanh(c'). Arguments as in RNN. State: as in RNN with 4H rows.
    With ``proj_size`` P, h' = W_hr·(o·tanh(c')) of P features: ``weight_hh_lk`` is (4H, P), and
    ``weight_hr_lk`` (P, H) comes last; composed of other operators, step by step.
    Source: Hochreiter & Schmidhuber 1997; Sak et al. 2014.
    """

    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype,
            proj_size,
        )  # fmt: skip

    def forward(
        self,
        input: Any,
        hx: tuple[Tensor, Tensor] | None = None,
        lengths: Tensor | None = None,
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        """Runs the layer over a sequence.

        Args:
            input: (T, N, input_size), (N, T, input_size) with ``batch_first``, or (T, input_size);
                or a PackedSequence, then the outputs are one too.
            hx: (h, c), each (num_layers·directions, N, H); zeros if None.
            lengths: (N) integers; steps past a sequence's length give zeros and leave its state.

        Returns:
            The outputs (T, N, H·directions), in the input's layout, and the last (h, c).
        """
        if isinstance(input, PackedSequence):
            output, states = self(self._unpacked(input), hx, input.lengths)
            return self._packed(output, input), states
        self._check(input)
        single = input.ndim == 2
        if single:
            input = input.unsqueeze(0 if self.batch_first else 1)
            hx = None if hx is None else (hx[0].unsqueeze(1), hx[1].unsqueeze(1))
        if hx is not None:
            for what, state in zip(("h", "c"), hx, strict=True):
                _state_shape_check(self, state, input.shape[0 if self.batch_first else 1], what)
        output, hidden, cell = (
            self._projected(input, hx, lengths)
            if self.proj_size
            else self._plain(input, hx, lengths)
        )
        if single:
            axis = 0 if self.batch_first else 1
            return output.squeeze(axis), (hidden.squeeze(1), cell.squeeze(1))
        return output, (hidden, cell)

    def _plain(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        drop = self._drop()
        return F.lstm(
            input, hx, self._weights(), self.bias, self.num_layers, drop, bool(drop),
            self.bidirectional, self.batch_first, lengths=lengths,
        )  # fmt: skip

    def _projected(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        x = input.transpose(0, 1) if self.batch_first else input
        directions = 2 if self.bidirectional else 1
        if hx is None:
            count, batch = self.num_layers * directions, x.shape[1]
            hx = (
                x.new_zeros((count, batch, self.proj_size)),
                x.new_zeros((count, batch, self.hidden_size)),
            )
        output, hidden, cell = projected_lstm(
            x, hx, self._weights(), self.bias, self.num_layers, self._drop(), directions, lengths
        )
        return (output.transpose(0, 1) if self.batch_first else output), hidden, cell


class _Cell(NnModule):
    gates: int
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        rows = self.gates * hidden_size
        self.weight_ih = Parameter(om.empty(rows, input_size, dtype=dtype))
        self.weight_hh = Parameter(om.empty(rows, hidden_size, dtype=dtype))
        if bias:
            self.bias_ih = Parameter(om.empty(rows, dtype=dtype))
            self.bias_hh = Parameter(om.empty(rows, dtype=dtype))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        bound = 1.0 / math.sqrt(hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def _zeros(self, input: Tensor) -> Tensor:
        return om.zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)

    def extra_repr(self) -> str:
        """Sizes."""
        return f"{self.input_size}, {self.hidden_size}"


class RNNCell(_Cell):
    """One step of RNN: h' = tanh (or relu) of W_ih·x + b_ih + W_hh·h + b_hh."""

    gates = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: str | None = None,
    ) -> None:
        require_cpu(device, type(self).__name__)
        if nonlinearity not in ("tanh", "relu"):
            raise AttributeValueError(
                f"RNNCell: expected nonlinearity tanh or relu, got {nonlinearity!r}"
            )
        super().__init__(input_size, hidden_size, bias, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Maps (N, input_size) and (N, H) to (N, H)."""
        hx = self._zeros(input) if hx is None else hx
        total = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(
            hx, self.weight_hh, self.bias_hh
        )
        return total.tanh() if self.nonlinearity == "tanh" else F.relu(total)


class GRUCell(_Cell):
    """One step of GRU."""

    gates = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Maps (N, input_size) and (N, H) to (N, H)."""
        hx = self._zeros(input) if hx is None else hx
        from_input = F.linear(input, self.weight_ih, self.bias_ih).chunk(3, -1)
        from_state = F.linear(hx, self.weight_hh, self.bias_hh).chunk(3, -1)
        reset = F.sigmoid(from_input[0] + from_state[0])
        update = F.sigmoid(from_input[1] + from_state[1])
        candidate = F.tanh(from_input[2] + reset * from_state[2])
        return (1.0 - update) * candidate + update * hx


class LSTMCell(_Cell):
    """One step of LSTM."""

    gates = 4

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Maps (N, input_size) and (h, c), each (N, H), to (h, c)."""
        hidden, cell = (self._zeros(input), self._zeros(input)) if hx is None else hx
        total = F.linear(input, self.weight_ih, self.bias_ih) + F.linear(
            hidden, self.weight_hh, self.bias_hh
        )
        entry, forget, value, output = total.chunk(4, -1)
        cell = F.sigmoid(forget) * cell + F.sigmoid(entry) * F.tanh(value)
        return F.sigmoid(output) * F.tanh(cell), cell
