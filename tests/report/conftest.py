"""The helpers that write runs live beside the scoring tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scoring"))
