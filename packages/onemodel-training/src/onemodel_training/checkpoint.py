"""Checkpoints: a directory of safetensors and JSON that appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onemodel_kernels.errors import OneModelError
from onemodel_tensors import Tensor
from onemodel_training.safetensors_io import load_safetensors, save_safetensors

__all__ = ["CheckpointError", "CheckpointStore", "load_checkpoint", "save_checkpoint"]

_TENSORS = "tensors.safetensors"
_STATE = "state.json"
_FORMAT = 1


class CheckpointError(OneModelError, ValueError):
    """A checkpoint that is missing, damaged or of another format."""


def _split(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Replaces tensors in nested plain values by references to their path."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"__tensor__": path}
    if isinstance(value, Mapping):
        return {
            "__items__": [
                [key, _split(entry, f"{path}/{key}" if path else str(key), tensors)]
                for key, entry in value.items()
            ]
        }
    if isinstance(value, (list, tuple)):
        return [_split(entry, f"{path}/{i}", tensors) for i, entry in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(
        f"save_checkpoint, {path}: expected tensors, numbers, text and containers of them, got "
        f"{type(value).__name__}"
    )


def _join(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if "__tensor__" in value:
            return tensors[value["__tensor__"]]
        return {key: _join(entry, tensors) for key, entry in value["__items__"]}
    if isinstance(value, list):
        return [_join(entry, tensors) for entry in value]
    return value


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_text(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def save_checkpoint(path: str | Path, state: Mapping[str, Any]) -> Path:
    """Writes nested dicts and lists of tensors, numbers and text as the directory ``path``.

    Everything is written and flushed under a temporary name beside it, which is then renamed, so
    ``path`` either holds the whole checkpoint or does not exist.

    Returns:
        The path.

    Raises:
        CheckpointError: when ``path`` exists, or a value is of another type.
    """
    path = Path(path)
    if path.exists():
        raise CheckpointError(f"save_checkpoint: {path} exists; checkpoints are not overwritten")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    tensors: dict[str, Tensor] = {}
    plain = _split(state, "", tensors)
    temporary.mkdir()
    try:
        save_safetensors(tensors, temporary / _TENSORS)
        digest = hashlib.sha256((temporary / _TENSORS).read_bytes()).hexdigest()
        document = {"format": _FORMAT, "tensors_sha256": digest, "state": plain}
        _write_text(temporary / _STATE, json.dumps(document, indent=1) + "\n")
        _sync_directory(temporary)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_directory(path.parent)
    return path


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Reads what :func:`save_checkpoint` wrote; tensors are read-only views of the file.

    Raises:
        CheckpointError: when it is missing, damaged (checked by SHA-256) or of another format.
    """
    path = Path(path)
    try:
        document = json.loads((path / _STATE).read_text(encoding="utf-8"))
        content = (path / _TENSORS).read_bytes()
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"load_checkpoint: {path} is no readable checkpoint: {error}"
        ) from error
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise CheckpointError(f"load_checkpoint: {path}: expected format {_FORMAT}")
    if hashlib.sha256(content).hexdigest() != document["tensors_sha256"]:
        raise CheckpointError(f"load_checkpoint: {path}: {_TENSORS} is damaged (SHA-256 differs)")
    state: dict[str, Any] = _join(document["state"], load_safetensors(path / _TENSORS))
    return state


class CheckpointStore:
    """Numbered checkpoints in one directory, of which the last few and the best are kept.

    Args:
        directory: where they are; made when the first is saved.
        keep: how many of the newest are kept.
    """

    def __init__(self, directory: str | Path, keep: int = 2) -> None:
        if keep < 1:
            raise CheckpointError(f"CheckpointStore: expected keep of 1 or more, got {keep}")
        self.directory = Path(directory)
        self.keep = keep

    def _path(self, step: int) -> Path:
        return self.directory / f"step-{step:09d}"

    def steps(self) -> list[int]:
        """The steps of the checkpoints that there are, ascending."""
        if not self.directory.is_dir():
            return []
        names = (entry.name for entry in self.directory.iterdir() if entry.is_dir())
        return sorted(
            int(name[5:]) for name in names if name.startswith("step-") and name[5:].isdigit()
        )

    def save(self, step: int, state: Mapping[str, Any], best: bool = False) -> Path:
        """Saves a checkpoint, marks it as the best if it is, and removes those no longer kept."""
        path = self._path(step)
        if path.exists():
            shutil.rmtree(path)
        save_checkpoint(path, state)
        if best:
            temporary = self.directory / f".best.{os.getpid()}.tmp"
            _write_text(temporary, json.dumps({"step": step}) + "\n")
            temporary.replace(self.directory / "best.json")
            _sync_directory(self.directory)
        kept = {*self.steps()[-self.keep :], self.best_step()}
        for old in self.steps():
            if old not in kept:
                shutil.rmtree(self._path(old))
        return path

    def best_step(self) -> int | None:
        """The step that was marked as the best, if there is one."""
        try:
            marked = json.loads((self.directory / "best.json").read_text(encoding="utf-8"))
            return int(marked["step"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{self.directory / 'best.json'}: damaged: {error}") from error

    def latest(self) -> dict[str, Any] | None:
        """The newest checkpoint, or None."""
        steps = self.steps()
        return load_checkpoint(self._path(steps[-1])) if steps else None

    def best(self) -> dict[str, Any] | None:
        """The checkpoint that was marked as the best, or None."""
        step = self.best_step()
        return None if step is None else load_checkpoint(self._path(step))
