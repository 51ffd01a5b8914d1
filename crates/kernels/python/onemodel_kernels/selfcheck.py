"""Whether this machine computes the committed bits: ``python -m onemodel_kernels selfcheck``.

Every kernel runs on inputs from the package's own counter-based generator, and the hash of its
outputs is compared with the one that the package was built with. Each instruction set is checked in a
process of its own, since a process keeps the one that it started with.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

from onemodel_kernels import __version__, isa, set_num_threads
from onemodel_kernels._native import available_isas, regenerated_table, selfcheck


def cpu_model() -> str:
    """The CPU's name as the system gives it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def say(text: str) -> None:
    """One line of the report, in order with those of the other processes."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def check_here(threads: int, table: str | None) -> bool:
    """Check the instruction set in use and print what was found; whether all hashes agree."""
    set_num_threads(threads)
    outcomes = selfcheck(table)
    differ = [outcome for outcome in outcomes if outcome[1] != outcome[2]]
    verdict = "ok" if not differ else f"{len(differ)} differ"
    say(f"isa {isa()}, threads {threads}: {len(outcomes)} cases, {verdict}")
    for case, expected, found in differ:
        say(f"  {case}\n    expected {expected}, found {found}")
    if differ:
        kernels = sorted({case.split()[0] for case, _, _ in differ})
        say(f"  kernels that differ: {', '.join(kernels)}")
    return not differ


def check_in_process(name: str, threads: int, table: Path | None) -> bool:
    """As :func:`check_here`, with a forced instruction set."""
    command = [sys.executable, "-m", "onemodel_kernels", "selfcheck", "--in-process"]
    command += ["--isa", name, "--threads", str(threads)]
    if table is not None:
        command += ["--table", str(table)]
    environment = {**os.environ, "ONEMODEL_KERNELS_ISA": name}
    # The command is this interpreter with checked options.
    return subprocess.run(command, env=environment, check=False).returncode == 0  # noqa: S603


def parser() -> argparse.ArgumentParser:
    """The command's options."""
    found = argparse.ArgumentParser(
        prog="python -m onemodel_kernels selfcheck",
        description="Compare the bits that this machine computes with the committed hashes.",
        epilog="Exit code: 0 when all agree, 1 when a kernel differs, 2 for wrong arguments.",
    )
    found.add_argument(
        "--isa",
        action="append",
        metavar="NAME",
        help="an instruction set; may repeat (default: all)",
    )
    found.add_argument(
        "--threads", action="append", type=int, metavar="N",
        help="threads of a kernel; may repeat (default: 1 and 2)",
    )  # fmt: skip
    found.add_argument("--table", type=Path, help="another table than the built-in one")
    found.add_argument("--write", type=Path, metavar="FILE", help="recompute the hashes of a table")
    found.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    return found


def main(arguments: list[str]) -> int:
    """The command; returns its exit code."""
    options_of = parser()
    options = options_of.parse_args(arguments)
    available = available_isas()
    wanted = options.isa or available
    threads = options.threads or [1, 2]
    if missing := sorted(set(wanted) - set(available)):
        options_of.error(
            f"--isa: expected one of {', '.join(available)} on this CPU, got {', '.join(missing)}"
        )
    if min(threads) < 1:
        options_of.error(f"--threads: expected at least 1, got {min(threads)}")
    for file in (options.table, options.write):
        if file is not None and not file.is_file():
            options_of.error(f"expected a table, got {file}, which is no file")
    if options.write:
        table = regenerated_table(options.write.read_text(encoding="utf-8"))
        options.write.write_text(table, encoding="utf-8")
        return 0
    if options.in_process:
        given = options.table.read_text(encoding="utf-8") if options.table else None
        return 0 if check_here(threads[0], given) else 1
    say(f"onemodel_kernels {__version__}")
    say(f"cpu {cpu_model()}, {os.cpu_count()} logical, has {', '.join(available)}")
    results = [check_in_process(name, n, options.table) for name in wanted for n in threads]
    say("ok" if all(results) else "FAILED: this machine computes other bits")
    return 0 if all(results) else 1
