"""Saving so that a reader, or a process killed at any moment, leaves the old file or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

__all__ = ["sync_folder", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], chunks: Iterable[bytes]) -> None:
    """Write a file beside ``path``, flush it to the disk, and put it in its place in one step.

    A file that was at ``path`` is not touched before the new one is complete, so memory maps of it
    stay valid. When the process is killed in between, the part written so far stays behind as
    ``.<process>-<random>.part`` and may be deleted.

    Args:
        path: where the file appears; its folder must exist.
        chunks: the content, in order.

    Raises:
        OSError: the folder, the disk or a limit refuses; ``path`` is as it was and the part is gone.
    """
    path = Path(path)
    # A name of its own length: one that is made of the target's could pass the limit of 255 bytes.
    part = path.with_name(f".{os.getpid()}-{secrets.token_hex(6)}.part")
    try:
        with part.open("xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Flush a folder's entries, so that a rename in it outlasts a loss of power.

    Where folders cannot be opened (Windows, some network file systems) this does nothing.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)
