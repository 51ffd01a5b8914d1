"""Where tensors are: always on the CPU. For code that asks.

``device = om.device("cuda" if om.cuda.is_available() else "cpu")`` gives the CPU.
"""

from __future__ import annotations

from typing import Any

from onemodel_kernels.errors import AttributeValueError

__all__ = ["Device", "device", "require_cpu"]


class Device(str):
    """The name of a device: the text ``"cpu"``, with PyTorch's attributes."""

    __slots__ = ()

    @property
    def type(self) -> str:
        """The kind of device: ``"cpu"``."""
        return "cpu"


CPU = Device("cpu")


def require_cpu(device: Any, operator: str) -> None:
    """Raise for a device that does not exist here.

    Raises:
        AttributeValueError: the device is not the CPU.
    """
    if device is not None and str(device).split(":")[0] != "cpu":
        raise AttributeValueError(f"{operator}: expected device 'cpu', got {str(device)!r}")


def device(name: Any = "cpu") -> Device:
    """The only device, by its name.

    Raises:
        AttributeValueError: another device is asked for.
    """
    require_cpu(name, "device")
    return CPU
