"""Lets test modules import what lies beside them under importlib's import mode."""

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parent / "conformance"):
    sys.path.insert(0, str(folder))
