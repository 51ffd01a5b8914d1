"""The sessions of the repository; ``nox --list`` shows them, ``nox -s tests`` runs all tests.

Every session installs built wheels, never the tree: a file that a wheel forgets fails here. Wheels
are built once for each state of their sources and kept in ``.wheelhouse``.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parent
WHEELHOUSE = ROOT / ".wheelhouse"
DEMO = "examples/digit_lines"
CUSTOM_OPERATOR = "examples/custom_operator"

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = True


@dataclass(frozen=True)
class Package:
    """One distribution.

    Args:
        name: its short name.
        folder: where its pyproject.toml is.
        needs: the siblings that it declares.
        tests: its test folder, below its own.
        of_extras: its modules that need an optional extra.
    """

    name: str
    folder: str
    needs: tuple[str, ...] = ()
    tests: str = "tests"
    of_extras: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        return f"onemodel_{self.name}"

    @property
    def project(self) -> dict[str, object]:
        return nox.project.load_toml(ROOT / self.folder / "pyproject.toml")

    @property
    def test_requirements(self) -> list[str]:
        return nox.project.dependency_groups(self.project, "test")

    @property
    def test_folder(self) -> str:
        return f"{self.folder}/{self.tests}"


PACKAGES = {
    package.name: package
    for package in (
        Package("kernels", "crates/kernels", tests="tests/python"),
        Package("tensors", "packages/onemodel-tensors", ("kernels",)),
        Package(
            "graph", "packages/onemodel-graph", ("kernels",), of_extras=("onemodel_graph.cli.app",)
        ),
        Package("trace", "packages/onemodel-trace", ("tensors", "graph")),
        Package("training", "packages/onemodel-training", ("tensors", "trace")),
    )
}
EVERY_NAME = tuple(PACKAGES)

LINT_REQUIREMENTS = ("ruff>=0.15", "import-linter>=2.3")
TYPE_REQUIREMENTS = ("mypy>=1.18", "pytest>=8")
DOCS_REQUIREMENTS = (
    "mkdocs-material>=9.6", "mkdocstrings[python]>=1.0", "matplotlib>=3.9", "pytest>=8",
)  # fmt: skip
PEER_REQUIREMENTS = ("onnxruntime>=1.20",)


def closure(names: tuple[str, ...]) -> tuple[str, ...]:
    """The packages with all the siblings that they need, providers first."""
    wanted = set(names)
    while more := {need for name in wanted for need in PACKAGES[name].needs} - wanted:
        wanted |= more
    return tuple(name for name in EVERY_NAME if name in wanted)


def environment() -> dict[str, str]:
    """The environment of every build: rustup's folder is on the path even if the shell lacks it."""
    cargo = str(Path.home() / ".cargo" / "bin")
    return {"PATH": f"{os.environ.get('PATH', '')}{os.pathsep}{cargo}"}


def source_hash(folder: Path) -> str:
    """A hash over the names and bytes of all that a wheel is built from."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", str(folder)],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    digest = hashlib.sha256()
    for name in sorted(filter(None, listing.split("\0"))):
        file = ROOT / name
        if "/tests/" in name or not file.is_file():
            continue
        content = file.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def wheel(session: nox.Session, package: Package) -> str:
    """The path of the package's wheel, built now unless these sources have been built before."""
    shelf = WHEELHOUSE / package.name
    folder = shelf / source_hash(ROOT / package.folder)
    if not list(folder.glob("*.whl")):
        shutil.rmtree(shelf, ignore_errors=True)
        session.run(
            "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder),
            str(ROOT / package.folder), env=environment(),
        )  # fmt: skip
    return str(next(folder.glob("*.whl")))


def install(session: nox.Session, names: tuple[str, ...], *requirements: str) -> None:
    """Install the wheels of the packages and of the siblings that they need."""
    wheels = [wheel(session, PACKAGES[name]) for name in closure(names)]
    session.install(*wheels, *requirements)


def run_pytest(session: nox.Session, *arguments: str) -> None:
    """pytest with the shared settings, whichever folders it is given."""
    session.run("python", "-m", "pytest", "-c", "pyproject.toml", "--rootdir=.", *arguments)


def run_lint(session: nox.Session) -> None:
    """Every check that reads the sources; needs all packages and LINT_REQUIREMENTS installed."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports", "--config", "pyproject.toml")
    session.run("python", "tools/check_file_length.py")
    session.run("python", "tools/check_operators.py")
    session.run("python", "tools/api_snapshot.py")
    session.run("python", "tools/operator_table.py", "--check")


def run_types(session: nox.Session) -> None:
    """mypy in strict mode over the sources of every package."""
    for package in PACKAGES.values():
        sources = "python" if package.name == "kernels" else "src"
        session.run("mypy", f"{package.folder}/{sources}/{package.module}")


def run_rust(session: nox.Session) -> None:
    """The crate by itself, without Python: formatting, clippy, tests."""
    crate = ("--manifest-path", "crates/kernels/Cargo.toml")
    cargo = {"external": True, "env": environment()}
    session.run("cargo", "fmt", "--check", *crate, **cargo)
    session.run("cargo", "clippy", "--all-targets", *crate, "--", "-D", "warnings", **cargo)
    session.run("cargo", "test", "--quiet", *crate, **cargo)


def run_isolation(session: nox.Session, package: Package) -> None:
    """Import the package's public modules; the siblings that it does not declare are absent."""
    absent = [PACKAGES[name].module for name in EVERY_NAME if name not in closure((package.name,))]
    script = ("tools/import_public_modules.py", package.module)
    lists = ("--absent", *absent, "--of-extras", *package.of_extras)
    session.run("python", "-W", "error", "-P", *script, *lists)


