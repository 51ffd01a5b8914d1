"""Reads the doc comments of the kernels' sources."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_ITEM = re.compile(
    r"(?:pub(?:\([a-z]+\))? )?(?:struct|fn|type|enum) (\w+)|([A-Z]\w+)(?:,| \{)|number_function!\((\w+)"
)
_BUILT_BY = re.compile(
    r'name: "(\w+)",\s*build: (?:(?:\w+::)*?(\w+)(?:::build)? *\}|\|\w+\| Ok\(Arc::new\((\w+))'
)
SHORT = 3
"""Comments of modules with fewer lines are for readers of the source, unless kernels are there."""
LABEL = 60
"""Shorter comments of modules only list what the table of kernels lists too."""


def definitions(files: Iterable[Path], kernels: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """The comments of kernels by name, and the comments of the modules in order."""
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    items = {name.lower(): name for name in kernels}
    for text in texts.values():
        for name, *built in _BUILT_BY.findall(text):
            if name in items.values():
                items.setdefault("".join(built).lower(), name)
    found: dict[str, str] = {}
    modules = []
    for file, text in texts.items():
        module = [line[3:].removeprefix(" ") for line in text.splitlines() if line[:3] == "//!"]
        has_kernels = "KERNELS: &[Entry]" in text or re.search(
            r"impl\S* (?:Kernel|Typed) for", text
        )
        told = "\n".join(module)
        if file.name == "mod.rs" or len(module) >= SHORT or (has_kernels and len(told) > LABEL):
            modules.append(_markdown(told))
        if not has_kernels:
            continue
        for item, comment in _commented(text):
            plain = item.lower().replace("_", "").removeprefix("build")
            name = items.get(plain) or items.get(item.lower())
            if name is not None and name not in found and not comment.startswith("Prepares "):
                found[name] = _markdown(comment)
    return found, [module for module in modules if module]


def _commented(text: str) -> Iterable[tuple[str, str]]:
    """(item, its doc comment)."""
    comment: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if line.startswith("///"):
            comment.append(line[3:].removeprefix(" "))
            continue
        if line.startswith("#["):
            continue
        match = _ITEM.match(line) if comment else None
        if match:
            # What follows concerns callers in Rust.
            told = re.split(r"\n# (?:Errors|Panics|Safety)", "\n".join(comment))[0].strip()
            yield next(filter(None, match.groups())), told
        comment = []


def _markdown(text: str) -> str:
    """Rust's links and headings as Markdown has them here."""
    text = re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", text)
    return re.sub(r"^#", "###", text, flags=re.MULTILINE)
