"""A sequencer as a process of its own: one ledger, a socket, and nothing else.

For writers of which none should hold the file, the numbers and the run key: a guard and a proxy that are started apart,
a test with eight processes. It ends when its standard input does, or at SIGTERM: what was acknowledged is committed,
`run.end` is written, the ledger is sealed.
"""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from deskcert_ledger.clock import SystemClock
from deskcert_ledger.keys import ProjectKey
from deskcert_ledger.run import RunLedger, Sealed
from deskcert_ledger.socket_server import LedgerServer
from deskcert_schema.vocabulary import RecordKind

__all__ = ["WRITABLE", "serve"]

_OWN = {
    RecordKind.RUN_START, RecordKind.RUN_END, RecordKind.RECOVERY, RecordKind.KEY_EPOCH, RecordKind.REDACTION,
    RecordKind.BLOB_MISSING,
}  # fmt: skip
WRITABLE = frozenset(kind.value for kind in RecordKind if kind not in _OWN)
"""What writers may send; the rest is the sequencer's own."""


def serve(
    folder: Path,
    socket: Path | None,
    *,
    origin: str,
    start: Mapping[str, Any],
    project_key: ProjectKey,
    w: str,
    ready: Callable[[Path], None],
    kinds: frozenset[str] = WRITABLE,
) -> Sealed:
    """Serve a new ledger in `folder` until the end of standard input or SIGTERM; `ready` is told the socket's path.

    Raises `UsageError`, `LedgerUnavailable`.
    """
    clock = SystemClock()
    ledger = RunLedger.create(folder, origin=origin, start=start, project_key=project_key, clock=clock, rng=os.urandom)
    with ledger:
        server = LedgerServer(ledger, w=w, kinds=kinds, path=socket, redactor=project_key.verifier)
        with server, _Until() as until:
            ready(server.path)
            reason = until.wait()
        ledger.append(
            "run.end", {"outcome": "finished", "reason": reason, "effects_log": "disabled", "harness_ok": True}
        )
        return ledger.seal()


class _Until:
    """The end of standard input, or SIGTERM or SIGINT."""

    def __enter__(self) -> _Until:
        self._wake, told = os.pipe()
        self._told = told
        self._before = {
            number: signal.signal(number, lambda *_: os.write(told, b"x")) for number in (signal.SIGTERM, signal.SIGINT)
        }
        return self

    def wait(self) -> str:
        while True:
            readable, _, _ = select.select([0, self._wake], [], [])
            if self._wake in readable:
                return "told to stop"
            if not os.read(0, 4096):
                return "its input ended"

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._told)
