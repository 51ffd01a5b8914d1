"""A hook of mkdocs: puts the pages of kernels and of decisions into the navigation."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """Called by mkdocs with the settings that it read."""
    folder = Path(config.docs_dir)
    for title, pattern, first in (
        ("Kernels", "ops-*.md", "ops-index.md"),
        ("Decisions", "decisions/*.md", ""),
    ):
        pages = [page.relative_to(folder).as_posix() for page in folder.glob(pattern)]
        config.nav.append({title: sorted(pages, key=lambda page: (page != first, page))})
    return config
