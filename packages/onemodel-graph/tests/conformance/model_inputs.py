"""Inputs for real models, drawn from a seed: pictures, lines of text, speech, numbers.

The same numbers on every machine: the tolerances of ``real_models.json`` were measured with them.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

#: Five columns of seven dots for each character, a byte each, the lowest bit on top.
FONT = (
    "3E5149453E 00427F4000 4261514946 2141454B31 1814127F10 2745454539 3C4A494930 0171090503 "
    "3649494936 064949291E 7E1111117E 7F49494936 3E41414122 7F4141221C 7F49494941 7F09090901 "
    "3E4149497A 7F0808087F 00417F4100 2040413F01 7F08142241 7F40404040 7F020C027F 7F0408107F "
    "3E4141413E 7F09090906 3E4151215E 7F09192946 4649494931 01017F0101 3F4040403F 1F2040201F "
    "3F4038403F 6314081463 0708700807 6151494543"
)


def picture(rng: Any, rows: int, channels: int, height: int, width: int) -> Any:
    """A smooth field of colour with dark strokes and a little noise, 0 … 1."""
    grid_y, grid_x = max(2, height // 32), max(2, width // 32)
    field = rng.random((rows, channels, grid_y, grid_x))
    y, x = np.linspace(0, grid_y - 1, height), np.linspace(0, grid_x - 1, width)
    top = np.clip(y.astype(int), 0, grid_y - 2)
    left = np.clip(x.astype(int), 0, grid_x - 2)
    down, right = (y - top)[:, None], (x - left)[None, :]
    a, b = field[:, :, top][:, :, :, left], field[:, :, top][:, :, :, left + 1]
    c, d = field[:, :, top + 1][:, :, :, left], field[:, :, top + 1][:, :, :, left + 1]
    image = (a * (1 - right) + b * right) * (1 - down) + (c * (1 - right) + d * right) * down
    image = 0.35 + 0.6 * image
    for row in range(rows):
        for _ in range(max(4, width // 24)):
            y0, x0 = int(rng.integers(0, height)), int(rng.integers(0, width))
            tall = int(rng.integers(2, max(3, height // 3)))
            wide = int(rng.integers(1, max(2, height // 8)))
            image[row, :, y0 : y0 + tall, x0 : x0 + wide] *= 0.2
    return np.clip(image + 0.03 * rng.standard_normal(image.shape), 0, 1)


def lines(rng: Any, rows: int, channels: int, height: int, width: int, scale: int) -> Any:
    """Dark lines of text on a light ground, blurred, 0 … 1."""
    image = np.full((rows, channels, height, width), 0.93)
    for row in range(rows):
        size = scale or max(1, int(height * 0.7) // 7)
        y = max(1, (height - 7 * size) // 2) if height < 14 * size else size * 2
        while y + 7 * size <= height:
            x = int(rng.integers(1, 3 * size + 1))
            while x + 6 * size <= width:
                if rng.random() < 0.85:
                    columns = bytes.fromhex(FONT[11 * int(rng.integers(0, 36)) :][:10])
                    dots = np.array([[byte >> dot & 1 for byte in columns] for dot in range(7)])
                    mark = np.kron(dots, np.ones((size, size)))
                    image[row, :, y : y + 7 * size, x : x + 5 * size] -= 0.85 * mark
                x += 6 * size
            y += 12 * size
    p = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    around = p[:, :, :-2, 1:-1] + p[:, :, 2:, 1:-1] + p[:, :, 1:-1, :-2] + p[:, :, 1:-1, 2:]
    image = (4 * image + around) / 8
    return np.clip(image + 0.01 * rng.standard_normal(image.shape), 0, 1)


def speech(rng: Any, shape: tuple[int, ...], rate: float) -> Any:
    """Voiced sound with a pitch that moves, a few syllables a second, a little noise."""
    time = np.arange(shape[-1]) / rate
    out = np.zeros(shape)
    for row in np.ndindex(*shape[:-1]):
        pitch = rng.uniform(90, 260)
        pitch = pitch * (1 + 0.05 * np.sin(2 * np.pi * rng.uniform(2, 5) * time))
        phase = 2 * np.pi * np.cumsum(pitch) / rate
        loud = 0.5 + 0.5 * np.sin(2 * np.pi * rng.uniform(1, 4) * time + rng.uniform(0, 6))
        voice = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 8))
        out[row] = loud * voice * 0.2 + 0.01 * rng.standard_normal(shape[-1])
    return out


def _rest(rng: Any, draw: dict[str, Any], shape: tuple[int, ...], sizes: dict[str, int]) -> Any:
    kind = draw["kind"]

    def size(value: Any) -> Any:
        return sizes[value] if isinstance(value, str) else value

    if kind == "normal":
        return draw.get("mean", 0.0) + draw.get("std", 1.0) * rng.standard_normal(shape)
    if kind == "uniform":
        return rng.uniform(draw["lo"], draw["hi"], shape)
    if kind == "randint":
        return rng.integers(draw.get("lo", 0), size(draw["hi"]), shape)
    if kind == "const":
        return np.full(shape, size(draw["value"]))
    if kind == "sym_dist":
        whole = rng.integers(draw.get("lo", 1), draw["hi"], shape)
        return np.minimum(whole, np.swapaxes(whole, -1, -2))
    if kind == "mask_tail":
        mask = np.ones(shape)
        for row in range(1, shape[0]):
            mask[row, shape[1] - max(1, shape[1] // 4) :] = 0
        return mask
    if kind == "bernoulli":
        return rng.random(shape) < draw.get("p", 0.5)
    if kind == "audio":
        return speech(rng, shape, draw.get("sr", 16000)) * draw.get("gain", 1.0)
    if kind == "arange_step":
        return (np.arange(shape[0]) * draw["step"])[:, None] * np.ones(shape[1:], int)
    raise ValueError(kind)


def _drawn(
    entry: dict[str, Any], draw: dict[str, Any], sizes: dict[str, int], seed: int
) -> np.ndarray:
    shape = tuple(sizes[e] if isinstance(e, str) else e for e in entry["shape"])
    rng = np.random.default_rng([seed, zlib.crc32(entry["name"].encode())])
    dtype = np.dtype(entry["dtype"])
    if draw["kind"] in ("image", "text"):
        channels_last = draw.get("layout", "NCHW") == "NHWC"
        n, c, h, w = (shape[0], shape[3], *shape[1:3]) if channels_last else shape
        if draw["kind"] == "image":
            image = picture(rng, n, c, h, w)
        else:
            image = lines(rng, n, c, h, w, draw.get("scale", 0))
        image = np.moveaxis(image, 1, 3) if channels_last else image
        low = draw.get("lo", 0.0)
        values = low + (draw.get("hi", 1.0) - low) * image
        values = np.rint(values) if dtype.kind in "iu" else values
    else:
        values = _rest(rng, draw, shape, sizes)
    return np.ascontiguousarray(np.asarray(values).astype(dtype)).reshape(shape)


def inputs(model: dict[str, Any], case: dict[str, Any]) -> dict[str, np.ndarray]:
    """The inputs of one case of a model, by name."""
    instead = case.get("instead", {})
    return {
        entry["name"]: _drawn(
            entry, instead.get(entry["name"], entry["draw"]), case["sizes"], case["seed"]
        )
        for entry in model["inputs"]
    }
