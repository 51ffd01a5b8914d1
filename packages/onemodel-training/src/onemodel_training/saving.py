"""One file for nested values and tensors, and whatever else holds weights: ``save`` and ``load``."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onemodel_training.checkpoint import CheckpointError, joined, separated
from onemodel_training.module import NnModule
from onemodel_training.safetensors_io import load_safetensors, save_safetensors
from onemodel_training.torch_files import load_torch_file

__all__ = ["load", "save"]

_KEY = "onemodel.state"


def save(obj: Any, f: str | Path) -> None:
    """Writes nested dicts and lists of tensors, numbers and text as one safetensors file.

    The structure is text in the header; a plain state dict is readable by every safetensors reader. A file that is
    there is replaced in one step.

    Args:
        obj: for a module, its ``state_dict()``.
        f: the path.

    Raises:
        CheckpointError: a value of another type, such as a module itself.
    """
    if isinstance(obj, NnModule):
        raise CheckpointError(
            f"save: expected tensors, numbers, text and containers of them, got {type(obj).__name__}; "
            "save its state_dict()"
        )
    tensors: dict[str, Any] = {}
    plain = separated(obj, "", tensors)
    save_safetensors(tensors, f, {_KEY: json.dumps(plain)})


def load(f: str | Path, map_location: Any = None, *, weights_only: bool = True) -> Any:
    """Reads what :func:`save` wrote, any safetensors file, or a torch file (without running its code).

    Args:
        f: the path.
        map_location: accepted for compatibility: tensors are on the CPU.
        weights_only: must be true.

    Raises:
        CheckpointError: ``weights_only`` is false.
        OneModelError: the file is none of these, or malformed.
    """
    if not weights_only:
        raise CheckpointError("load: expected weights_only=True: no file may run code here")
    path = Path(f)
    with path.open("rb") as file:
        start = file.read(9)
    # A zip archive and a pickle begin with these; safetensors with a length and a brace.
    if start[:2] in (b"PK", b"\x80\x02") or start[8:] != b"{":
        return load_torch_file(path)
    tensors = load_safetensors(path)
    structure = _metadata(path).get(_KEY)
    return tensors if structure is None else joined(json.loads(structure), tensors)


def _metadata(path: Path) -> Mapping[str, str]:
    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        found: Mapping[str, str] = json.loads(file.read(length)).get("__metadata__", {})
    return found
