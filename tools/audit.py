"""Known vulnerabilities, licences and sources of what the packages depend on.

    python tools/audit.py python     pip-audit over .ci/constraints.txt
    python tools/audit.py rust       cargo-deny over the crate's Cargo.lock

Both need the network. A database that cannot be reached is a failure that says so: an audit that did
not happen is not a clean one. What cargo-deny decides without a database (licences, sources, banned
and doubled crates) is decided and reported in any case.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from lock import LOCK

CRATE = Path(__file__).resolve().parents[1] / "crates" / "kernels"


def pinned(text: str) -> list[str]:
    """The pins that hold on this Python and machine, without their markers."""
    found = []
    for line in text.splitlines():
        content = line.partition("#")[0].strip()
        if content:
            requirement = Requirement(content)
            if requirement.marker is None or requirement.marker.evaluate():
                found.append(f"{requirement.name}{requirement.specifier}")
    return found


def audit_python() -> int:
    """Ask for the vulnerabilities of every locked version: 0 when none is known of any."""
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder) / "pins.txt"
        pins.write_text("\n".join(pinned(LOCK.read_text(encoding="utf-8"))) + "\n")
        command = ["-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
        result = subprocess.run(
            [sys.executable, *command, "--requirement", str(pins)],
            check=False, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
    if not result.stdout.strip():
        print("NOT checked: all packages, as pip-audit reached no service", file=sys.stderr)
        return 1
    found = verdict(json.loads(result.stdout)["dependencies"])
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


def verdict(dependencies: list[dict[str, Any]]) -> list[str]:
    """One line for each known vulnerability, and one for what was not audited.

    pip-audit itself ends with "no known vulnerabilities" when its service knows none of the packages.
    """
    found = [
        f"{entry['name']} {entry['version']}: {known['id']}, fixed in {known['fix_versions']}"
        for entry in dependencies
        for known in entry.get("vulns", [])
    ]
    skipped = [entry["name"] for entry in dependencies if "skip_reason" in entry]
    asked = len(dependencies) - len(skipped)
    print(f"checked: {asked} of {len(dependencies)} packages, {len(found)} known vulnerabilities")
    if skipped:
        found.append(
            f"NOT checked: {len(skipped)} packages, as the service that is reached here does not "
            f"know them: {', '.join(skipped[:5])} …"
        )
    return found


def audit_rust() -> int:
    """The offline checks first, then the advisories: 0 when all of it is clean."""
    try:
        subprocess.run(["cargo", "deny", "--version"], check=True)
    except (OSError, subprocess.CalledProcessError):
        print(
            "NOT checked: cargo-deny is not installed: cargo install cargo-deny --locked",
            file=sys.stderr,
        )
        return 1
    command = ["cargo", "deny", "--all-features", "--manifest-path", str(CRATE / "Cargo.toml")]
    checks = [("licences, sources, banned and doubled crates", ["licenses", "sources", "bans"])]
    fetched = subprocess.run([*command, "fetch", "db"], check=False).returncode == 0
    if fetched:
        checks.append(("known vulnerabilities", ["--disable-fetch", "advisories"]))
    failed = not fetched
    for title, which in checks:
        code = subprocess.run([*command, "check", *which], check=False).returncode
        failed |= code != 0
        print(f"checked: {title}: {'clean' if code == 0 else 'NOT clean, see above'}", flush=True)
    if not fetched:
        print(
            "NOT checked: known vulnerabilities, as the database of advisories was not reached",
            file=sys.stderr,
        )
    return int(failed)


def main() -> int:
    """Run the audit that was asked for."""
    audits = {"python": audit_python, "rust": audit_rust}
    if len(sys.argv) != 2 or sys.argv[1] not in audits:
        sys.exit(f"usage: audit.py {'|'.join(audits)}")
    return audits[sys.argv[1]]()


if __name__ == "__main__":
    sys.exit(main())
