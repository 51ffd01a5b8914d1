"""``python -m onemodel_graph``: inspect, run, bench, compare, convert, optimize, view."""

from __future__ import annotations

import sys


def main() -> None:
    """The command line; it needs the extra ``cli``."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError:
        print(
            "the command line needs typer and rich: pip install 'onemodel-graph[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    from onemodel_graph.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
