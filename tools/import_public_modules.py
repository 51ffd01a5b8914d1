"""Imports every public module of a package; run with only its declared dependencies installed.

    python tools/import_public_modules.py onemodel_graph --absent onemodel_tensors

A package's ``testing`` modules and those of an optional extra need more than is declared and are
left to the unit sessions; here an extra's modules must fail to import. ``__main__`` modules run a
program when imported.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pkgutil
import sys


def main() -> int:
    """Import them all; 1 with one line for each module that fails or sibling that is there."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package")
    parser.add_argument("--absent", nargs="*", default=[], help="packages that must not be there")
    parser.add_argument("--of-extras", nargs="*", default=[], help="modules that need an extra")
    options = parser.parse_args()
    problems = [
        f"{name} is installed although {options.package} does not declare it"
        for name in options.absent
        if importlib.util.find_spec(name) is not None
    ]
    package = importlib.import_module(options.package)
    names = [info.name for info in pkgutil.walk_packages(package.__path__, f"{options.package}.")]
    public = [
        name
        for name in sorted(names)
        if not any(part.startswith("_") or part == "testing" for part in name.split("."))
    ]
    problems += [
        f"{name} is listed as a module of an extra, but there is no such module"
        for name in options.of_extras
        if name not in public
    ]
    for name in public:
        try:
            importlib.import_module(name)
        except Exception as error:
            if name not in options.of_extras:
                problems.append(f"{name}: {type(error).__name__}: {error}")
        else:
            if name in options.of_extras:
                problems.append(f"{name} is listed as a module of an extra, but needs none")
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{options.package}: {len(public) + 1} public modules imported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
