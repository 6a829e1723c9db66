"""A witness: a process of its own that has seen every checkpoint grow out of the one before, and says so.

Without one, whoever holds the run key can drop the last records and sign what is left. The witness holds another key,
drawn in its own memory, and remembers for each run the largest checkpoint it has cosigned; it cosigns another only with
a consistency proof from there (C2SP tlog-witness.md, add-checkpoint). Neither process can roll a run back alone.

It speaks JSON lines on its standard input and output, and ends with its input:
`{"log": <vkey of a run>}` → `{"known": true}` · `{"add": <add-checkpoint request>}` → `{"cosignature": <line>}` or
`{"refused": <why>, "size": <what it has cosigned>}`.
"""

from __future__ import annotations

import json
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.checkpoint import Checkpoint, parse_checkpoint
from deskcert_ledger.cosignature import Witness
from deskcert_ledger.merkle import HASH_BYTES, check_consistency
from deskcert_ledger.note import Verifier, parse_vkey
from deskcert_schema.errors import DeskcertError, LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = ["WitnessProcess", "Witnessing", "add_checkpoint", "main"]

_MAX_PROOF: Final = 63
_ANSWER_SECONDS: Final = 10.0


def add_checkpoint(old: int, proof: Sequence[bytes], note: bytes) -> str:
    """The body of a request: what was cosigned last, the proof from there, and the signed checkpoint."""
    return f"old {old}\n{''.join(f'{b64encode(item)}\n' for item in proof)}\n{note.decode()}"


@dataclass(slots=True)
class _Log:
    key: Verifier
    size: int = 0
    root: bytes = b""


class Witnessing:
    """What a witness knows. Pure but for its memory; time is an argument."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._logs: dict[str, _Log] = {}

    def know(self, vkey: str) -> None:
        """From now on this key's checkpoints are cosigned; a log keeps the key it came with. Raises `LedgerError`."""
        key = parse_vkey(vkey)
        if self._logs.setdefault(key.name, _Log(key)).key != key:
            raise LedgerTampered(f"{key.name} has another key already")

    def size(self, origin: str) -> int:
        return self._logs[origin].size if origin in self._logs else 0

    def add(self, request: str, seconds: int) -> str:
        """The cosignature line. Raises `LedgerFormatError`, `LedgerTampered` with the reason."""
        head, _, raw = request.partition("\n\n")
        first, *lines = head.split("\n")
        checkpoint = parse_checkpoint(raw.encode())
        log = self._logs.get(checkpoint.origin)
        if log is None or not checkpoint.note.holds(log.key):
            raise LedgerTampered("a checkpoint of a log that is not known, or that its key did not sign")
        if first != f"old {log.size}":
            raise LedgerFormatError(f"the last that was cosigned is of size {log.size}")
        if len(lines) > _MAX_PROOF:
            raise LedgerFormatError("a proof that is too long")
        self._grown(log, checkpoint, [b64decode(line, length=HASH_BYTES) for line in lines])
        log.size, log.root = checkpoint.size, checkpoint.root
        return self._witness.cosign(checkpoint.note.text, seconds)

    @staticmethod
    def _grown(log: _Log, checkpoint: Checkpoint, proof: list[bytes]) -> None:
        if log.size == 0:
            if proof or checkpoint.size == 0:
                raise LedgerFormatError("nothing is to be proved from the empty log, and nothing to be signed")
            return
        check_consistency(log.size, checkpoint.size, log.root, checkpoint.root, proof)


class WitnessProcess:
    """The client's side: starts a witness and asks it. Thread safe. Once it is gone, or refuses, it is lost."""

    def __init__(self) -> None:
        """Raises `LedgerUnavailable` when it does not start."""
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "deskcert_ledger.witness"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise LedgerUnavailable(f"the witness does not start: {error.strerror}") from error
        self._lock = threading.Lock()
        self._vkey = ""

    @property
    def vkey(self) -> str:
        """Waits for the process to be there. Raises `LedgerUnavailable`."""
        with self._lock:
            if not self._vkey:
                self._vkey = str(self._read().get("vkey", ""))
            return self._vkey

    @property
    def pid(self) -> int:
        return self._process.pid

    def know(self, run_vkey: str) -> None:
        """Raises `LedgerUnavailable`."""
        self._ask({"log": run_vkey})

    def cosign(self, request: str) -> str:
        """The cosignature line. Raises `LedgerUnavailable` when there is none."""
        return str(self._ask({"add": request})["cosignature"])

    def close(self) -> None:
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_ANSWER_SECONDS)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, question: dict[str, str]) -> dict[str, Any]:
        assert self.vkey  # it speaks first
        assert self._process.stdin is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
                self._process.stdin.flush()
            except (OSError, ValueError) as error:
                raise LedgerUnavailable("the witness is gone") from error
            answer = self._read()
        if "refused" in answer:
            raise LedgerUnavailable(f"the witness refuses: {answer['refused']}")
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], _ANSWER_SECONDS)
        line = self._process.stdout.readline() if readable else b""
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise LedgerUnavailable("the witness is gone") from error
        return answer if isinstance(answer, dict) else {}


def main() -> int:
    """The process itself."""
    witness = Witness(f"deskcert/witness/{secrets.token_hex(4)}", None)
    known = Witnessing(witness)
    _say({"vkey": str(witness.verifier)})
    for line in sys.stdin.buffer:
        origin = ""
        try:
            asked = json.loads(line)
            if "log" in asked:
                known.know(str(asked["log"]))
                _say({"known": True})
                continue
            request = str(asked["add"])
            origin = request.partition("\n\n")[2].partition("\n")[0]
            _say({"cosignature": known.add(request, int(time.time()))})
        except (DeskcertError, ValueError, KeyError, TypeError) as error:
            _say({"refused": str(error), "size": known.size(origin)})
    return 0


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
