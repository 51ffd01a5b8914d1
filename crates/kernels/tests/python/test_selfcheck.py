"""The command that compares this machine's bits with the committed ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onemodel_kernels._native import available_isas, regenerated_table, selfcheck


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run ``selfcheck`` as a user does."""
    line = [sys.executable, "-m", "onemodel_kernels", "selfcheck", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, env=os.environ)


def test_help_is_no_error_and_a_wrong_command_is_one() -> None:
    for arguments, code in ((["--help"], 0), (["-h"], 0), ([], 2), (["check"], 2)):
        line = [sys.executable, "-m", "onemodel_kernels", *arguments]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == code
        shown, silent = (done.stdout, done.stderr) if code == 0 else (done.stderr, done.stdout)
        assert shown.startswith("usage: python -m onemodel_kernels selfcheck")
        assert not silent


def test_every_instruction_set_and_thread_count_has_the_committed_bits() -> None:
    done = command()
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for name in available_isas():
        for threads in (1, 2):
            assert any(line.startswith(f"isa {name}, threads {threads}: ") for line in lines)
    assert lines[0].startswith("onemodel_kernels ") and lines[1].startswith("cpu ")
    assert lines[-1] == "ok"


@pytest.mark.parametrize(
    ("old", "new"),
    [("Tanh : float32[7]", "Sigmoid : float32[7]"), ("float32[7]", "float32[8]")],
)
def test_a_planted_change_names_the_kernel(tmp_path: Path, old: str, new: str) -> None:
    table = tmp_path / "table.txt"
    table.write_text(regenerated_table("# two kernels\n- Tanh : float32[7]\n- Abs : int8[5]\n"))
    assert command("--table", table, "--isa", "scalar").returncode == 0
    table.write_text(table.read_text().replace(old, new))
    done = command("--table", table, "--isa", "scalar", "--threads", 1)
    assert done.returncode == 1
    changed = new.partition(" ")[0] if " " in new else "Tanh"
    assert f"kernels that differ: {changed}\n" in done.stdout
    assert "1 differ" in done.stdout and "FAILED" in done.stdout


def test_writing_restores_a_table(tmp_path: Path) -> None:
    whole = "# comment\n" + "".join(f"{e} {c}\n" for c, e, _ in selfcheck(None)[:5])
    table = tmp_path / "table.txt"
    table.write_text(whole.replace(whole.splitlines()[1][:16], "-", 1))
    assert command("--write", table).returncode == 0
    assert table.read_text() == whole


def test_a_failing_kernel_is_reported_with_its_error() -> None:
    ((_, _, found),) = selfcheck("0123 Add : float32[2] float32[3]")
    assert "Add" in found and "broadcast" in found


@pytest.mark.parametrize(
    "arguments", [("--isa", "mmx"), ("--threads", "0"), ("--table", "missing.txt")]
)
def test_wrong_arguments_are_refused(arguments: tuple[str, ...]) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert "expected" in done.stderr
