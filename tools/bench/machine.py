"""What a run was made on, without naming the machine."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from onemodel_kernels import isa


def described() -> dict[str, Any]:
    """Processor, day and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "instructions": isa(),
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "onnxruntime": version("onnxruntime"),
        "onemodel": version("onemodel-graph"),
    }


def _processor() -> str:
    """The processor's model name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
