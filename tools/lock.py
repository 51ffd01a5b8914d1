"""Writes or checks ``.ci/constraints.txt``: the one version of each package that sessions install.

    python tools/lock.py            resolve what the repository names, for all supported Pythons
    python tools/lock.py --check    fail when a requirement is missing there or its version left the range

The sessions ``oldest-*`` and ``prerelease`` install other versions on purpose. Upgrading is running
this again: it takes the newest versions that fit.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from distributions import PACKAGES, PYTHONS, ROOT, SESSION_REQUIREMENTS, sibling

LOCK = ROOT / ".ci" / "constraints.txt"
HEADER = "# The versions that sessions install; written by: nox -s lock\n"


def stated(root: Path = ROOT) -> list[Requirement]:
    """Every requirement on others that a pyproject.toml or the table of sessions names."""
    texts = list(SESSION_REQUIREMENTS)
    folders = [root / package.folder for package in PACKAGES.values()]
    folders += sorted(path.parent for path in (root / "examples").glob("*/pyproject.toml"))
    for folder in folders:
        settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        project = settings.get("project", {})
        texts += settings.get("build-system", {}).get("requires", [])
        texts += project.get("dependencies", [])
        for group in project.get("optional-dependencies", {}).values():
            texts += group
        for group in settings.get("dependency-groups", {}).values():
            texts += [entry for entry in group if isinstance(entry, str)]
    found = {str(requirement): requirement for requirement in map(Requirement, texts)}
    return [found[text] for text in sorted(found) if sibling(found[text]) is None]


def locked(text: str) -> dict[str, list[Requirement]]:
    """The pins by name; a package may have one for each of several Pythons."""
    pins: dict[str, list[Requirement]] = {}
    for line in text.splitlines():
        content = line.partition("#")[0].strip()
        if content:
            requirement = Requirement(content)
            pins.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pins


def problems(requirements: list[Requirement], text: str) -> list[str]:
    """One line for each requirement that has no pin or one outside its range."""
    pins = locked(text)
    found = []
    for requirement in requirements:
        own = pins.get(canonicalize_name(requirement.name), [])
        if not own and not (requirement.name.startswith("onemodel") or requirement.url):
            found.append(f"{requirement}: no version is locked")
        for pin in own:
            (exact,) = pin.specifier
            if not requirement.specifier.contains(exact.version):
                found.append(f"{requirement}: {exact.version} is locked")
    return found


def write() -> None:
    """Resolve and write the lock."""
    source = "\n".join(str(entry) for entry in stated() if not entry.url) + "\n"
    result = subprocess.run(
        [
            sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--no-header",
            "--system-certs", "--no-annotate", "--python-version", PYTHONS[0], "-",
        ],
        input=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode:
        sys.exit(f"nothing was written: {result.stderr}")
    LOCK.write_text(HEADER + result.stdout, encoding="utf-8")
    print(f"{LOCK.relative_to(ROOT)}: {len(locked(result.stdout))} packages")


def main(arguments: list[str] | None = None) -> int:
    """Write the lock, or with ``--check`` compare: 1 when it is stale."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    if not parser.parse_args(arguments).check:
        write()
        return 0
    found = problems(stated(), LOCK.read_text(encoding="utf-8"))
    for line in found:
        print(f"{line}; run: nox -s lock", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
