"""The main job on a small setting: it runs to the end, and its weights do not depend on threads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import onemodel_tensors as om
from digit_lines.draws import Draws
from digit_lines.lines import (
    HEIGHT,
    HELD_OUT,
    batches_of_similar_width,
    compose_lines,
    load_scans,
    stack,
)
from digit_lines.reader import LineReader, weights_hash
from digit_lines.training import train
from onemodel_kernels import get_num_threads, set_num_threads


def run_job(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "digit_lines", "--out", str(out), *options],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "160"},
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One short run of the whole job: its folder and what it printed."""
    out = tmp_path_factory.mktemp("job")
    options = ("--epochs", "1", "--lines", "96", "--held-out", "24", "--threads", "2")
    result = run_job(out, *options)
    assert result.returncode == 0, result.stdout + result.stderr
    return out, result.stdout


def test_job_prints_one_table_and_the_comparisons_of_bits(job: tuple[Path, str]) -> None:
    _, printed = job
    for row in ("eager model", "session, exact", "session, fast", "ONNX Runtime"):
        assert row in printed
    assert printed.count("bits equal") == 4
    assert "DIFFER" not in printed
    assert re.search(r"weights sha256 [0-9a-f]{64}", printed)


def test_job_writes_models_and_picture(job: tuple[Path, str]) -> None:
    out, _ = job
    assert (out / "digit_lines.onnx").stat().st_size > 100_000
    assert (out / "digit_lines.om1").stat().st_size > 100_000
    with Image.open(out / "digit_lines.png") as picture:
        assert picture.width > 500
        assert len(np.unique(np.asarray(picture.convert("L")))) > 50


def test_trained_weights_do_not_depend_on_threads() -> None:
    scans, _ = load_scans()
    hashes = set()
    before = get_num_threads()
    try:
        for threads in (1, 2):
            set_num_threads(threads)
            model = train(
                scans,
                epochs=1,
                lines_per_epoch=48,
                batch_size=16,
                seed=3,
                progress=False,
            )
            hashes.add(weights_hash(model))
    finally:
        set_num_threads(before)
    assert len(hashes) == 1


def test_weights_hash_depends_on_every_weight() -> None:
    om.manual_seed(0)
    model = LineReader()
    before = weights_hash(model)
    om.manual_seed(0)
    assert weights_hash(LineReader()) == before
    with om.no_grad():
        model.get_parameter("classify.bias")[0] = 1.0
    assert weights_hash(model) != before


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        (("--epochs", "0"), r"1<=x<=1000|greater than or equal to 1\b"),
        (("--threads", "many"), "integer|number"),
        (("--batch-size", "5000"), r"1<=x<=1024|less than or equal to 1024"),
        (("--epoch", "1"), "--epochs"),
    ],
)
def test_a_bad_option_says_what_is_allowed(
    options: tuple[str, str], allowed: str, tmp_path: Path
) -> None:
    result = run_job(tmp_path, *options)
    assert result.returncode == 2
    assert re.search(allowed, result.stderr), result.stderr


def test_an_output_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = run_job(tmp_path / "file" / "below")
    assert result.returncode == 2
    assert "--out" in result.stderr
    assert "a folder that exists or can be made" in result.stderr


def test_lines_depend_on_their_seed_alone() -> None:
    scans, held_out = load_scans()
    assert len(scans.digits) == 1437
    assert len(held_out.digits) == 360
    first = compose_lines(scans, 20, seed=1, part=0, variation=HELD_OUT)
    # numpy's global state must not matter.
    np.random.seed(123)  # noqa: NPY002
    second = compose_lines(scans, 20, seed=1, part=0, variation=HELD_OUT)
    other = compose_lines(scans, 20, seed=2, part=0, variation=HELD_OUT)
    assert [line.image.tobytes() for line in first] == [line.image.tobytes() for line in second]
    assert [line.digits for line in first] != [line.digits for line in other]
    assert all(3 <= len(line.digits) <= 12 for line in first)
    assert len({line.width for line in first}) > 5


def test_stacked_lines_are_padded_with_paper() -> None:
    lines = compose_lines(load_scans()[0], 5, seed=1, part=0, variation=HELD_OUT)
    batch = stack(lines)
    assert batch.shape == (5, 1, HEIGHT, max(line.width for line in lines))
    for row, line in enumerate(lines):
        assert (batch[row, 0, :, : line.width] == line.image).all()
        assert not batch[row, 0, :, line.width :].any()


def test_draws_are_uniform_and_keyed() -> None:
    values = Draws(1, 2).uniforms(20_000)
    assert 0.0 <= values.min() < 0.001
    assert 0.999 < values.max() < 1.0
    # The mean of 20,000 uniform numbers has a standard deviation of 0.002.
    assert abs(values.mean() - 0.5) < 0.01
    assert Draws(1, 2).integer(0, 10**9) != Draws(1, 3).integer(0, 10**9)
    assert sorted(Draws(5).order(50)) == list(range(50))


@pytest.mark.parametrize("draws", [None, Draws(4)])
def test_batches_hold_every_line_once(draws: Draws | None) -> None:
    lines = compose_lines(load_scans()[0], 21, seed=1, part=0, variation=HELD_OUT)
    batches = batches_of_similar_width(lines, 8, draws)
    assert sorted(len(batch) for batch in batches) == [5, 8, 8]
    assert sorted(index for batch in batches for index in batch) == list(range(21))
