"""A process killed at any step of a save leaves the old content or the new one, and can save again."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}
"""Audit events of what changes a folder; opening a file for writing and flushing are added."""


def killing_itself(number: int, save: Callable[[], object]) -> Callable[[], None]:
    """The save, killed before the step of that number (from 0)."""

    def work() -> None:
        left = number

        def step() -> None:
            nonlocal left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        def hook(event: str, arguments: tuple[Any, ...]) -> None:
            flags = arguments[2] if event == "open" else 0
            if event in STEPS or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)):
                step()

        real = os.fsync

        def fsync(descriptor: int) -> None:
            step()
            real(descriptor)

        os.fsync = fsync
        sys.addaudithook(hook)
        save()

    return work


def test_every_kind_of_save(
    tmp_path: Path, kind: Any, forked: Callable[[Callable[[], None]], int]
) -> None:
    (tmp_path / "other").mkdir()
    kind.save(tmp_path / "other", 1)
    old = kind.content(tmp_path / "other")
    kind.save(tmp_path / "other", 2)
    new = kind.content(tmp_path / "other")
    assert old != new
    seen = []
    for step in range(100):
        folder = tmp_path / str(step)
        folder.mkdir()
        kind.save(folder, 1)
        code = forked(killing_itself(step, lambda at=folder: kind.save(at, 2)))
        seen.append(kind.content(folder))
        assert seen[-1] in (old, new), f"{kind.name}, killed before step {step}"
        if code == 0:
            break
        assert code == -signal.SIGKILL
        kind.save(folder, 2)
        assert kind.content(folder) == new, f"{kind.name}, saved again after step {step}"
    assert code == 0
    # At least opening, flushing and renaming: the hook saw the save, and the last kill came late.
    assert len(seen) >= 4
    assert seen[0] == old
    assert seen[-1] == new
