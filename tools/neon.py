"""The crate's tests on AArch64, emulated: ``nox -s neon``.

Makes a Debian system of this machine's architecture in a folder, with a Rust compiler, the standard
library of AArch64, a linker and QEMU, then builds the tests there and runs them under QEMU. Needs
Linux, root and debootstrap; the first run downloads about 400 MB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

SUITE = "trixie"
COMPILER_SUITE = "trixie-backports"
COMPILER = ("rustc", "cargo", "libstd-rust-dev", "libstd-rust-dev:arm64")
PLATFORM = ("gcc", "libc6-dev", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user")
TARGET = "aarch64-unknown-linux-gnu"
CRATE = Path("crates/kernels")
SOURCES = ("src", "tests", "benches", "Cargo.toml", "Cargo.lock")
VENDORED = """[source.crates-io]
replace-with = "vendored-sources"
[source.vendored-sources]
directory = "/build/vendor"
"""


def inside(system: Path, *command: str, environment: Sequence[str] = ()) -> None:
    """Run a command in the system."""
    variables = ["HOME=/root", "CARGO_HOME=/build/cargo", *environment]
    subprocess.run(["chroot", str(system), "env", *variables, *command], check=True)


def install(system: Path) -> None:
    """The system with its packages, unless it is there."""
    done = system / "installed"
    if done.exists():
        return
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise SystemExit("neon: expected root and debootstrap; install the package debootstrap")
    if not (system / "usr" / "bin" / "apt-get").exists():
        subprocess.run(["debootstrap", "--variant=minbase", SUITE, str(system)], check=True)
    lists = system / "etc" / "apt"
    source = next(
        line
        for line in (lists / "sources.list").read_text().splitlines()
        if line.startswith("deb ")
    )
    newer = source.replace(SUITE, COMPILER_SUITE, 1)
    (lists / "sources.list.d" / "backports.list").write_text(newer + "\n")
    inside(system, "dpkg", "--add-architecture", "arm64")
    inside(system, "apt-get", "update", "-q")
    get = ("apt-get", "install", "-y", "-q", "--no-install-recommends")
    inside(system, *get, "-t", COMPILER_SUITE, *COMPILER)
    inside(system, *get, *PLATFORM)
    done.touch()


def copy_sources(system: Path) -> None:
    """The crate and its dependencies, which cargo fetches outside of the system."""
    build = system / "build"
    crate = build / "kernels"
    vendor = [
        "cargo",
        "vendor",
        "--locked",
        "--quiet",
        "--manifest-path",
        str(CRATE / "Cargo.toml"),
    ]
    subprocess.run([*vendor, str(build / "vendor")], check=True, stdout=subprocess.DEVNULL)
    (crate / ".cargo").mkdir(parents=True, exist_ok=True)
    (crate / ".cargo" / "config.toml").write_text(VENDORED)
    for name in SOURCES:
        source, target = CRATE / name, crate / name
        if source.is_dir():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("python", "__pycache__"))
        else:
            shutil.copy2(source, target)
    if (CRATE / "src" / "python").is_dir():
        shutil.copytree(CRATE / "src" / "python", crate / "src" / "python")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--system", type=Path, default=Path(".neon"), help="folder of the system")
    parser.epilog = "Other arguments go to cargo test."
    options, tests = parser.parse_known_args()
    system = options.system.resolve()
    install(system)
    copy_sources(system)
    prefix = f"CARGO_TARGET_{TARGET.upper().replace('-', '_')}"
    environment = [
        f"CARGO_BUILD_TARGET={TARGET}",
        f"{prefix}_LINKER=aarch64-linux-gnu-gcc",
        f"{prefix}_RUNNER=qemu-aarch64 -L /usr/aarch64-linux-gnu",
        # Optimising once more across the parts of the crate would take as long again.
        "CARGO_INCREMENTAL=0",
        "CARGO_PROFILE_TEST_LTO=off",
    ]
    cargo = ["cargo", "test", "--offline", "--no-fail-fast", *tests]
    inside(system, "sh", "-c", 'cd /build/kernels && exec "$@"', "sh", *cargo,
           environment=environment)  # fmt: skip


if __name__ == "__main__":
    main()
