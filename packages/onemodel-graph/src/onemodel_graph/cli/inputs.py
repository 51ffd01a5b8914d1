"""Inputs of a run from files, or drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onemodel_graph.ir import Value
from onemodel_kernels import Array, Kernel
from onemodel_kernels.errors import AttributeValueError
from onemodel_kernels.ops.narrow import HELD

FREE = 2
"""The size of an extent that neither the model nor the user states."""


def sizes_of(texts: list[str]) -> dict[str, int]:
    """Sizes of symbols from ``NAME=NUMBER``."""
    found = {}
    for text in texts:
        name, mark, number = text.partition("=")
        if not mark or not number.isdigit():
            raise AttributeValueError(f"--size {text!r}: write it as NAME=NUMBER, as batch=4")
        found[name] = int(number)
    return found


def read_inputs(files: list[Path], inputs: tuple[Value, ...]) -> dict[str, Any]:
    """Arrays by input name from ``.npz`` (by name), ``.npy`` and ``.png`` (in the inputs' order)."""
    found: dict[str, Any] = {}
    free = list(inputs)
    for path in files:
        if not path.exists():
            raise AttributeValueError(f"input file {str(path)!r}: there is no such file")
        suffix = path.suffix.lower()
        if suffix == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                found.update({name: archive[name] for name in archive.files})
            free = [value for value in free if value.name not in found]
            continue
        if not free:
            raise AttributeValueError(f"input file {str(path)!r}: the model has no more inputs")
        value = free.pop(0)
        if suffix == ".npy":
            found[value.name] = np.load(path, allow_pickle=False)
        elif suffix in (".png", ".jpg", ".jpeg", ".bmp"):
            found[value.name] = picture(path, value)
        else:
            raise AttributeValueError(
                f"input file {str(path)!r}: expected .npz, .npy or .png, not {suffix!r}"
            )
    return found


def picture(path: Path, value: Value) -> Any:
    """A picture in the form of an image input: channels first, 0 … 1 for floats."""
    try:
        from PIL import Image
    except ImportError:
        raise AttributeValueError(
            "reading pictures needs Pillow: pip install 'onemodel-graph[cli]'"
        ) from None
    shape = value.shape or (1, 3, None, None)
    if len(shape) != 4:
        raise AttributeValueError(f"input {value.name!r}: a picture needs an input of 4 axes")
    channels = shape[1] if isinstance(shape[1], int) else 3
    with Image.open(path) as opened:
        image = opened.convert("L" if channels == 1 else "RGB")
        if isinstance(shape[2], int) and isinstance(shape[3], int):
            image = image.resize((shape[3], shape[2]))
        pixels = np.asarray(image)
    if channels == 1:
        pixels = pixels[None, None]
    else:
        pixels = np.ascontiguousarray(pixels.transpose(2, 0, 1))[None]
    kind = value.dtype or "float32"
    return (
        pixels.astype(kind) / np.asarray(255, kind)
        if kind.startswith("float")
        else pixels.astype(kind)
    )


def drawn(inputs: tuple[Value, ...], sizes: Mapping[str, int], seed: int) -> dict[str, Any]:
    """Inputs drawn from a seed: the same on every machine; integers are 0 or 1, texts ``text``."""
    found: dict[str, Any] = {}
    for index, value in enumerate(inputs):
        shape = []
        for extent in value.shape or ():
            if isinstance(extent, str):
                shape.append(sizes.get(extent, FREE))
            else:
                shape.append(FREE if extent is None else extent)
        kind = value.dtype or "float32"
        kind = HELD.get(kind, kind)
        numbers: Array = Kernel(
            "RandomUniform",
            shape=tuple(shape),
            low=0.0,
            high=1.0,
            seed=seed,
            counter=index << 32,
            dtype="float32",
        )()
        if kind == "string":
            found[value.name] = np.full(numbers.shape, "text", object)
            continue
        if not kind.startswith("float") and kind != "bfloat16":
            numbers = Kernel("Round")(numbers)
        found[value.name] = numbers if kind == "float32" else Kernel("Cast", to=kind)(numbers)
    return found
