"""Checks, at import, that the installed distributions speak the same interfaces.

An interface is what one distribution offers to another: a module with a constant
``INTERFACE_VERSION = (major, minor)``. A consumer states what it needs; the provider serves it when
the major numbers are equal and its minor number is at least the needed one. An interface has a
version of its own: a package may be released many times under one interface.

Each consumer has a module ``_interfaces`` that calls :func:`require` and is imported before all
else of its package, so that a mismatch is one clear error and not a failure somewhere inside.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from onemodel_kernels.errors import InterfaceMismatchError

__all__ = ["InterfaceMismatchError", "Need", "require"]

Version = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Need:
    """One interface that a distribution needs.

    Args:
        interface: the name under which INTERFACES.md lists it, as ``kernels.ops``.
        module: the module that provides it and carries ``INTERFACE_VERSION``.
        provider: the distribution that ships the module.
        version: the needed ``(major, minor)``.
    """

    interface: str
    module: str
    provider: str
    version: Version


def require(consumer: str, needs: Sequence[Need]) -> None:
    """Raise unless every needed interface is provided in a version that serves.

    Args:
        consumer: the distribution that needs them.
        needs: what it needs.

    Raises:
        InterfaceMismatchError: names both distributions with their versions, the interface, what is
            needed and what was found, and the ``pip`` line that mends it.
    """
    for need in needs:
        found = _found(need)
        if found is None or found[0] != need.version[0] or found[1] < need.version[1]:
            raise InterfaceMismatchError(_message(consumer, need, found))


def _found(need: Need) -> Version | None:
    try:
        module = importlib.import_module(need.module)
    except ModuleNotFoundError as error:
        # Only the absence of the interface itself is a mismatch: what the provider fails to import
        # is the provider's own error.
        if error.name is not None and f"{need.module}.".startswith(f"{error.name}."):
            return None
        raise
    version: Version | None = getattr(module, "INTERFACE_VERSION", None)
    return version


def _message(consumer: str, need: Need, found: Version | None) -> str:
    needed = f"{need.version[0]}.{need.version[1]}"
    if found is None:
        has = "does not provide it"
    else:
        has = f"provides {found[0]}.{found[1]}"
    return (
        f"{consumer} {_installed(consumer)} needs interface {need.interface} {needed} "
        f"(any {need.version[0]}.x from {needed} on), "
        f"but {need.provider} {_installed(need.provider)} {has}. "
        f"Mend it with: {_pip_line(consumer, need, found)}"
    )


def _installed(distribution: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "(not installed)"


def _pip_line(consumer: str, need: Need, found: Version | None) -> str:
    wanted = _requirement(consumer, need.provider)
    if found is not None and found[0] > need.version[0]:
        # The provider went ahead: a newer consumer may speak its interface, and pip finds the pair.
        return f'pip install --upgrade "{consumer}" "{need.provider}"'
    return f'pip install --upgrade "{wanted}"'


def _requirement(consumer: str, provider: str) -> str:
    """The provider's range as the consumer's metadata states it, or the bare name."""
    import re
    from importlib import metadata

    try:
        stated = metadata.requires(consumer) or []
    except metadata.PackageNotFoundError:
        return provider
    for requirement in stated:
        specification = requirement.partition(";")[0].replace(" ", "")
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?(.*)", specification)
        if match and re.sub(r"[-_.]+", "-", match[1]).lower() == provider:
            bounds = sorted(match[2].split(","), key=lambda bound: not bound.startswith(">"))
            return provider + ",".join(bounds)
    return provider
