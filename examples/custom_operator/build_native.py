"""Builds the crate in native/ and puts its library beside the modules that load it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARIES = ("libcustom_operator.so", "libcustom_operator.dylib", "custom_operator.dll")


class NativeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs cargo; the wheel is for this platform and any Python 3."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects the files of the wheel."""
        crate = Path(self.root) / "native"
        target = Path(tempfile.gettempdir()) / "onemodel-example-custom-operator"
        subprocess.run(
            ["cargo", "build", "--release", "--quiet", "--manifest-path", crate / "Cargo.toml",
             "--target-dir", target],
            check=True,
        )  # fmt: skip
        built = [target / "release" / name for name in LIBRARIES]
        library = next(path for path in built if path.exists())
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        shutil.copy2(library, Path(self.root) / "src" / "custom_operator" / library.name)
