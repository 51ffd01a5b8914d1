"""Every block of Python in the documentation runs, page by page, and so do all doctests."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "docs" / "tutorial.md",
        *(ROOT / "docs" / "how-to").glob("*.md"),
        *(ROOT / "packages").glob("*/README.md"),
        ROOT / "crates" / "kernels" / "README.md",
    ]
)
PACKAGES = (
    "onemodel_kernels",
    "onemodel_tensors",
    "onemodel_graph",
    "onemodel_trace",
    "onemodel_training",
)
COMMAND = re.compile(r"^    python (-m onemodel_graph .*)$", re.MULTILINE)
RUN = """
import sys
from mktestdocs import check_md_file
check_md_file(sys.argv[1], memory=True)
"""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_blocks_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    assert "```python" in page.read_text(encoding="utf-8"), f"{page} shows nothing that runs"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RUN, str(page)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for line in COMMAND.findall(page.read_text(encoding="utf-8")):
        done = subprocess.run(
            [sys.executable, *shlex.split(line, comments=True)],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, line + done.stdout + done.stderr


def modules() -> Iterator[str]:
    """Every module of the packages whose requirements are there."""
    for package in PACKAGES:
        yield package
        top = importlib.import_module(package)
        for info in pkgutil.walk_packages(top.__path__, f"{package}."):
            if not info.name.endswith("__main__"):
                yield info.name


def test_doctests() -> None:
    tried = 0
    for name in modules():
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as missing:
            assert not str(missing.name).startswith("onemodel"), missing
            continue
        failed, attempted = doctest.testmod(module)
        assert failed == 0, name
        tried += attempted
    assert tried >= 20


def test_the_page_of_passes_lists_every_pass_with_its_modes() -> None:
    from onemodel_graph.passes.pipeline import PASSES

    text = (ROOT / "docs" / "graph-passes.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| ([a-z-]+) \| (both|fast) \|", text, re.MULTILINE))
    assert told == {entry.name: "both" if "exact" in entry.modes else "fast" for entry in PASSES}
