import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # guarded_world


@pytest.fixture
def guarded(tmp_path):
    from guarded_world import Guarded

    return Guarded(tmp_path)