def make_unit(package: Package) -> None:
    @nox.session(name=f"unit-{package.name}")
    def unit(session: nox.Session) -> None:
        install(session, (package.name,), *package.test_requirements)
        run_pytest(session, package.test_folder, *session.posargs)

    unit.__doc__ = f"The tests of {package.module} on its wheel and its siblings' wheels."


def make_isolation(package: Package) -> None:
    @nox.session(name=f"isolation-{package.name}")
    def isolation(session: nox.Session) -> None:
        install(session, (package.name,))
        run_isolation(session, package)

    isolation.__doc__ = f"{package.module} imports with its declared dependencies alone."


for _package in PACKAGES.values():
    make_unit(_package)
    make_isolation(_package)


def integration_requirements() -> tuple[str, ...]:
    """What the tests of all packages together need, the example included."""
    return (f"./{DEMO}", *PEER_REQUIREMENTS, "pytest>=8", "hypothesis>=6.100", "mktestdocs>=0.2.4")


@nox.session
def integration(session: nox.Session) -> None:
    """The tests that need several packages: the main job, the promises, agreement with peers."""
    install(session, EVERY_NAME, *integration_requirements())
    run_pytest(session, "tests/integration", *session.posargs)


@nox.session
def rust(session: nox.Session) -> None:
    """The kernels crate without Python: formatting, clippy, tests."""
    run_rust(session)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, ruff, the arrows between packages, file lengths, operators, public surfaces."""
    install(session, EVERY_NAME, *LINT_REQUIREMENTS, "pytest>=8", "hypothesis>=6.100")
    run_lint(session)


@nox.session
def types(session: nox.Session) -> None:
    """mypy in strict mode."""
    install(session, EVERY_NAME, *TYPE_REQUIREMENTS)
    run_types(session)


@nox.session
def demo(session: nox.Session) -> None:
    """The main job on handwriting; options go behind ``--``, as ``-- --epochs 3``."""
    install(session, EVERY_NAME, f"./{DEMO}")
    session.run("python", "-m", "digit_lines", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation in out/site, warnings as errors; generated pages must be up to date."""
    install(session, EVERY_NAME, *DOCS_REQUIREMENTS)
    for generator in ("operator_table", "docs/kernel_pages", "docs/comparison"):
        session.run("python", f"tools/{generator}.py", "--check")
    session.run(
        "mkdocs", "build", "--strict", "--config-file", "tools/docs/mkdocs.yml",
        env={"NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip


@nox.session(name="docs-generate")
def docs_generate(session: nox.Session) -> None:
    """Write the generated pages and draw the pictures again."""
    install(session, EVERY_NAME, *DOCS_REQUIREMENTS)
    for generator in ("operator_table", "docs/kernel_pages", "docs/comparison", "docs/figures"):
        session.run("python", f"tools/{generator}.py")


@nox.session(name="example-custom-operator")
def example_custom_operator(session: nox.Session) -> None:
    """Operators registered from outside the packages, one in Python and one in Rust."""
    project = nox.project.load_toml(ROOT / CUSTOM_OPERATOR / "pyproject.toml")
    requirements = nox.project.dependency_groups(project, "test")
    install(session, ("trace",), *requirements)
    session.install(f"./{CUSTOM_OPERATOR}", env=environment())
    run_pytest(session, f"{CUSTOM_OPERATOR}/tests", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Session against ONNX Runtime, interleaved in one run, as ratios."""
    install(session, EVERY_NAME, *PEER_REQUIREMENTS, "rich>=13.7")
    session.run("python", "tools/bench", *session.posargs)


@nox.session(name="bench-crate")
def bench_crate(session: nox.Session) -> None:
    """Products and convolutions in GFLOP/s, beside the FMA peak measured in the same run."""
    crate = ("--manifest-path", "crates/kernels/Cargo.toml")
    threads = session.posargs or ["1"]
    session.run(
        "cargo", "bench", *crate, "--bench", "products", "--", *threads,
        external=True, env=environment(),
    )  # fmt: skip


@nox.session
def conformance(session: nox.Session) -> None:
    """ONNX's backend suite by group and opset, and by operator where a case fails."""
    graph = PACKAGES["graph"]
    install(session, (graph.name,), *graph.test_requirements)
    session.run("python", f"{graph.test_folder}/conformance/suite.py", *session.posargs)


@nox.session
def local(session: nox.Session) -> None:
    """What a contributor runs before a commit: everything but the slow tests and the isolation."""
    install_for_all(session)
    run_lint(session)
    run_types(session)
    run_rust(session)
    run_pytest(session, "-m", "not slow", *every_test_folder(), *session.posargs)


@nox.session(venv_backend="none")
def tests(session: nox.Session) -> None:
    """All tests: isolation in environments of their own, then everything else in one."""
    for name in EVERY_NAME:
        session.notify(f"isolation-{name}")
    session.notify("everything")


@nox.session(default=False)
def everything(session: nox.Session) -> None:
    """Lint, types, the crate and every Python test, in one environment."""
    install_for_all(session)
    run_lint(session)
    run_types(session)
    run_rust(session)
    run_pytest(session, *every_test_folder(), *session.posargs)


def install_for_all(session: nox.Session) -> None:
    """All wheels and all that their tests, the example and the checks need."""
    requirements = {
        requirement for package in PACKAGES.values() for requirement in package.test_requirements
    }
    requirements.update(LINT_REQUIREMENTS, TYPE_REQUIREMENTS, integration_requirements())
    install(session, EVERY_NAME, *sorted(requirements))


def every_test_folder() -> list[str]:
    """The test folders of the packages, providers first, then the one of all together."""
    return [*(package.test_folder for package in PACKAGES.values()), "tests/integration"]
