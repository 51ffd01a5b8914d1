"""Checkpoints: a directory of safetensors and JSON that appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onemodel_kernels.errors import OneModelError
from onemodel_kernels.saving import sync_folder, write_atomically
from onemodel_tensors import Tensor
from onemodel_training.safetensors_io import load_safetensors, save_safetensors

__all__ = ["CheckpointError", "CheckpointStore", "load_checkpoint", "save_checkpoint"]

_TENSORS = "tensors.safetensors"
_STATE = "state.json"
_FORMAT = 1


class CheckpointError(OneModelError, ValueError):
    """A checkpoint that is missing, damaged or of another format."""


def separated(value: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    """Replaces tensors in nested plain values by references to their path."""
    if isinstance(value, Tensor):
        tensors[path] = value
        return {"__tensor__": path}
    if isinstance(value, Mapping):
        return {
            "__items__": [
                [key, separated(entry, f"{path}/{key}" if path else str(key), tensors)]
                for key, entry in value.items()
            ]
        }
    if isinstance(value, (list, tuple)):
        return [separated(entry, f"{path}/{i}", tensors) for i, entry in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise CheckpointError(
        f"save_checkpoint, {path}: expected tensors, numbers, text and containers of them, got "
        f"{type(value).__name__}"
    )


def joined(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Puts tensors back where :func:`separated` left references."""
    if isinstance(value, dict):
        if "__tensor__" in value:
            return tensors[value["__tensor__"]]
        return {key: joined(entry, tensors) for key, entry in value["__items__"]}
    if isinstance(value, list):
        return [joined(entry, tensors) for entry in value]
    return value


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
    _save(path, state, aside=None)
    return path


def _save(path: Path, state: Mapping[str, Any], aside: Path | None) -> None:
    """Writes the directory beside ``path`` and renames it; what was there goes to ``aside`` first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".step-{os.getpid()}-{secrets.token_hex(6)}.part"
    tensors: dict[str, Tensor] = {}
    plain = separated(state, "", tensors)
    temporary.mkdir()
    try:
        save_safetensors(tensors, temporary / _TENSORS)
        digest = hashlib.sha256((temporary / _TENSORS).read_bytes()).hexdigest()
        document = {"format": _FORMAT, "tensors_sha256": digest, "state": plain}
        text = json.dumps(document, indent=1) + "\n"
        write_atomically(temporary / _STATE, [text.encode()])
        if aside is not None:
            path.rename(aside)
        temporary.rename(path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    sync_folder(path.parent)


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
    state: dict[str, Any] = joined(document["state"], load_safetensors(path / _TENSORS))
    return state


class CheckpointStore:
    """Numbered checkpoints in one directory, of which the last few and the best are kept.

    One process at a time saves to a directory; any number read it. A process that is killed while it
    saves leaves each step as it was or as it was to be; the next save removes what else it left.

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

    def _aside(self, step: int) -> Path:
        """Where a checkpoint is while another one of its step takes its place."""
        return self.directory / f".step-{step:09d}.aside"

    def steps(self) -> list[int]:
        """The steps of the checkpoints that there are, ascending."""
        if not self.directory.is_dir():
            return []
        names = (entry.name for entry in self.directory.iterdir() if entry.is_dir())
        found = (re.fullmatch(r"step-(\d+)|\.step-(\d+)\.aside", name) for name in names)
        return sorted({int(match[1] or match[2]) for match in found if match})

    def load(self, step: int) -> dict[str, Any]:
        """The checkpoint of a step.

        Raises:
            CheckpointError: as :func:`load_checkpoint`.
        """
        path = self._path(step)
        if not path.exists() and self._aside(step).exists():
            path = self._aside(step)
        return load_checkpoint(path)

    def save(self, step: int, state: Mapping[str, Any], best: bool = False) -> Path:
        """Saves a checkpoint, marks it as the best if it is, and removes those no longer kept.

        A checkpoint of the same step is replaced.
        """
        self._clear()
        path = self._path(step)
        _save(path, state, self._aside(step) if path.exists() else None)
        if best:
            text = json.dumps({"step": step}) + "\n"
            write_atomically(self.directory / "best.json", [text.encode()])
        kept = {*self.steps()[-self.keep :], self.best_step()}
        for old in self.steps():
            if old not in kept:
                # Under another name first: a removal that is cut short leaves no half checkpoint.
                self._path(old).rename(self.directory / f".step-{old:09d}.removed")
        self._clear()
        return path

    def _clear(self) -> None:
        """Puts back what a killed save set aside and removes what else it left."""
        if not self.directory.is_dir():
            return
        for entry in list(self.directory.iterdir()):
            if aside := re.fullmatch(r"\.step-(\d+)\.aside", entry.name):
                path = self._path(int(aside[1]))
                if not path.exists():
                    entry.rename(path)
                    continue
            if re.fullmatch(r"\.step-.*\.(part|aside|removed)", entry.name):
                shutil.rmtree(entry)
            elif re.fullmatch(r"\.\d+-[0-9a-f]+\.part", entry.name):
                entry.unlink()

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
        return self.load(steps[-1]) if steps else None

    def best(self) -> dict[str, Any] | None:
        """The checkpoint that was marked as the best, or None."""
        step = self.best_step()
        return None if step is None else self.load(step)
