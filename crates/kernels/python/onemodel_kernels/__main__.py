"""The commands of the package: ``python -m onemodel_kernels selfcheck``."""

from __future__ import annotations

import sys

from onemodel_kernels.selfcheck import main

USAGE = "usage: python -m onemodel_kernels selfcheck [options]; --help lists them"


def run(arguments: list[str]) -> int:
    """Run the named command; returns its exit code."""
    if not arguments or arguments[0] != "selfcheck":
        sys.stderr.write(USAGE + "\n")
        return 2
    return main(arguments[1:])


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
