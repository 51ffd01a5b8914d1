"""Changes of a file of format v1: of its JSON with the checksums made right, and of its bytes."""

from __future__ import annotations

import copy
import hashlib
import json
import random
import struct
from typing import Any

from onnx_mutations import NUMBERS, REALS, TEXTS, damage

LEAVES: tuple[Any, ...] = (
    None, True, [], {}, [[]], {"graph": {}}, {"tensor": "w"}, {"float": "nan"}, {"float": "x"}, "",
    "float32", "int64", "string", "sequence", 1.5, -1, 0, 2**70,
)  # fmt: skip


def _places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    entries: Any = ()
    if isinstance(tree, dict):
        entries = list(tree.items())
    elif isinstance(tree, list):
        entries = list(enumerate(tree))
    for key, value in entries:
        found.append((tree, key))
        _places(value, found)
    return found


def _change(tree: Any, rng: random.Random) -> None:
    places = _places(tree, [])
    if not places:
        return
    holder, key = rng.choice(places)
    value = holder[key]
    choice = rng.randrange(7)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(holder, list):
        holder.insert(key, copy.deepcopy(value))
    elif choice == 2 and isinstance(value, int):
        holder[key] = rng.choice((value + 1, value - 1, -value))
    elif choice == 3 and isinstance(value, str):
        holder[key] = rng.choice((value + "x", value[:-1], *TEXTS))
    elif choice == 4 and isinstance(value, int | float):
        holder[key] = rng.choice((*NUMBERS, *(r for r in REALS if r == r and abs(r) < 1e39)))
    elif choice == 5:
        other_holder, other = rng.choice(places)
        holder[key] = json.loads(json.dumps(other_holder[other]))
    else:
        holder[key] = copy.deepcopy(rng.choice(LEAVES))


def mutate(data: bytes, rng: random.Random) -> bytes:
    """A changed file."""
    if rng.random() < 0.2:
        return damage(data, rng)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header["__metadata__"]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if rng.random() < 0.7:
            tree = json.loads(metadata["graph"])
            _change(tree, rng)
            metadata["graph"] = json.dumps(tree)
            metadata["graph_sha256"] = hashlib.sha256(metadata["graph"].encode()).hexdigest()
        else:
            _change(header, rng)
            again = header.get("__metadata__")
            if not isinstance(again, dict) or not isinstance(again.get("graph"), str):
                break
            metadata = again
            try:
                json.loads(metadata["graph"])
            except ValueError:
                break
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data[8 + length :]
