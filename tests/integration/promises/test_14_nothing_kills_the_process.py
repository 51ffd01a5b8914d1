"""14. No file and no input kills the process: damaged models give an exception with a place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onemodel_tensors as om
from onemodel_graph import Session
from onemodel_training import Conv2d, Flatten, Linear, Sequential

PROGRAM = """
import sys
import numpy as np
from onemodel_graph import Session

original = bytearray(open(sys.argv[1], "rb").read())
generator = np.random.Generator(np.random.PCG64(int(sys.argv[2])))
accepted = refused = 0
for _ in range(int(sys.argv[3])):
    damaged = bytearray(original)
    if generator.random() < 0.2:
        damaged = damaged[: generator.integers(0, len(damaged))]
    for position in generator.integers(0, max(1, len(damaged)), generator.integers(1, 8)):
        if position < len(damaged):
            damaged[position] = generator.integers(0, 256)
    try:
        Session(bytes(damaged)).run({"input": np.ones((2, 1, 6, 6), np.float32)})
    except (Exception,) as error:
        assert str(error), type(error)
        refused += 1
    else:
        accepted += 1
print(accepted, refused)
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    om.manual_seed(0)
    model = Sequential(Conv2d(1, 2, 3), Flatten(), Linear(32, 3)).eval()
    traced = model.trace(om.rand(3, 1, 6, 6), axis_names={"input": {0: "batch"}})
    found = {"onnx": folder / "model.onnx", "v1": folder / "model.om1"}
    traced.save_onnx(found["onnx"])
    traced.save(found["v1"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["onnx", "v1"])
def test_damaged_files_are_refused_or_run(kind: str, seed: int, files: dict[str, Path]) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(files[kind]), str(seed), "400"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-2000:]
    accepted, refused = map(int, result.stdout.split())
    assert accepted + refused == 400
    assert refused > 0


@pytest.mark.parametrize(
    "value",
    [
        np.ones((2, 1, 6, 6), np.float64),
        np.ones((2, 1, 6), np.float32),
        np.ones((2, 2, 6, 6), np.float32),
        np.ones((2, 1, 6, 6), np.float32).astype(object),
        "text",
        None,
    ],
    ids=["dtype", "rank", "extent", "objects", "text", "nothing"],
)
def test_a_wrong_input_is_refused_by_its_name(value: object, files: dict[str, Path]) -> None:
    session = Session(files["onnx"])
    with pytest.raises((ValueError, TypeError), match="input"):
        session.run({"input": value})


def test_missing_and_unknown_inputs_are_named(files: dict[str, Path]) -> None:
    session = Session(files["onnx"])
    with pytest.raises((ValueError, KeyError), match="input"):
        session.run({})
    good = np.ones((2, 1, 6, 6), np.float32)
    with pytest.raises((ValueError, KeyError), match="other"):
        session.run({"input": good, "other": good})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, 1e-45])
def test_hostile_values_give_values(value: float, files: dict[str, Path]) -> None:
    (y,) = Session(files["v1"]).run({"input": np.full((2, 1, 6, 6), value, np.float32)})
    assert y.shape == (2, 3)
