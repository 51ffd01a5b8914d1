"""The commands of the package: ``python -m onemodel_kernels selfcheck``."""

from __future__ import annotations

import sys

from onemodel_kernels.selfcheck import main

USAGE = """\
usage: python -m onemodel_kernels selfcheck [options]

  selfcheck   compare the bits that this machine computes with hashes that come with the package

python -m onemodel_kernels selfcheck --help lists its options.
"""


def run(arguments: list[str]) -> int:
    """Run the named command; returns its exit code."""
    if arguments and arguments[0] in ("-h", "--help"):
        sys.stdout.write(USAGE)
        return 0
    if not arguments or arguments[0] != "selfcheck":
        sys.stderr.write(USAGE)
        return 2
    return main(arguments[1:])


if __name__ == "__main__":
    raise SystemExit(run(sys.argv[1:]))
