"""Lets test modules import the models beside this file under importlib's import mode."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
