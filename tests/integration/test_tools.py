"""The checks of tools/ find what they are for."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import types
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def load(name: str) -> types.ModuleType:
    specification = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    # Dataclasses look their module up by its name.
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    return tmp_path


def test_a_long_file_is_named_with_its_length(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "long.py").write_text("x = 1\n" * 601)
    (repository / "short.rs").write_text("fn f() {}\n" * 600)
    (repository / "long.txt").write_text("words\n" * 900)
    tool = load("check_file_length")
    monkeypatch.setattr(tool, "ALLOWED", {})
    found = tool.problems(repository)
    assert len(found) == 1
    assert found[0].startswith("long.py: 601 lines")


def test_an_allowance_that_is_not_needed_is_named(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = load("check_file_length")
    (repository / "one.py").write_text("x = 1\n" * 700)
    (repository / "two.py").write_text("x = 1\n")
    monkeypatch.setattr(tool, "ALLOWED", {"one.py": "a table", "two.py": "was long once"})
    found = tool.problems(repository)
    assert len(found) == 1
    assert found[0].startswith("two.py: listed")


def test_surface_lists_public_names_with_signatures() -> None:
    lines = load("api_snapshot").surface("onemodel_kernels").splitlines()
    assert (
        "onemodel_kernels.interfaces.require(consumer: str, needs: Sequence[Need]) -> None" in lines
    )
    assert any(line.startswith("class onemodel_kernels.errors.ShapeError(") for line in lines)
    assert not any("._found" in line for line in lines)


def test_a_package_with_an_undeclared_sibling_fails_isolation() -> None:
    result = subprocess.run(
        [
            sys.executable, str(TOOLS / "import_public_modules.py"), "onemodel_graph",
            "--absent", "onemodel_tensors",
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert (
        "onemodel_tensors is installed although onemodel_graph does not declare it" in result.stderr
    )


def test_a_stale_operator_table_is_named_with_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, page = load("operator_table"), tmp_path / "operators.md"
    monkeypatch.setattr(tool, "PAGE", page)
    assert tool.main(["--check"]) == 1
    assert tool.main([]) == 0
    assert tool.main(["--check"]) == 0
    capsys.readouterr()
    page.write_text(page.read_text(encoding="utf-8").replace("| Exp |", "| Power |"), "utf-8")
    assert tool.main(["--check"]) == 1
    assert "+| `exp(input)` | Exp | Exp |" in capsys.readouterr().out


def test_the_operator_table_names_the_case_that_fails() -> None:
    tool = load("operator_table")

    def broken() -> object:
        raise ValueError("not today")

    case = tool.Case("exp: broken", broken, ())
    with pytest.raises(SystemExit, match=r"case 'exp: broken': .*not today"):
        tool.row("exp", [case])
