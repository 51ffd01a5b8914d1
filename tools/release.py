"""The checklist of a release, in code: ``python tools/release.py graph`` (or ``nox -s release -- graph``).

    release.py graph               every check, in order; the wheel and the sdist land in dist/
    release.py graph --changelog   collect the package's fragments into its CHANGELOG.md, to commit
    release.py graph --only TEXT   only the checks whose title contains the text

Nothing is published or tagged: at the end the two commands that do so are printed. A release is a
commit whose pyproject.toml states the version, with the tag ``onemodel-graph-v0.4.2``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import check_distribution
import lock

from distributions import (
    PACKAGES,
    ROOT,
    Package,
    closure,
    git,
    oldest_release,
    releases,
    sibling,
    source_hash,
)

LOCKING = ("PIP_CONSTRAINT", "PIP_BUILD_CONSTRAINT")
"""Variables by which pip takes locked versions."""


@dataclass
class Release:
    """A package about to be released.

    Args:
        package: which.
        root: the repository.
        files: what was built.
    """

    package: Package
    root: Path = ROOT
    files: list[Path] = field(default_factory=list)

    @property
    def tag(self) -> str:
        """The tag of this version."""
        return f"{self.package.distribution}-v{self.package.version(self.root)}"


def clean_tree(release: Release) -> list[str]:
    """Nothing is changed or left unadded."""
    changed = git(release.root, "status", "--porcelain").splitlines()
    return [f"not committed: {line[3:]}" for line in changed[:10]]


def version_and_tag(release: Release) -> list[str]:
    """The version is new or tagged here, and the crate's equals it."""
    version = release.package.version(release.root)
    found = [] if not version.is_prerelease else [f"{version} is a pre-release"]
    earlier = releases(release.package, release.root)
    if version in earlier:
        at = git(release.root, "rev-list", "-n", "1", release.tag).strip()
        if at != git(release.root, "rev-parse", "HEAD").strip():
            found.append(f"the tag {release.tag} is another commit: raise the version")
    elif earlier and version < earlier[-1]:
        found.append(f"{version} is below the released {earlier[-1]}")
    crate = release.root / release.package.folder / "Cargo.toml"
    if crate.exists():
        stated = re.search(r'^version = "(.*)"$', crate.read_text(encoding="utf-8"), re.MULTILINE)
        if stated is None or stated[1] != str(version):
            found.append(f"Cargo.toml states {stated and stated[1]}, pyproject.toml {version}")
    return found


def floors(release: Release) -> list[str]:
    """Each range on a sibling has a floor and an end, and admits a release of it."""
    found = []
    for requirement in release.package.dependencies(release.root):
        if sibling(requirement) is None:
            continue
        operators = sorted(entry.operator for entry in requirement.specifier)
        if operators != ["<", ">="]:
            found.append(f"{requirement}: expected a range of the form >=0.4,<0.5")
        elif oldest_release(requirement, release.root) is None:
            found.append(f"{requirement}: no tagged release is in this range: release it first")
    return found


