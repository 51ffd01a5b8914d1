"""Every layer: shapes, f64 gradients, and its trace against ONNX Runtime."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_tensors import gradcheck
from onemodel_training import layers, manual_seed
from onemodel_training import layers as nn
from onemodel_training.module import NnModule

Inputs = Callable[[om.Generator], tuple[om.Tensor, ...]]


@dataclass(frozen=True)
class LayerCase:
    """A layer and example inputs.

    Attributes:
        name: of the case.
        make: builds the layer.
        inputs: draws the inputs, in f64.
        output: the shapes of the results.
        axes: symbolic axes of each input, None where a size is part of the operator.
        smooth: whether finite differences converge (no kinks near the samples).
    """

    name: str
    make: Callable[[], NnModule]
    inputs: Inputs
    output: tuple[tuple[int, ...], ...]
    axes: tuple[object, ...] | None = None
    smooth: bool = True


def normal(*shapes: tuple[int, ...]) -> Inputs:
    return lambda g: tuple(om.randn(*shape, dtype="float64", generator=g) for shape in shapes)


def ids(shape: tuple[int, ...], count: int) -> Inputs:
    return lambda g: (om.randint(0, count, shape, generator=g),)


def case(
    name: str,
    make: Callable[[], NnModule],
    inputs: Inputs | tuple[int, ...],
    *output: tuple[int, ...],
    axes: tuple[object, ...] | None = None,
    smooth: bool = True,
) -> LayerCase:
    drawn = normal(inputs) if isinstance(inputs, tuple) else inputs
    return LayerCase(name, make, drawn, output, axes, smooth)


B = ({0: "batch"},)
BH = ({0: "batch", 2: "height"},)
TB = ({0: "time", 1: "batch"},)
BT = ({0: "batch", 1: "time"},)
BS = ({0: "batch", 1: "length"}, {0: "batch", 1: "source"})
ACTIVATIONS = [
    case(layer.__class__.__name__ + str(i), lambda layer=layer: layer, (3, 4, 5), (3, 4, 5), axes=B)
    for i, layer in enumerate(
        [
            nn.ReLU(), nn.ReLU6(), nn.SiLU(), nn.Mish(), nn.SELU(), nn.Hardsigmoid(),
            nn.Hardswish(), nn.Sigmoid(), nn.Tanh(), nn.LogSigmoid(), nn.Softsign(),
            nn.Tanhshrink(), nn.ELU(0.7), nn.CELU(1.3), nn.LeakyReLU(0.2), nn.GELU(),
            nn.GELU("tanh"), nn.Softplus(), nn.Softplus(2.0, 1.0), nn.Hardtanh(-0.5, 0.7),
            nn.Hardshrink(0.3), nn.Softshrink(0.3), nn.Threshold(0.1, -2.0), nn.PReLU(),
            nn.PReLU(4), nn.Softmax(-1), nn.Softmax(1), nn.LogSoftmax(-1), nn.Softmin(-1),
        ]
    )
]  # fmt: skip
CASES = [
    *ACTIVATIONS,
    case("identity", nn.Identity, (3, 4), (3, 4), axes=B),
    case("linear", lambda: nn.Linear(5, 3), (4, 5), (4, 3), axes=B),
    case("linear-3d", lambda: nn.Linear(5, 3, bias=False), (4, 2, 5), (4, 2, 3), axes=B),
    case("bilinear", lambda: nn.Bilinear(3, 4, 2), normal((5, 3), (5, 4)), (5, 2), axes=B * 2),
    case("conv1d", lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1), (3, 2, 9), (3, 4, 5), axes=BH),
    case("conv2d", lambda: nn.Conv2d(2, 4, 3, padding=1), (3, 2, 5, 6), (3, 4, 5, 6), axes=BH),
    case("conv2d-groups", lambda: nn.Conv2d(4, 6, (3, 2), 2, dilation=2, groups=2),
         (2, 4, 9, 7), (2, 6, 3, 3), axes=BH),
    case("conv2d-depthwise", lambda: nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False),
         (2, 4, 5, 5), (2, 4, 5, 5)),
    case("conv2d-same", lambda: nn.Conv2d(2, 3, (4, 3), padding="same"),
         (2, 2, 6, 5), (2, 3, 6, 5)),
    case("conv2d-reflect", lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
         (2, 2, 4, 5), (2, 3, 4, 5)),
    case("conv3d", lambda: nn.Conv3d(1, 2, 2), (2, 1, 3, 4, 3), (2, 2, 2, 3, 2), axes=BH),
    case("deconv1d", lambda: nn.ConvTranspose1d(2, 3, 3, 2, 1, 1), (2, 2, 4), (2, 3, 8), axes=BH),
    case("deconv2d", lambda: nn.ConvTranspose2d(4, 2, 2, 2), (2, 4, 3, 3), (2, 2, 6, 6), axes=BH),
    case("deconv2d-groups", lambda: nn.ConvTranspose2d(4, 4, 3, 2, groups=2, dilation=2),
         (2, 4, 3, 2), (2, 4, 9, 7)),
    case("deconv3d", lambda: nn.ConvTranspose3d(2, 1, 2), (1, 2, 2, 2, 2), (1, 1, 3, 3, 3)),
    case("batchnorm1d", lambda: nn.BatchNorm1d(4), (6, 4), (6, 4), axes=B),
    case("batchnorm1d-3", lambda: nn.BatchNorm1d(4), (3, 4, 5), (3, 4, 5), axes=BH),
    case("batchnorm2d", lambda: nn.BatchNorm2d(3), (4, 3, 2, 5), (4, 3, 2, 5), axes=BH),
    case("batchnorm2d-plain", lambda: nn.BatchNorm2d(3, affine=False), (4, 3, 2, 2), (4, 3, 2, 2)),
    case("batchnorm3d", lambda: nn.BatchNorm3d(2), (2, 2, 2, 3, 2), (2, 2, 2, 3, 2)),
    case("instancenorm2d", lambda: nn.InstanceNorm2d(3, affine=True),
         (2, 3, 3, 4), (2, 3, 3, 4), axes=B),
    case("instancenorm1d", lambda: nn.InstanceNorm1d(3), (2, 3, 6), (2, 3, 6)),
    case("localresponsenorm", lambda: nn.LocalResponseNorm(3, 0.1), (2, 5, 3, 2), (2, 5, 3, 2)),
    case("softmax2d", nn.Softmax2d, (2, 3, 4, 2), (2, 3, 4, 2), axes=B),
    case("rrelu", nn.RReLU, (3, 4, 5), (3, 4, 5), axes=B),
    case("lppool1d", lambda: nn.LPPool1d(2, 2), (2, 3, 6), (2, 3, 3)),
    case("lppool2d", lambda: nn.LPPool2d(2, (2, 1)), (2, 3, 4, 2), (2, 3, 2, 2)),
    case("layernorm", lambda: nn.LayerNorm(6), (3, 4, 6), (3, 4, 6), axes=B),
    case("layernorm-2", lambda: nn.LayerNorm((4, 6), bias=False), (3, 4, 6), (3, 4, 6), axes=B),
    case("layernorm-plain", lambda: nn.LayerNorm(6, elementwise_affine=False), (3, 6), (3, 6)),
    case("rmsnorm", lambda: nn.RMSNorm(6), (3, 4, 6), (3, 4, 6), axes=B),
    case("groupnorm", lambda: nn.GroupNorm(2, 6), (3, 6, 4, 2), (3, 6, 4, 2), axes=B),
    case("maxpool1d", lambda: nn.MaxPool1d(2), (2, 3, 7), (2, 3, 3), axes=B),
    case("maxpool2d", lambda: nn.MaxPool2d(3, 2, 1), (2, 3, 6, 7), (2, 3, 3, 4), axes=BH),
    case("maxpool2d-ceil", lambda: nn.MaxPool2d(2, ceil_mode=True), (2, 1, 5, 5), (2, 1, 3, 3)),
    case("maxpool3d", lambda: nn.MaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
    case("avgpool1d", lambda: nn.AvgPool1d(3, 2, 1), (2, 3, 7), (2, 3, 4), axes=B),
    case("avgpool2d", lambda: nn.AvgPool2d(2), (2, 3, 4, 6), (2, 3, 2, 3), axes=BH),
    case("avgpool2d-nopad", lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
         (2, 3, 5, 5), (2, 3, 3, 3)),
    case("avgpool3d", lambda: nn.AvgPool3d(2), (1, 2, 4, 2, 2), (1, 2, 2, 1, 1)),
    case("adaptive1d", lambda: nn.AdaptiveAvgPool1d(3), (2, 3, 7), (2, 3, 3)),
    case("adaptive2d-global", lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 4, 5), (2, 3, 1, 1), axes=BH),
    case("adaptive2d", lambda: nn.AdaptiveAvgPool2d((2, None)), (2, 3, 4, 5), (2, 3, 2, 5)),
    case("adaptive3d", lambda: nn.AdaptiveAvgPool3d(1), (2, 3, 2, 3, 2), (2, 3, 1, 1, 1)),
    case("adaptivemax1d", lambda: nn.AdaptiveMaxPool1d(2), (2, 3, 6), (2, 3, 2)),
    case("adaptivemax2d", lambda: nn.AdaptiveMaxPool2d(1), (2, 3, 4, 5), (2, 3, 1, 1)),
    case("adaptivemax3d", lambda: nn.AdaptiveMaxPool3d(1), (2, 3, 2, 3, 2), (2, 3, 1, 1, 1)),
    case("embedding", lambda: nn.Embedding(7, 4), ids((3, 5), 7), (3, 5, 4), axes=B),
    case("embeddingbag", lambda: nn.EmbeddingBag(7, 4, mode="sum"), ids((3, 5), 7), (3, 4), axes=B),
    case("dropout", lambda: nn.Dropout(0.3), (3, 4), (3, 4), axes=B),
    case("droppath", lambda: nn.DropPath(0.3), (3, 4), (3, 4), axes=B),
    case("rnn", lambda: nn.RNN(3, 4), (5, 2, 3), (5, 2, 4), (1, 2, 4), axes=TB),
    case("rnn-relu", lambda: nn.RNN(3, 4, nonlinearity="relu", bidirectional=True),
         (5, 2, 3), (5, 2, 8), (2, 2, 4)),
    case("gru", lambda: nn.GRU(3, 4, 2, bidirectional=True),
         (5, 2, 3), (5, 2, 8), (4, 2, 4), axes=TB),
    case("gru-batch-first", lambda: nn.GRU(3, 4, batch_first=True, bias=False),
         (2, 5, 3), (2, 5, 4), (1, 2, 4), axes=BT),
    case("lstm", lambda: nn.LSTM(3, 4, 2, bidirectional=True),
         (5, 2, 3), (5, 2, 8), (4, 2, 4), (4, 2, 4), axes=TB),
    case("lstm-batch-first", lambda: nn.LSTM(3, 4, batch_first=True),
         (2, 5, 3), (2, 5, 4), (1, 2, 4), (1, 2, 4), axes=BT),
    case("lstm-single", lambda: nn.LSTM(3, 4), (5, 3), (5, 4), (1, 4), (1, 4)),
    case("rnncell", lambda: nn.RNNCell(3, 4), normal((2, 3), (2, 4)), (2, 4), axes=B * 2),
    case("grucell", lambda: nn.GRUCell(3, 4), normal((2, 3), (2, 4)), (2, 4), axes=B * 2),
    case("lstmcell", lambda: nn.LSTMCell(3, 4), (2, 3), (2, 4), (2, 4), axes=B),
    case("encoderlayer", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
         (2, 5, 8), (2, 5, 8), axes=BT),
    case("encoderlayer-first", lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", norm_first=True),
         (5, 2, 8), (5, 2, 8), axes=TB),
    case("encoder", lambda: nn.TransformerEncoder(
             nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2, nn.LayerNorm(8)),
         (2, 5, 8), (2, 5, 8)),
    case("decoderlayer", lambda: nn.TransformerDecoderLayer(8, 2, 16, batch_first=True),
         normal((2, 5, 8), (2, 3, 8)), (2, 5, 8), axes=BS),
    case("transformer", lambda: nn.Transformer(8, 2, 1, 1, 12),
         normal((4, 2, 8), (3, 2, 8)), (3, 2, 8)),
    case("zeropad", lambda: nn.ZeroPad2d((1, 2, 0, 1)), (2, 3, 4, 5), (2, 3, 5, 8), axes=BH),
    case("constantpad", lambda: nn.ConstantPad1d(2, 1.5), (2, 3, 4), (2, 3, 8)),
    case("reflectpad", lambda: nn.ReflectionPad2d(1), (2, 3, 4, 5), (2, 3, 6, 7)),
    case("replicatepad", lambda: nn.ReplicationPad1d((2, 1)), (2, 3, 4), (2, 3, 7)),
    case("circularpad", lambda: nn.CircularPad2d(1), (2, 3, 4, 5), (2, 3, 6, 7)),
    case("upsample-nearest", lambda: nn.UpsamplingNearest2d(scale_factor=2),
         (2, 3, 3, 4), (2, 3, 6, 8), axes=B),
    case("upsample-bilinear", lambda: nn.UpsamplingBilinear2d(size=(5, 7)),
         (2, 3, 3, 4), (2, 3, 5, 7), axes=B),
    case("upsample-linear", lambda: nn.Upsample(scale_factor=2, mode="linear"),
         (2, 3, 4), (2, 3, 8)),
    case("upsample-bicubic", lambda: nn.Upsample(size=(6, 5), mode="bicubic"),
         (2, 3, 4, 4), (2, 3, 6, 5)),
    case("flatten", nn.Flatten, (2, 3, 4), (2, 12), axes=B),
    case("unflatten", lambda: nn.Unflatten(1, (2, 3)), (4, 6), (4, 2, 3), axes=B),
    case("pixelshuffle", lambda: nn.PixelShuffle(2), (2, 8, 3, 5), (2, 2, 6, 10), axes=BH),
    case("pixelunshuffle", lambda: nn.PixelUnshuffle(2), (2, 2, 6, 4), (2, 8, 3, 2)),
    case("channelshuffle", lambda: nn.ChannelShuffle(2), (2, 6, 3, 4), (2, 6, 3, 4), axes=BH),
    case("unfold", lambda: nn.Unfold(2, stride=2), (2, 3, 4, 6), (2, 12, 6)),
    case("fold", lambda: nn.Fold((4, 6), 2, stride=2), (2, 12, 6), (2, 3, 4, 6)),
    case("glu", lambda: nn.GLU(1), (3, 4, 5), (3, 2, 5), axes=B),
    case("cosine", lambda: nn.CosineSimilarity(1), normal((3, 4), (3, 4)), (3,), axes=B * 2),
    case("distance", nn.PairwiseDistance, normal((3, 4), (3, 4)), (3,), axes=B * 2),
]  # fmt: skip

IDS = [case.name for case in CASES]


def build(case: LayerCase) -> tuple[NnModule, tuple[om.Tensor, ...]]:
    manual_seed(1)
    layer = copy.deepcopy(case.make()).double()
    generator = om.Generator(9)
    for name, buffer in layer.named_buffers():
        if name.endswith("running_mean"):
            buffer.uniform_(-0.5, 0.5, generator=generator)
        elif name.endswith("running_var"):
            buffer.uniform_(0.5, 1.5, generator=generator)
    return layer, case.inputs(generator)


def flat(result: object) -> list[om.Tensor]:
    if isinstance(result, om.Tensor):
        return [result]
    assert isinstance(result, tuple)
    return [tensor for part in result for tensor in flat(part)]


def test_every_layer_has_a_case() -> None:
    covered = {type(module).__name__ for case in CASES for module in case.make().modules()}
    abstract = {
        "Sequential", "ModuleDict", "ParameterDict", "ParameterList",
        "AlphaDropout", "Dropout1d", "Dropout2d", "Dropout3d", "InstanceNorm3d",
    }  # fmt: skip
    siblings = {name for name in layers.__all__ if name.endswith(("Pad1d", "Pad2d", "Pad3d"))}
    assert set(layers.__all__) - covered - abstract - siblings == set()


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_shapes_and_gradients(case: LayerCase) -> None:
    layer, inputs = build(case)
    layer.eval()
    outputs = flat(layer(*inputs))
    assert tuple(tuple(output.shape) for output in outputs) == case.output
    floats = [x.requires_grad_() for x in inputs if x.is_floating_point()]
    parameters = list(layer.parameters())
    watched = (*floats, *parameters)
    if not watched:
        return

    held = [parameter._array for parameter in parameters]

    def total(*given: om.Tensor) -> om.Tensor:
        moved = iter(given[: len(floats)])
        arguments = [next(moved) if x.is_floating_point() else x for x in inputs]
        for parameter, value, array in zip(parameters, given[len(floats) :], held):
            parameter._array = array if value is parameter else value._array
        parts = [(out * out).sum() + out.sum() for out in flat(layer(*arguments))]
        return sum(parts[1:], parts[0])

    assert gradcheck(total, watched)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_traces_agree_with_onnx_runtime(case: LayerCase) -> None:
    runtime = pytest.importorskip("onnxruntime")
    layer, inputs = build(case)
    layer.float().eval()
    inputs = tuple(x.float() if x.is_floating_point() else x for x in inputs)
    names = [f"x{i}" for i in range(len(inputs))]
    axes = dict(zip(names, case.axes)) if case.axes else None
    traced = layer.trace(*inputs, input_names=names, axis_names=axes)
    session = runtime.InferenceSession(traced.to_onnx().SerializeToString())
    feeds = {name: x.numpy() for name, x in zip(names, inputs)}
    found = session.run(None, feeds)
    expected = flat(layer(*inputs))
    for ours, theirs in zip(expected, found, strict=True):
        # Two libraries with different summation orders and elementary functions.
        np.testing.assert_allclose(theirs, ours.detach().numpy(), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_parameters_keep_their_names_and_bytes_in_the_graph(case: LayerCase) -> None:
    layer, inputs = build(case)
    layer.float().eval()
    inputs = tuple(x.float() if x.is_floating_point() else x for x in inputs)
    traced = layer.trace(*inputs, verify=False)
    written = traced.graph.initializers
    for name, parameter in layer.named_parameters():
        if name in written:
            assert written[name].tobytes() == parameter._array.tobytes()
