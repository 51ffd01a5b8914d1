"""An extension of griffe: docstrings as Markdown has them, and native classes with their docstrings."""

from __future__ import annotations

import re
from typing import Any

import griffe

import onemodel_kernels

_ROLE = re.compile(r":[a-z]+:`([~!]?)([^`<]+?)(?: *<[^`>]+>)?`")
_DOCTEST = re.compile(r"^(>>> .*?)(?=\n\n|\n*\Z)", re.MULTILINE | re.DOTALL)


class Roles(griffe.Extension):
    """Rewrites the docstrings of a package when all of it is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by griffe for each package."""
        if pkg.name == "onemodel_kernels":
            _add_native(pkg["_native"])
        _rewrite(pkg)


def _rewrite(known: griffe.Object) -> None:
    if known.docstring is not None:
        text = _ROLE.sub(_shown, known.docstring.value)
        # A literal block of reStructuredText is an indented block of Markdown.
        text = text.replace("::\n\n", ":\n\n")
        known.docstring.value = _DOCTEST.sub(r"```pycon\n\1\n```", text)
    for member in known.members.values():
        if not isinstance(member, griffe.Alias):
            _rewrite(member)


def _shown(match: re.Match[str]) -> str:
    mark, name = match.groups()
    return f"`{name.rpartition('.')[2] if mark == '~' else name}`"


def _add_native(module: griffe.Object) -> None:
    """The stub has the types, the module the texts."""
    for name in ("Array", "Kernel", "Outline", "Program"):
        native = getattr(onemodel_kernels, name)
        known = module[name]
        known.docstring = griffe.Docstring(native.__doc__, parent=known)
        for member in known.members.values():
            text = getattr(getattr(native, member.name, None), "__doc__", None)
            if text and not member.name.startswith("_"):
                member.docstring = griffe.Docstring(text, parent=member)
