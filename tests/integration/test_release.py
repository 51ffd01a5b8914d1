"""The checklist of a release, the contents of distributions and the lock find what they are for."""

from __future__ import annotations

import importlib
import subprocess
import tarfile
import types
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """The modules of tools/ by name."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    names = ("distributions", "lock", "check_installed", "check_distribution", "release", "audit")
    return types.SimpleNamespace(**{name: importlib.import_module(name) for name in names})


def git(root: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


def write_package(root: Path, folder: str, version: str, dependencies: list[str]) -> None:
    target = root / folder
    (target / "changes").mkdir(parents=True, exist_ok=True)
    name = f"onemodel-{'kernels' if 'crates' in folder else folder.rpartition('-')[2]}"
    (target / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "{version}"\ndependencies = {dependencies!r}\n'
        '[project.optional-dependencies]\nextra = ["rich>=13.7", "numpy>=1.27"]\n'
        '[dependency-groups]\ntest = ["pytest>=8"]\n'
    )
    (target / "CHANGELOG.md").write_text(
        f"# {name}\n\n<!-- towncrier release notes start -->\n\n## {version} (2026-01-02)\n"
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Kernels 0.1.0 and 0.1.1 and 0.2.0 released, graph 0.1.0 about to be."""
    git(tmp_path, "init", "--quiet")
    write_package(tmp_path, "packages/onemodel-graph", "0.1.0", ["onemodel-kernels>=0.1,<0.2"])
    for version in ("0.1.1", "0.1.0", "0.2.0"):
        write_package(tmp_path, "crates/kernels", version, ["numpy>=1.26"])
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "--allow-empty", "-m", version)
        git(tmp_path, "tag", f"onemodel-kernels-v{version}")
    return tmp_path


def of(tool: types.SimpleNamespace, repository: Path, name: str) -> object:
    return tool.release.Release(tool.distributions.PACKAGES[name], repository)


def test_a_release_in_order_passes_what_needs_no_build(
    tool: types.SimpleNamespace, repository: Path
) -> None:
    release = of(tool, repository, "graph")
    for check in ("clean_tree", "version_and_tag", "floors", "changelog"):
        assert getattr(tool.release, check)(release) == []


def test_a_change_that_is_not_committed(tool: types.SimpleNamespace, repository: Path) -> None:
    (repository / "new.txt").write_text("x")
    assert tool.release.clean_tree(of(tool, repository, "graph")) == ["not committed: new.txt"]


def test_a_version_that_was_released_elsewhere_or_passed(
    tool: types.SimpleNamespace, repository: Path
) -> None:
    kernels = of(tool, repository, "kernels")
    assert tool.release.version_and_tag(kernels) == []
    git(repository, "commit", "--allow-empty", "-q", "-m", "more")
    (found,) = tool.release.version_and_tag(kernels)
    assert found.startswith("the tag onemodel-kernels-v0.2.0 is another commit")
    write_package(repository, "crates/kernels", "0.1.5", [])
    assert tool.release.version_and_tag(kernels) == ["0.1.5 is below the released 0.2.0"]
    write_package(repository, "crates/kernels", "0.3.0rc1", [])
    (repository / "crates/kernels/Cargo.toml").write_text('[package]\nversion = "0.2.0"\n')
    assert tool.release.version_and_tag(kernels) == [
        "0.3.0rc1 is a pre-release",
        "Cargo.toml states 0.2.0, pyproject.toml 0.3.0rc1",
    ]


@pytest.mark.parametrize(
    ("range_", "problem"),
    [
        ("onemodel-kernels>=0.3,<0.4", "no tagged release is in this range"),
        ("onemodel-kernels==0.1.0", "expected a range of the form"),
        ("onemodel-kernels>=0.1", "expected a range of the form"),
    ],
)
def test_a_floor_that_no_release_meets(
    tool: types.SimpleNamespace, repository: Path, range_: str, problem: str
) -> None:
    write_package(repository, "packages/onemodel-graph", "0.1.0", [range_])
    (found,) = tool.release.floors(of(tool, repository, "graph"))
    assert problem in found


