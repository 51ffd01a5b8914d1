"""What the documentation names is there: modules and their members, sessions, files and links."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "packages").glob("*/README.md"),
        *(ROOT / "examples").glob("*/README.md"),
        ROOT / "crates" / "kernels" / "README.md",
    ]
)
CODE = re.compile(r"^```.*?^```|`+[^`\n]+`+|^    [^\n]*$", re.MULTILINE | re.DOTALL)
"""Fenced blocks, spans and indented lines."""
NAME = re.compile(r"(?<![\w./-])onemodel_\w+(?:\.\w+)*(?![\w/]|-\d)")
SESSION = re.compile(r"nox((?: +-[st] +[\w.,-]+(?: +[\w.-]+)*)+)")
FILE = re.compile(
    r"(?<![\w./*-])(?:tools|docs|tests|examples|packages|crates|\.ci)/[\w./-]*+(?![<*])"
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NO_MODULES = ("onemodel_sinc", "onemodel_kernel_abi")
"""A package that a page makes up, and a symbol of C."""
MEMBER = re.compile(r"(?<![\w./-])([A-Za-z]\w*)\.(\w+)(?!\w)")
PACKAGES = tuple(
    importlib.import_module(f"onemodel_{name}")
    for name in ("kernels", "tensors", "graph", "trace", "training")
)


def named(pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Each match inside code, with the page that it is on."""
    for page in PAGES:
        for code in CODE.findall(page.read_text(encoding="utf-8")):
            for match in pattern.finditer(code):
                yield page.relative_to(ROOT).as_posix(), match[0]


def resolve(name: str) -> bool:
    """Whether a dotted name is a module or a member of one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as missing:
            if missing.name is not None and not missing.name.startswith("onemodel"):
                return True  # An extra that is not installed here: the module itself is there.
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def test_every_module_and_member_is_there() -> None:
    names = {name: page for page, name in named(NAME) if not name.startswith(NO_MODULES)}
    assert len(names) > 20
    assert [f"{page}: {name}" for name, page in sorted(names.items()) if not resolve(name)] == []


def test_every_member_of_a_public_class_is_there() -> None:
    classes = {
        name: found
        for package in PACKAGES
        for name in package.__all__
        if isinstance(found := getattr(package, name), type)
    }
    classes["om"] = PACKAGES[1]
    seen, missing = 0, []
    for page, text in named(MEMBER):
        owner, member = text.split(".")
        if owner in classes:
            seen += 1
            stated = getattr(classes[owner], "__annotations__", {})
            if not hasattr(classes[owner], member) and member not in stated:
                missing.append(f"{page}: {text}")
    assert seen > 50
    assert missing == []


def test_every_session_is_there() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "nox", "--list"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    sessions = re.findall(r"^[-*] ([^ ]+)(?: \[([^]]*)\])? ->", listed, re.MULTILINE)
    known = {"-s": {name for name, _ in sessions}}
    known["-t"] = {tag for _, tags in sessions for tag in tags.split(", ")}
    wanted = {
        (flag, name): page
        for page, text in named(SESSION)
        for flag, names in re.findall(r"(-[st]) +([\w. -]+)", text)
        for name in names.partition(" -")[0].split()
    }
    assert len(wanted) > 10
    unknown = [
        f"{page}: nox {flag} {name}"
        for (flag, name), page in wanted.items()
        if name not in known[flag]
    ]
    assert unknown == []


def test_every_file_is_there() -> None:
    files = {name: page for page, name in named(FILE)}
    assert len(files) > 20
    missing = [
        f"{page}: {name}" for name, page in sorted(files.items()) if not (ROOT / name).exists()
    ]
    assert missing == []


def test_every_relative_link_leads_somewhere() -> None:
    dead, followed = [], 0
    for page in PAGES:
        text = re.sub(
            r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
        )
        for link in LINK.findall(text):
            path, _, anchor = link.partition("#")
            if "://" in link or link.startswith("mailto:"):
                continue
            followed += 1
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and anchor not in anchors(target)):
                dead.append(f"{page.relative_to(ROOT)}: {link}")
    assert followed > 50
    assert dead == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    headings = re.findall(r"^#+ +(.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {re.sub(r"\s", "-", text) for text in plain}
