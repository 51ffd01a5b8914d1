"""Checks what is in wheels and sdists, and that each sdist builds the wheel by itself.

    python tools/check_distribution.py --build DIR graph     build both of a package, and check them
    python tools/check_distribution.py --build DIR --install kernels graph     and install the sdists
    python tools/check_distribution.py WHEEL_OR_SDIST...     check files

A wheel holds the package, its type marker and its licence and nothing else; the native wheel carries
the stable ABI of the oldest Python and only symbols of a manylinux policy. With ``--install`` each
sdist is installed in an empty environment, with wheels of its siblings that were built before it, and
all of its modules are imported there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path

from distributions import PACKAGES, PYTHONS, ROOT, Package, closure

NATIVE = "kernels"
GLIBC_LIMIT = (2, 34)
"""The newest C library that the native module may need: that of Debian 12, Ubuntu 22.04, RHEL 9."""
NOT_SHIPPED = re.compile(
    r"(^|/)(tests?|target|__pycache__|\.hypothesis|changes)/|(^|/)(test_[^/]*|conftest)\.py$|\.pyc$"
)
SDIST_LIMIT = 3_000_000


def package_of(file: Path) -> Package:
    """The package that a file's name says."""
    name = re.split(r"-\d", file.name)[0].replace("_", "-").removeprefix("onemodel-")
    if name not in PACKAGES:
        sys.exit(f"{file.name}: no package of this repository has this name")
    return PACKAGES[name]


def wheel_problems(file: Path, package: Package) -> list[str]:
    """One line for each thing that should not be as it is."""
    with zipfile.ZipFile(file) as archive:
        names = archive.namelist()
        metadata_name = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(metadata_name).decode())
    info = metadata_name.partition("/")[0]
    found = [
        f"{name} is shipped"
        for name in names
        if NOT_SHIPPED.search(name) and not name.startswith(f"{package.module}/testing/")
    ]
    found += [
        f"{name} is outside the package"
        for name in names
        if not name.startswith((f"{package.module}/", f"{info}/"))
    ]
    needed = [f"{package.module}/py.typed", f"{info}/licenses/LICENSE"]
    found += [f"{name} is missing" for name in needed if name not in names]
    if metadata["License-Expression"] != "Apache-2.0":
        found.append(f"the licence in the metadata is {metadata['License-Expression']}")
    if not metadata.get_payload().strip():
        found.append("there is no description: the package's README.md is missing")
    size = file.stat().st_size
    if size > package.wheel_limit:
        found.append(f"{size:,} bytes, the limit is {package.wheel_limit:,}")
    return found + tag_problems(file, package, names)


def tag_problems(file: Path, package: Package, names: list[str]) -> list[str]:
    """Whether the wheel says where it runs, and its native module is alone."""
    python, abi, platform = file.stem.split("-")[-3:]
    modules = [name for name in names if re.search(r"\.(so|pyd|dylib)$", name)]
    if package.name != NATIVE:
        found = [] if (python, abi, platform) == ("py3", "none", "any") else [f"tagged {file.stem}"]
        return found + [f"{name} is native code" for name in modules]
    oldest = f"cp{PYTHONS[0].replace('.', '')}"
    found = [] if (python, abi) == (oldest, "abi3") else [f"not for {oldest}-abi3: {file.stem}"]
    if len(modules) != 1:
        found.append(f"expected one native module, found {modules}")
    return found


def manylinux_problems(file: Path) -> list[str]:
    """What keeps a native wheel from the machines that it is meant for (Linux only)."""
    if not sys.platform.startswith("linux"):
        return []
    result = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", str(file)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    text = " ".join(result.stdout.split())
    print(f"  auditwheel: {text}" if result.returncode == 0 else result.stderr)
    policy = re.search(r'"manylinux_(\d+)_(\d+)_\w+"', text)
    if policy is None:
        return ["auditwheel finds no manylinux policy that it keeps"]
    needed = (int(policy[1]), int(policy[2]))
    if needed > GLIBC_LIMIT:
        return [f"it needs glibc {needed[0]}.{needed[1]}, the limit is 2.{GLIBC_LIMIT[1]}"]
    return []


def sdist_problems(file: Path, package: Package) -> list[str]:
    """One line for each file that is missing or too much, and for the size."""
    with tarfile.open(file) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    needed = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"]
    needed += ["Cargo.toml", "Cargo.lock", "src/lib.rs"] if package.name == NATIVE else []
    found = [f"{name} is missing" for name in needed if name not in names]
    found += [
        f"{name} is shipped"
        for name in sorted(names)
        if re.search(r"(^|/)(target|__pycache__|\.hypothesis)/|\.(pyc|so)$", name)
    ]
    size = file.stat().st_size
    if size > SDIST_LIMIT:
        found.append(f"{size:,} bytes, the limit is {SDIST_LIMIT:,}")
    return found


def problems(file: Path) -> list[str]:
    """All problems of a wheel or an sdist, each with the file's name."""
    package = package_of(file)
    if file.suffix == ".whl":
        found = wheel_problems(file, package)
        if package.name == NATIVE:
            found += manylinux_problems(file)
    else:
        found = sdist_problems(file, package)
    print(f"{file.name}: {file.stat().st_size:,} bytes")
    return [f"{file.name}: {line}" for line in found]


def build(package: Package, folder: Path, *settings: str) -> list[Path]:
    """Build the sdist, and from its unpacked sources alone the wheel; both land in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{package.module}-*"):
        old.unlink()
    subprocess.run(
        [
            sys.executable, "-m", "build", "--outdir", str(folder), *settings,
            str(ROOT / package.folder),
        ],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return sorted(folder.glob(f"{package.module}-*"))


def install_problems(file: Path, wheels: Iterable[Path]) -> list[str]:
    """Installs a wheel or an sdist in an empty environment and imports every public module.

    ``wheels`` are those of its siblings; all else that it declares comes from the index.
    """
    package = package_of(file)
    needed = closure((package.name,))
    siblings = [str(wheel) for wheel in wheels if package_of(wheel).name in needed[:-1]]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(Path(folder) / "venv", with_pip=True)
        python = (
            Path(folder) / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        )
        command = [str(python), "-m", "pip", "install", "--quiet", *siblings, str(file)]
        if subprocess.run(command, check=False).returncode:
            return [f"{file.name}: it does not install"]
        absent = [other.module for other in PACKAGES.values() if other.name not in needed]
        script = str(ROOT / "tools" / "import_public_modules.py")
        lists = ["--absent", *absent, "--of-extras", *package.of_extras]
        command = [str(python), "-W", "error", "-P", script, package.module, *lists]
        if subprocess.run(command, cwd=folder, check=False).returncode:
            return [f"{file.name}: a module does not import: see above"]
    print(f"{file.name}: installs alone and imports")
    return []


def main(arguments: list[str] | None = None) -> int:
    """Build if asked, and check: 1 with one line for each problem."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", metavar="DIR", type=Path, help="build packages into this folder")
    parser.add_argument("--install", action="store_true", help="install the sdists and import")
    parser.add_argument("names", nargs="+", help="packages to build, or files to check")
    options = parser.parse_args(arguments)
    if options.build is not None:
        files = [file for name in options.names for file in build(PACKAGES[name], options.build)]
    else:
        files = [Path(name) for name in options.names]
    found = [line for file in files for line in problems(file)]
    if options.install:
        wheels = [file for file in files if file.suffix == ".whl"]
        sdists = [file for file in files if file.suffix == ".gz"]
        found += [line for file in sdists for line in install_problems(file, wheels)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
