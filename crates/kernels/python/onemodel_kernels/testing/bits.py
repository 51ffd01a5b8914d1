"""Prints the hash of every case's bits as JSON: ``python -m onemodel_kernels.testing.bits [family …]``.

The suites run it in processes with another instruction set or number of threads.
"""

from __future__ import annotations

import json
import os
import sys

from onemodel_kernels import Kernel, isa, set_num_threads
from onemodel_kernels.testing.discovery import FAMILIES, cases_of
from onemodel_kernels.testing.running import bits, native


def table(families: list[str]) -> dict[str, str]:
    """Hash by ``family/case``; an exception counts as its own text."""
    known = set(Kernel.names())
    found = {}
    for family in families:
        for case in cases_of(family):
            if case.operator not in known or not case.deterministic:
                continue
            try:
                found[f"{family}/{case.name}"] = bits(native(case))
            except Exception as error:  # noqa: BLE001  (the table is compared as a whole)
                found[f"{family}/{case.name}"] = f"{type(error).__name__}: {error}"
    return found


def main() -> None:
    """The command."""
    threads = os.environ.get("ONEMODEL_TESTING_THREADS")
    if threads:
        set_num_threads(int(threads))
    json.dump({"isa": isa(), "bits": table(sys.argv[1:] or list(FAMILIES))}, sys.stdout)


if __name__ == "__main__":
    main()
