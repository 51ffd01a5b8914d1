"""What all plans of a session share: kernels, packed constants and folded constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onemodel_graph.planning.slot import Slot, constant
from onemodel_kernels import Array, Kernel

KERNELS = 8192
"""Kernels kept by name and attributes; attributes that hold sizes make ever new ones."""
SIZED = frozenset({
    "Expand", "EyeLike", "OneHot", "Pad", "RandomNormal", "RandomUniform", "Range", "Resize",
    "Slice", "Split", "Tile",
})  # fmt: skip
"""Kernels whose attributes may hold sizes of a run, so that their results belong to one plan."""
FASTER = frozenset({"Conv"})
"""Kernels that take the attribute ``fast``, which allows another order of operations."""


class Context:
    """Caches by content, shared by every plan of a session and safe to use from many threads.

    Args:
        fast: Whether plans may use kernels that are not exact.
        texts: What the codes of texts stand for, where the model has texts.
    """

    def __init__(self, fast: bool = False, texts: Any = None) -> None:
        self.fast = fast
        self.texts = texts
        self._kernels: dict[Any, Kernel] = {}
        self._bound: dict[Any, Kernel] = {}
        self._folded: dict[Any, tuple[Slot, ...]] = {}
        self.views: dict[tuple[int, tuple[int, ...]], Slot] = {}

    def kernel(self, name: str, attributes: dict[str, Any]) -> tuple[Any, Kernel]:
        """The kernel of a name and attributes, and the key under which it is kept."""
        if self.fast and name in FASTER:
            attributes = {**attributes, "fast": 1}
        key = (name, *attributes.items())
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = Kernel(name, **attributes)
            if len(self._kernels) >= KERNELS:
                self._kernels.clear()
            self._kernels[key] = kernel
        return key, kernel

    def bound(self, key: Any, kernel: Kernel, inputs: Sequence[Slot | None]) -> Kernel:
        """The kernel with its permanent constants packed, made once for all plans."""
        arrays = [s.array if s is not None and s.permanent else None for s in inputs]
        if not any(array is not None for array in arrays):
            return kernel
        # An array's identity stands for its content: permanent arrays live as long as the session.
        full = (key, *(None if array is None else id(array) for array in arrays))
        found = self._bound.get(full)
        if found is None:
            found = kernel.bind(arrays)
            self._bound[full] = found
        return found

    def fold(
        self, key: Any, kernel: Kernel, inputs: Sequence[Slot | None], lasting: bool
    ) -> tuple[Slot, ...]:
        """The outputs of a kernel on constants.

        They are permanent, and kept, when all inputs are and no attribute comes from the shapes of a
        run: when ``lasting`` says so, or the kernel's attributes hold no sizes.
        """
        permanent = bool(inputs) and (lasting or kernel.name not in SIZED)
        permanent = permanent and all(slot is None or slot.permanent for slot in inputs)
        full = (key, *(None if slot is None else id(slot.array) for slot in inputs))
        if permanent and full in self._folded:
            return self._folded[full]
        result = kernel(*(None if slot is None else slot.array for slot in inputs))
        arrays: Sequence[Array] = result if isinstance(result, tuple) else (result,)
        slots = tuple(constant(array, permanent) for array in arrays)
        if permanent:
            self._folded[full] = slots
        return slots
