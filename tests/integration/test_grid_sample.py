"""Sampled images agree with ONNX Runtime's GridSample and AffineGrid in every mode."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import onemodel_tensors as om
from onemodel_tensors import functional as F

_MODES = {"bilinear": "linear", "nearest": "nearest", "bicubic": "cubic"}


def peer(
    operator: str, rank: int, inputs: dict[str, np.ndarray], **attributes: str | int
) -> np.ndarray:
    node = helper.make_node(operator, list(inputs), ["y"], **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in inputs.items()
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)
    graph = helper.make_graph([node], "g", infos, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, inputs)[0]


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "rank"),
    [("bilinear", 4), ("nearest", 4), ("bicubic", 4), ("bilinear", 5), ("nearest", 5)],
)
def test_grid_sample(mode: str, padding: str, align_corners: bool, rank: int) -> None:
    rng = np.random.default_rng(3)
    spatial, places = ((4, 5), (3, 6)) if rank == 4 else ((3, 4, 5), (2, 3, 4))
    x = rng.standard_normal((2, 3, *spatial)).astype(np.float32)
    grid = rng.uniform(-1.6, 1.6, (2, *places, rank - 2)).astype(np.float32)
    ours = F.grid_sample(om.from_numpy(x), om.from_numpy(grid), mode, padding, align_corners)
    theirs = peer(
        "GridSample",
        rank,
        {"x": x, "grid": grid},
        mode=_MODES[mode],
        padding_mode=padding,
        align_corners=int(align_corners),
    )
    # Both round places and weights in float32, in different orders.
    np.testing.assert_allclose(ours.numpy(), theirs, atol=2e-5)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 2, 3, 4)])
def test_affine_grid(size: tuple[int, ...], align_corners: bool) -> None:
    axes = len(size) - 2
    theta = np.random.default_rng(4).standard_normal((2, axes, axes + 1)).astype(np.float32)
    ours = F.affine_grid(om.from_numpy(theta), size, align_corners)
    theirs = peer(
        "AffineGrid",
        axes + 2,
        {"theta": theta, "size": np.array(size)},
        align_corners=int(align_corners),
    )
    # Three or four products in another order.
    np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-6)


def test_places_outside_and_without_a_number() -> None:
    x = om.arange(4, dtype="float32").reshape(1, 1, 2, 2)
    grid = om.tensor([[[[1e30, 0.0], [-1e30, 0.0], [float("nan"), 0.0]]]])
    found = F.grid_sample(x, grid)
    assert found[0, 0, 0, :2].tolist() == [0.0, 0.0]
    assert F.grid_sample(x, grid, padding_mode="border", align_corners=True)[0, 0, 0, 0] == 2.0


def test_errors_name_what_came() -> None:
    x, grid = om.zeros(1, 1, 2, 2), om.zeros(1, 2, 2, 3)
    with pytest.raises(om.ShapeError, match=r"grid_sample: expected .* got \(1, 1, 2, 2\)"):
        F.grid_sample(x, grid)
    with pytest.raises(om.AttributeValueError, match="got 'cubic' and 'zeros'"):
        F.grid_sample(x, grid[..., :2], mode="cubic")
    with pytest.raises(om.DtypeError, match="one dtype"):
        F.grid_sample(x, grid[..., :2].double())
    with pytest.raises(om.ShapeError, match="affine_grid: expected theta"):
        F.affine_grid(om.zeros(1, 2, 2), (1, 1, 2, 2))