def test_fragments_and_an_old_newest_entry(tool: types.SimpleNamespace, repository: Path) -> None:
    folder = repository / "packages/onemodel-graph"
    (folder / "changes/+more.added.md").write_text("More.")
    text = (folder / "pyproject.toml").read_text().replace("0.1.0", "0.2.0", 1)
    (folder / "pyproject.toml").write_text(text)
    found = tool.release.changelog(of(tool, repository, "graph"))
    assert found[0] == "not collected: changes/+more.added.md"
    assert found[1].startswith("the newest entry of CHANGELOG.md is 0.1.0, not 0.2.0")


def test_the_changelog_is_collected_by_towncrier(
    tool: types.SimpleNamespace, repository: Path
) -> None:
    folder = repository / "packages/onemodel-graph"
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (repository / "pyproject.toml").write_text(settings, encoding="utf-8")
    text = (folder / "pyproject.toml").read_text().replace("0.1.0", "0.2.0", 1)
    (folder / "pyproject.toml").write_text(text)
    (folder / "changes/+more.added.md").write_text("More of it.")
    git(repository, "add", ".")
    release = of(tool, repository, "graph")
    assert tool.release.collect(release) == 0
    assert tool.release.changelog(release) == []
    content = (folder / "CHANGELOG.md").read_text()
    assert content.index("## 0.2.0") < content.index("More of it.") < content.index("## 0.1.0")
    assert tool.release.collect(release) == 1


def test_the_oldest_release_in_a_range(tool: types.SimpleNamespace, repository: Path) -> None:
    from packaging.requirements import Requirement

    def oldest(text: str) -> str:
        return str(tool.distributions.oldest_release(Requirement(text), repository))

    assert oldest("onemodel-kernels>=0.1,<0.2") == "0.1.0"
    assert oldest("onemodel-kernels>=0.1.1,<0.2") == "0.1.1"
    assert oldest("onemodel-kernels>=0.2,<0.3") == "0.2.0"
    assert oldest("onemodel-kernels>=0.3,<0.4") == "None"


def test_foreign_floors_are_the_highest_of_all_packages(
    tool: types.SimpleNamespace, repository: Path
) -> None:
    found = tool.distributions.foreign_floors(("kernels", "graph"), repository)
    assert {name: str(version) for name, version in found.items()} == {
        "numpy": "1.27",
        "rich": "13.7",
    }


