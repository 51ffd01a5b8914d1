"""Instructions of the small overheads, counted by callgrind: ``nox -s callgrind``.

Counts do not depend on the machine's speed or load. The process runs once under valgrind, which
writes a profile at every call of ``getppid``: the script calls it before and after each loop. The
loop's own instructions, measured with an empty body, are subtracted. valgrind has no AVX-512, so the
kernels take their AVX2 bodies; on four elements the difference is a few instructions.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

REPEATS = 400
WARM_UP = 50
PYTHON_OPTIONS = ("-X", "frozen_modules=on")


def bodies() -> dict[str, Callable[[], object]]:
    """What is counted, by name."""
    import numpy as np

    import onemodel_tensors as om
    from onemodel_graph import Session
    from onemodel_graph.ir import GraphBuilder
    from onemodel_kernels import Array, Kernel, set_num_threads

    set_num_threads(1)
    values = np.arange(4, dtype=np.float32)
    a, b = om.tensor(values), om.tensor(values)
    x, y = om.tensor(values, requires_grad=True), om.tensor(values, requires_grad=True)
    left, right = Array.from_numpy(values), Array.from_numpy(values)
    add = Kernel("Add")
    builder = GraphBuilder("add")
    inputs = [builder.add_input(name, "float32", (4,)) for name in ("a", "b")]
    builder.add_output(*builder.add_node("Add", inputs))
    session = Session(builder.build())
    feeds = {"a": values, "b": values}

    def nothing() -> None:
        return None

    def eager() -> object:
        return a + b

    def with_gradient() -> object:
        return x + y

    def kernel() -> object:
        return add(left, right)

    def run() -> object:
        return session.run(feeds)

    return {
        "loop": nothing,
        "kernel call, Add of 4 elements": kernel,
        "eager add of 4 elements": eager,
        "eager add of 4 elements, with gradients": with_gradient,
        "session run of one 4-element Add": run,
    }


def measure() -> None:
    """The loops, each between two marks; runs under callgrind."""
    cases = bodies()
    for body in cases.values():
        for _ in range(WARM_UP):
            body()
    for body in cases.values():
        os.getppid()
        for _ in range(REPEATS):
            body()
        os.getppid()


def totals(folder: Path) -> list[int]:
    """Instructions of each profile, in the order in which they were written."""
    profiles = sorted(
        (file for file in folder.glob("profile.*") if file.suffix[1:].isdigit()),
        key=lambda file: int(file.suffix[1:]),
    )
    found = []
    for file in profiles:
        match = re.search(
            r"^(?:totals|summary): (\d+)", file.read_text(errors="replace"), re.MULTILINE
        )
        found.append(int(match[1]) if match else 0)
    return found


def counted(folder: Path) -> dict[str, float]:
    """Instructions of one repetition by name, the loop's own subtracted."""
    command = [
        "valgrind", "--tool=callgrind", "--dump-before=getppid",
        f"--callgrind-out-file={folder / 'profile'}", "--quiet",
        sys.executable, *PYTHON_OPTIONS, __file__, "--measure",
    ]  # fmt: skip
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    profiles = totals(folder)
    names = ["loop", *NAMES]
    if len(profiles) < 2 * len(names):
        raise SystemExit(f"callgrind: expected {2 * len(names)} profiles, got {len(profiles)}")
    # Before the first mark lies the start of the process; then loops and gaps take turns.
    loops = dict(zip(names, profiles[1 : 2 * len(names) : 2], strict=True))
    return {name: (loops[name] - loops["loop"]) / REPEATS for name in NAMES}


NAMES = (
    "kernel call, Add of 4 elements",
    "eager add of 4 elements",
    "eager add of 4 elements, with gradients",
    "session run of one 4-element Add",
)


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().measure:
        measure()
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("callgrind: expected valgrind on the path; install the package valgrind")
    with tempfile.TemporaryDirectory() as folder:
        counts = counted(Path(folder))
    width = max(map(len, counts))
    print(f"{'one of':{width}}  instructions")
    for name, count in counts.items():
        print(f"{name:{width}}  {count:12,.0f}")


if __name__ == "__main__":
    main()
