"""Prints the public surface of the packages and compares it with their api.txt.

    python tools/api_snapshot.py            fails where a surface and its api.txt differ
    python tools/api_snapshot.py --write    writes the api.txt files
    python tools/api_snapshot.py --print onemodel_graph

The surface is every public module (no component of its name starts with an underscore), the names
in its ``__all__`` or else those that it defines, with their signatures, and the public attributes
of its classes. A name that several modules offer is described where it is first met and listed
elsewhere. A change of an api.txt in review is a change of the interface.
"""

from __future__ import annotations

import argparse
import difflib
import enum
import importlib
import inspect
import pkgutil
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

#: import name → the folder that holds its api.txt
FOLDERS = {
    "onemodel_kernels": "crates/kernels",
    "onemodel_tensors": "packages/onemodel-tensors",
    "onemodel_graph": "packages/onemodel-graph",
    "onemodel_trace": "packages/onemodel-trace",
    "onemodel_training": "packages/onemodel-training",
}


def public_modules(package: str) -> Iterator[types.ModuleType]:
    """The package and its public modules, in the order of their names."""
    top = importlib.import_module(package)
    names = [package]
    names += [info.name for info in pkgutil.walk_packages(top.__path__, f"{package}.")]
    for name in sorted(names):
        if not any(part.startswith("_") for part in name.split(".")):
            yield importlib.import_module(name)


def public_names(module: types.ModuleType) -> list[str]:
    """The names in ``__all__``, or those that the module itself defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return sorted(listed)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    )


class _Shown:
    """A part of a signature that is shown as this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _annotation(annotation: object) -> object:
    """As the source has it; a plain string would be shown in quotes."""
    return _Shown(annotation) if isinstance(annotation, str) else annotation


def _default(value: object) -> object:
    """Numbers, texts, enums and short tuples of them as they are; anything else as ``…``."""
    if value is inspect.Parameter.empty:
        return value
    parts = value if isinstance(value, tuple) and len(value) <= 8 else (value,)
    simple = (bool, int, float, str, enum.Enum, type(None))
    return value if all(isinstance(part, simple) for part in parts) else _Shown("…")


def signature(value: object) -> str:
    """The signature as text, without addresses; ``(…)`` where there is none to be had."""
    try:
        found = inspect.signature(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return "(…)"
    parameters = [
        parameter.replace(
            annotation=_annotation(parameter.annotation), default=_default(parameter.default)
        )
        for parameter in found.parameters.values()
    ]
    written = found.replace(
        parameters=parameters, return_annotation=_annotation(found.return_annotation)
    )
    return re.sub(r" at 0x[0-9a-f]+", "", str(written))


def describe_class(name: str, cls: type) -> Iterator[str]:
    """The class with its bases, then its public attributes."""
    bases = ", ".join(base.__name__ for base in cls.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if issubclass(cls, enum.Enum):
        yield from (f"{name}.{member.name} = {member.value!r}" for member in cls)
    elif not issubclass(cls, BaseException):
        yield f"{name}{signature(cls)}"
    annotations = inspect.get_annotations(cls)
    attributes = {**dict.fromkeys(annotations), **vars(cls)}
    for attribute in sorted(attributes):
        if attribute.startswith("_") or (
            isinstance(cls, enum.EnumType) and attribute in cls.__members__
        ):
            continue
        value = inspect.getattr_static(cls, attribute, None)
        if isinstance(value, classmethod | staticmethod):
            kind = type(value).__name__
            yield f"{name}.{attribute}{signature(value.__func__)}  [{kind}]"
        elif inspect.isroutine(value):
            yield f"{name}.{attribute}{signature(value)}"
        elif attribute in annotations:
            yield f"{name}.{attribute}: {_attribute_type(annotations[attribute])}"
        else:
            yield f"{name}.{attribute}"


def _attribute_type(annotation: object) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def describe(name: str, value: object, seen: dict[int, str]) -> Iterator[str]:
    """The lines of one public name."""
    if isinstance(value, types.ModuleType):
        yield f"{name}  [module]"
    elif not (inspect.isclass(value) or inspect.isroutine(value)):
        yield f"{name}: {type(value).__name__}"
    elif id(value) in seen:
        yield f"{name}  = {seen[id(value)]}"
    else:
        seen[id(value)] = name
        if inspect.isclass(value):
            yield from describe_class(name, value)
        else:
            yield f"{name}{signature(value)}"


def surface(package: str) -> str:
    """The public surface of a package as text, one name a line."""
    seen: dict[int, str] = {}
    lines = [
        line
        for module in public_modules(package)
        for name in public_names(module)
        for line in describe(f"{module.__name__}.{name}", getattr(module, name), seen)
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Compare, write or print; 0 when every surface equals its api.txt."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write the api.txt files")
    parser.add_argument("--print", metavar="PACKAGE", choices=sorted(FOLDERS), help="print one")
    options = parser.parse_args()
    if options.print:
        print(surface(options.print), end="")
        return 0
    differ = False
    for package, folder in FOLDERS.items():
        file = ROOT / folder / "api.txt"
        now = surface(package)
        if options.write:
            file.write_text(now, encoding="utf-8")
            continue
        before = file.read_text(encoding="utf-8") if file.is_file() else ""
        if before != now:
            differ = True
            path = f"{folder}/api.txt"
            changes = difflib.unified_diff(
                before.splitlines(), now.splitlines(), path, "the package", lineterm="", n=0
            )
            print("\n".join(changes), file=sys.stderr)
    if differ:
        print(
            "the public surface differs from api.txt: take the change back, or, when it is meant, "
            "run: python tools/api_snapshot.py --write",
            file=sys.stderr,
        )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