def changelog(release: Release) -> list[str]:
    """Fragments were collected, and the newest entry is this version."""
    folder = release.root / release.package.folder
    found = [f"not collected: changes/{path.name}" for path in fragments(folder)]
    text = (folder / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", text, re.MULTILINE)
    version = release.package.version(release.root)
    if newest is None or newest[1] != str(version):
        got = "none" if newest is None else newest[1]
        found.append(f"the newest entry of CHANGELOG.md is {got}, not {version}: run --changelog")
    return found


def fragments(folder: Path) -> list[Path]:
    """The fragments of the next changelog entry."""
    return sorted(path for path in (folder / "changes").glob("*.md") if path.name != "README.md")


def locked_versions(release: Release) -> list[str]:
    """The lock holds a version for all that the repository names."""
    text = (release.root / ".ci" / "constraints.txt").read_text(encoding="utf-8")
    return lock.problems(lock.stated(release.root), text)


def sessions(release: Release) -> list[str]:
    """The package's sessions and those of all packages together are green."""
    name = release.package.name
    wanted = ["lint", "types", f"unit-{name}", f"oldest-{name}", f"isolation-{name}", "integration"]
    if name == check_distribution.NATIVE:
        wanted.append("rust")
    command = [sys.executable, "-m", "nox", "--error-on-missing-interpreters", "--session", *wanted]
    # The release builds with locked tools; sessions lock by themselves, and oldest-* on purpose not.
    environment = {name: value for name, value in os.environ.items() if name not in LOCKING}
    if subprocess.run(command, cwd=release.root, env=environment, check=False).returncode:
        return ["a session failed: see above"]
    return []


def built(release: Release) -> list[str]:
    """The sdist is built, the wheel is built from it alone, and both hold what they should."""
    package = release.package
    settings: tuple[str, ...] = ()
    if package.name == check_distribution.NATIVE:
        settings = ("--config-setting=build-args=--compatibility pypi",)
    release.files = check_distribution.build(package, release.root / "dist", *settings)
    found = [line for file in release.files for line in check_distribution.problems(file)]
    linux_only = [file.name for file in release.files if "-linux_" in file.name]
    return found + [f"{name}: tagged for this machine only" for name in linux_only]


def installed_alone(release: Release) -> list[str]:
    """In an empty environment the wheel installs with its declared needs, and so does the sdist."""
    siblings = closure((release.package.name,))[:-1]
    files = release.files or sorted((release.root / "dist").glob(f"{release.package.module}-*"))
    if not files:
        return ["there is no wheel and no sdist in dist: the check before this one builds them"]
    with tempfile.TemporaryDirectory() as folder:
        wheels = []
        for name in siblings:
            sources = release.root / PACKAGES[name].folder
            # The sessions have built the wheel of these sources.
            shelf = release.root / ".wheelhouse" / name / source_hash(sources, release.root)
            pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
            if not list(shelf.glob("*.whl")):
                shelf = Path(folder) / name
                if subprocess.run([*pip, str(shelf), str(sources)], check=False).returncode:
                    return [f"{name}: no wheel could be built"]
            wheels += shelf.glob("*.whl")
        return [
            line for file in files for line in check_distribution.install_problems(file, wheels)
        ]


Check = Callable[[Release], list[str]]
CHECKLIST: tuple[tuple[str, Check], ...] = (
    ("the tree is clean", clean_tree),
    ("the version is new, or tagged at this commit", version_and_tag),
    ("the ranges on siblings admit releases", floors),
    ("the changelog is collected", changelog),
    ("the lock is complete", locked_versions),
    ("the sessions are green", sessions),
    ("the sdist builds the wheel, and both are as they should be", built),
    ("wheel and sdist install alone and import", installed_alone),
)


def collect(release: Release) -> int:
    """Collect the fragments with towncrier."""
    folder = release.root / release.package.folder
    if not fragments(folder):
        print(f"{release.package.distribution}: there are no fragments")
        return 1
    command = [
        sys.executable, "-m", "towncrier", "build", "--yes", "--config",
        str(release.root / "pyproject.toml"), "--dir", str(folder),
        "--name", release.package.distribution,
        "--version", str(release.package.version(release.root)),
    ]  # fmt: skip
    return subprocess.run(command, cwd=release.root, check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Go through the checklist to its end: 1 when something is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", choices=PACKAGES)
    parser.add_argument("--changelog", action="store_true", help="collect the fragments")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="checks with this in their title"
    )
    options = parser.parse_args(arguments)
    release = Release(PACKAGES[options.package])
    if options.changelog:
        return collect(release)
    failed = 0
    for title, check in CHECKLIST:
        if options.only not in title:
            continue
        begin = time.monotonic()
        found = check(release)
        failed += bool(found)
        seconds = round(time.monotonic() - begin)
        took = f" ({seconds // 60} min {seconds % 60} s)" if seconds else ""
        print(f"[{'x' if found else 'ok'}] {title}{took}", flush=True)
        for line in found:
            print(f"      {line}", flush=True)
    if failed:
        print(f"{release.package.distribution}: {failed} checks failed")
        return 1
    if options.only:
        return 0
    print(f"{release.package.distribution}: ready. Tag and upload it with")
    print(f"  git tag --annotate {release.tag} --message {release.tag}")
    print(f"  python -m twine upload {' '.join(str(file) for file in release.files)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
