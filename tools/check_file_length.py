"""Fails when a source file is longer than 600 lines and not listed here with its reason.

    python tools/check_file_length.py

A long file is split by operator family, never by aspect. An entry whose file became short again,
or is gone, fails as well.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LIMIT = 600
SUFFIXES = {".py", ".pyi", ".rs"}

#: path → why it may be longer
ALLOWED: dict[str, str] = {
    "packages/onemodel-tensors/src/onemodel_tensors/__init__.py": "one table of public names",
}


def source_files(root: Path) -> list[Path]:
    """The source files that git knows or would add, relative to the root of the repository."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    paths = (Path(name) for name in listing.split("\0") if name)
    return sorted(path for path in paths if path.suffix in SUFFIXES and (root / path).is_file())


def problems(root: Path) -> list[str]:
    """One sentence for each file that is too long and for each entry that is out of date."""
    lengths = {
        path.as_posix(): len((root / path).read_text(encoding="utf-8").splitlines())
        for path in source_files(root)
    }
    found = [
        f"{path}: {lines} lines, at most {LIMIT}: split it by operator family, "
        "or list it in tools/check_file_length.py with the reason"
        for path, lines in lengths.items()
        if lines > LIMIT and path not in ALLOWED
    ]
    found += [
        f"{path}: listed in tools/check_file_length.py but has {lengths.get(path, 0)} lines: "
        "take it off the list"
        for path in ALLOWED
        if lengths.get(path, 0) <= LIMIT
    ]
    return found


def main() -> int:
    """Print the problems; 0 when there are none."""
    found = problems(Path(__file__).resolve().parent.parent)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
