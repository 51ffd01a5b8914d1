"""Fails unless the named versions are what is installed: ``check_installed.py numpy==1.26 onnx==1.19``.

A session that tests old versions is worth nothing if the installer chose newer ones.
"""

from __future__ import annotations

import sys
from importlib import metadata

from packaging.requirements import Requirement


def problems(stated: list[str]) -> list[str]:
    """One line for each requirement that the environment does not meet."""
    found = []
    for text in stated:
        requirement = Requirement(text)
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            found.append(f"{requirement}: not installed")
            continue
        if not requirement.specifier.contains(version, prereleases=True):
            found.append(f"{requirement}: {version} is installed")
    return found


def main() -> int:
    """Print the installed versions of the named packages; 1 if one is another."""
    for text in sys.argv[1:]:
        name = Requirement(text).name
        try:
            print(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name} is not installed")
    wrong = problems(sys.argv[1:])
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
