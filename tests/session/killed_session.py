"""A session over the simulator in a process of its own, for tests that kill it or take its disk away.

`python killed_session.py FOLDER EFFECTS MODE`: MODE `pause` stops itself where DESKCERT_PAUSE_AT says; `full` fills the
small file system that FOLDER is on after the first action; `sync` has the disk's sync fail after it. Each delivery is
written to EFFECTS by the simulated application, the number of its intent a line, whatever deskcert knows of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

from guarded_world import Guarded, orders

from deskcert.adapters.simulator import Simulator
from deskcert.session import Pause, nothing, pause_from
from deskcert_ledger.store import Disk


class Telling:
    """A world that writes down by itself what was delivered to it."""

    def __init__(self, effects: Path) -> None:
        self._world, self._effects = orders(), os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def perform(self, handle: Any, action: Any, expected: Any, number: int) -> Any:
        dispatch = self._world.perform(handle, action, expected, number)
        if dispatch.reached:
            os.write(self._effects, f"{number}\n".encode())
        return dispatch


def _no_sync(self: Disk, fd: int) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


async def main(folder: Path, effects: Path, mode: str) -> None:
    pause = pause_from(os.environ)
    at_point = nothing if pause is None else Pause(pause)
    guarded = Guarded(folder, adapter=Simulator(Telling(effects)), at_point=at_point)  # type: ignore[arg-type]
    told: list[dict[str, Any]] = []
    for turn in range(6):
        if turn == 1 and mode == "full":
            with (folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
                while True:
                    filler.write(b"x" * 256)
        if turn == 1 and mode == "sync":
            Disk.datasync = _no_sync  # type: ignore[method-assign]
        snapshot = await guarded("snapshot")
        if snapshot["ok"]:
            answer = await guarded("click", ref=f"@{snapshot['data']['snapshot_id']}:e{1 + turn % 2}")
        else:
            answer = snapshot
        told.append(answer.get("error") or {"ok": True})
    sys.stdout.write(json.dumps({"told": told, "poisoned": guarded.ledger.poisoned}) + "\n")
    if guarded.ledger.poisoned is None:
        guarded.ledger.seal()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