def test_a_wheel_is_built_again_for_its_sources_alone(
    tool: types.SimpleNamespace, repository: Path
) -> None:
    folder = repository / "packages" / "onemodel-graph"
    before = tool.distributions.source_hash(folder, repository)
    for name in ("CHANGELOG.md", "changes/+x.added.md", "tests/test_x.py", "benches/x.rs"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("another text")
        assert tool.distributions.source_hash(folder, repository) == before
    for name in ("README.md", "src/x.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("another text")
        after = tool.distributions.source_hash(folder, repository)
        assert after != before
        before = after


def test_another_installed_version_is_named(tool: types.SimpleNamespace) -> None:
    version = importlib.metadata.version("pytest")
    assert tool.check_installed.problems([f"pytest=={version}"]) == []
    assert tool.check_installed.problems(["pytest==1.0", "no-such-package==1"]) == [
        f"pytest==1.0: {version} is installed",
        "no-such-package==1: not installed",
    ]


def test_a_requirement_without_or_outside_its_pin(tool: types.SimpleNamespace) -> None:
    from packaging.requirements import Requirement

    pins = "# a comment\nnumpy==1.26.4 ; python_version < '3.12'\nnumpy==2.3.0\nrich==13.0\n"
    wanted = [Requirement(text) for text in ("numpy>=1.26", "rich>=13.7", "onnx>=1.19")]
    assert tool.lock.problems(wanted, pins) == [
        "rich>=13.7: 13.0 is locked",
        "onnx>=1.19: no version is locked",
    ]
    assert tool.lock.problems(tool.lock.stated(), tool.lock.LOCK.read_text()) == []


def graph_wheel(folder: Path, extra: dict[str, str], name: str = "py3-none-any") -> Path:
    path = folder / f"onemodel_graph-0.1.0-{name}.whl"
    info = "onemodel_graph-0.1.0.dist-info"
    files = {
        "onemodel_graph/__init__.py": "",
        "onemodel_graph/py.typed": "",
        f"{info}/METADATA": "Name: onemodel-graph\nLicense-Expression: Apache-2.0\n\nWhat it is.",
        f"{info}/licenses/LICENSE": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, **extra}.items():
            if text != "absent":
                archive.writestr(file, text)
    return path


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ({"onemodel_graph/tests/test_a.py": ""}, "onemodel_graph/tests/test_a.py is shipped"),
        ({"onemodel_graph/__pycache__/a.pyc": ""}, "__pycache__/a.pyc is shipped"),
        ({"tests/data.bin": ""}, "tests/data.bin is outside the package"),
        ({"onemodel_graph/py.typed": "absent"}, "onemodel_graph/py.typed is missing"),
        ({"onemodel_graph/fast.so": ""}, "fast.so is native code"),
        ({"onemodel_graph-0.1.0.dist-info/licenses/LICENSE": "absent"}, "LICENSE is missing"),
        (
            {"onemodel_graph-0.1.0.dist-info/METADATA": "Name: a\n\n"},
            "the licence in the metadata is None",
        ),
        ({"onemodel_graph/big.py": "x" * 600_000}, "bytes, the limit is 500,000"),
    ],
)
def test_a_wheel_with_something_wrong(
    tool: types.SimpleNamespace, tmp_path: Path, extra: dict[str, str], problem: str
) -> None:
    assert tool.check_distribution.problems(graph_wheel(tmp_path, {})) == []
    found = tool.check_distribution.problems(graph_wheel(tmp_path, extra))
    assert any(problem in line for line in found)


def test_a_wheel_for_one_python_only(tool: types.SimpleNamespace, tmp_path: Path) -> None:
    check = tool.check_distribution
    (found,) = check.problems(graph_wheel(tmp_path, {}, "cp311-cp311-linux_x86_64"))
    assert "tagged onemodel_graph-0.1.0-cp311-cp311-linux_x86_64" in found
    kernels = tool.distributions.PACKAGES["kernels"]
    native = ["onemodel_kernels/_native.abi3.so"]
    good = Path("onemodel_kernels-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl")
    assert check.tag_problems(good, kernels, native) == []
    assert check.tag_problems(good, kernels, []) == ["expected one native module, found []"]
    other = Path("onemodel_kernels-0.1.0-cp312-cp312-linux_x86_64.whl")
    assert check.tag_problems(other, kernels, native)[0].startswith("not for cp311-abi3")


def test_an_sdist_without_its_licence(tool: types.SimpleNamespace, tmp_path: Path) -> None:
    path = tmp_path / "onemodel_graph-0.1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "PKG-INFO", "a.pyc"):
            archive.addfile(tarfile.TarInfo(f"onemodel_graph-0.1.0/{name}"))
    assert [line.partition(": ")[2] for line in tool.check_distribution.problems(path)] == [
        "LICENSE is missing",
        "a.pyc is shipped",
    ]


def test_an_audit_that_did_not_happen_is_no_clean_one(
    tool: types.SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    clean = {"name": "numpy", "version": "2.0", "vulns": []}
    skipped = {"name": "onnx", "skip_reason": "not found"}
    known = {"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}
    assert tool.audit.verdict([clean]) == []
    assert "checked: 1 of 1 packages, 0 known vuln" in capsys.readouterr().out
    assert tool.audit.verdict([clean, skipped])[0].startswith("NOT checked: 1 packages")
    assert "checked: 1 of 2 packages" in capsys.readouterr().out
    assert tool.audit.verdict([known]) == ["a 1: X-1, fixed in ['2']"]
    assert tool.audit.pinned("a==1 ; python_version < '3'\nb==2\n") == ["b==2"]
