"""A real file system that is really full, in a mount namespace of its own: what is not recorded does not go out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_full_file_system_stops_writes(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 18), "--tmpfs", str(small), "--die-with-parent",
         sys.executable, str(HERE / "full_disk.py"), str(small)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["statuses"][-1] == 403
    assert set(told["statuses"]) <= {200, 403}
    assert told["forbidden"] == 403
    assert told["later"] == 403  # room again, but a ledger that could not be written once is not written again
    assert "No space left" in told["poisoned"]
    # Nothing arrived that is not in the ledger, and what was refused did not arrive.
    assert told["arrived"] == told["recorded"][: len(told["arrived"])]
    assert len(told["arrived"]) == 1 + told["statuses"].count(200)
    assert "/api/payouts/now" not in told["arrived"]
