"""Attacks that once got through, and peers that lie: each under the name of what went wrong."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from conftest import StepClock, fill

from deskcert.cli._project_log import read_logs
from deskcert_ledger import ProjectKey, RunLedger, pack_verifier, recover_run, verify_run
from deskcert_ledger.blob import check_blob
from deskcert_ledger.completeness import MAX_CLASS_PROOF_BYTES, check_class_proof
from deskcert_ledger.line import decode, encode
from deskcert_ledger.project_log import COPY, ProjectLog, check_log
from deskcert_ledger.socket_client import LedgerClient
from deskcert_ledger.socket_server import MAX_CONNECTIONS, LedgerServer
from deskcert_ledger.wire import message
from deskcert_schema.errors import LedgerError, LedgerFormatError, LedgerUnavailable

Create = Callable[..., RunLedger]


@pytest.mark.parametrize(
    "name", ["ledger.jsonl", "checkpoints", "ledger.hashes", "disclosures.jsonl", ".checkpoint.tmp"]
)
@pytest.mark.parametrize("sort", ["link", "pipe"])
def test_recovery_writes_through_no_link_and_waits_at_no_pipe(
    create: Create, key: ProjectKey, tmp_path: Path, name: str, sort: str
) -> None:
    """A folder that was unpacked: its files can be links to what only the project's owner may write."""
    ledger = create()
    fill(ledger)
    ledger.append("action.intent", {"command": "click"})
    ledger.abandon()
    (ledger.folder / "checkpoint").unlink()
    victim, path = tmp_path / "victim", ledger.folder / name
    if path.exists():
        shutil.move(path, victim)
    else:
        victim.write_bytes(b"mine")
    before = victim.read_bytes()
    path.symlink_to(victim) if sort == "link" else os.mkfifo(path)
    with pytest.raises((LedgerError, OSError)):
        recover_run(ledger.folder, key)
    assert victim.read_bytes() == before


def test_a_sparse_blob_of_a_terabyte_is_refused_unread(sealed: Path, key: ProjectKey) -> None:
    (path,) = (sealed / "blobs").iterdir()
    size = path.stat().st_size
    os.truncate(path, 1 << 40)
    assert "is not what its record says" in str(check_blob(sealed, {"blob": path.name, "bytes": size}))
    assert verify_run(sealed, pins=[key.vkey]).headline == "tampered"


# -- the project log ---------------------------------------------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path, create: Create, key: ProjectKey) -> Path:
    log = ProjectLog(tmp_path / ".deskcert" / "log", key, StepClock(), campaign="c")
    for name in ("a-1", "a-2", "a-3"):
        ledger = create(f"out/runs/{name}", origin=f"deskcert/test/{name}", register=log.begin(name))
        ledger.append("run.end", {})
        ledger.seal()
        log.copy(tmp_path / "out" / name)
    (tmp_path / "out" / "a-3").rename(tmp_path / "out" / COPY)
    return tmp_path / "out"


def _starts(out: Path) -> list[dict[str, Any]]:
    return [json.loads((run / "ledger.jsonl").read_bytes().split(b"\n")[0]) for run in sorted((out / "runs").iterdir())]


def test_the_last_leaf_cannot_be_dropped_with_its_run_and_the_checkpoint(out: Path, key: ProjectKey) -> None:
    shutil.rmtree(out / "runs" / "a-3")
    lines = (out / COPY / "log.jsonl").read_bytes().splitlines(keepends=True)
    (out / COPY / "log.jsonl").write_bytes(b"".join(lines[:2]))
    (out / COPY / "checkpoint").unlink()
    assert not check_log(out / COPY, (key.verifier,), _starts(out)).good


def test_an_older_copy_of_the_log_does_not_hide_a_run_from_the_projects_own(out: Path, key: ProjectKey) -> None:
    live = out.parent / ".deskcert" / "log"
    assert read_logs([out], (key.verifier,), live)[out].good
    shutil.rmtree(out / "runs" / "a-3")
    for copy in (out / "a-2", None):
        shutil.rmtree(out / COPY)
        if copy is not None:
            shutil.copytree(copy, out / COPY)
        assert read_logs([out], (key.verifier,), live)[out].missing == ("a-3",)


@pytest.mark.parametrize("name", ["log.jsonl", "checkpoint"])
def test_a_pipe_in_the_copy_of_the_log_does_not_block(out: Path, key: ProjectKey, name: str) -> None:
    (out / COPY / name).unlink()
    os.mkfifo(out / COPY / name)
    with pytest.raises(LedgerFormatError):
        check_log(out / COPY, (key.verifier,), _starts(out))


# -- formats -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["\ufffd:plain", "\ufffd:a\\", "\ufffd:\\ud800", "\ufffd:\ufffd:x", "\ufffd:\\\\", "x\ufffd:"]
)
def test_the_packs_verifier_takes_marked_strings_as_ours_does(text: str) -> None:
    raw = json.dumps({"a": [text], text: 1}, ensure_ascii=False, separators=(",", ":")).encode()
    answers = []
    for read in (decode, pack_verifier.load):
        try:
            read(raw)
            answers.append(True)
        except (LedgerFormatError, pack_verifier.Tampered):
            answers.append(False)
    assert answers[0] == answers[1]
    assert pack_verifier.load(encode({"a": "\ud800", "b": "\ufffd:"})) is not None


def test_a_completeness_proof_is_not_read_beyond_its_bound(key: ProjectKey) -> None:
    with pytest.raises(LedgerFormatError, match="more than 16 MiB"):
        check_class_proof(b'{"format":"deskcert/class-proof/v1"' + b" " * MAX_CLASS_PROOF_BYTES, [key.verifier])


# -- the socket --------------------------------------------------------------------------------------------------------


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """A sequencer that answers whatever comes with the same bytes."""
    listeners: list[socket.socket] = []

    def serve(said: bytes) -> Path:
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(tmp_path / "liar"))
        listener.listen(1)
        listeners.append(listener)

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.sendall(said)

        threading.Thread(target=answer, daemon=True).start()
        return tmp_path / "liar"

    yield serve
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize(
    "said",
    [
        b'{"id":1}\n',
        b'{"id":1,"seq":"3","commit_us":0}\n',
        b'{"id":1,"seq":-1,"commit_us":0}\n',
        b'{"id":2,"seq":1,"commit_us":0}\n',
        b"[]\n",
    ],
)
def test_a_writer_that_is_told_nonsense_is_refused_and_does_not_wait_for_ever(
    liar: Callable[[bytes], Path], said: bytes
) -> None:
    client = LedgerClient(liar(said))
    future = client.submit("claim", {})
    with pytest.raises(LedgerUnavailable):
        future.result(30)


def test_a_record_whose_payload_never_comes_is_refused(create: Create) -> None:
    late: Future[Any] = Future()
    with LedgerServer(create(), w="proxy", kinds=frozenset({"claim"}), complete=lambda kind, payload: late) as server:
        future = LedgerClient(server.path).submit("claim", {})
        late.set_exception(ValueError("no"))
        with pytest.raises(LedgerUnavailable, match="could not be completed"):
            future.result(30)


def test_silent_and_senseless_clients_keep_nobody_else_out_for_long(create: Create) -> None:
    """Those that say nothing fill the places; the next is turned away; when they go there is room again."""
    deep = b'{"id":1,"kind":"claim","payload":' + b'{"$blob":' * 900 + b"1" + b"}" * 901 + b"\n"
    with LedgerServer(create(), w="guard", kinds=frozenset({"claim"})) as server:
        for said in (deep, b'{"id":true}\n', b"\xff\n", message({"id": 1, "redact": "x"})):
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(str(server.path))
                one.sendall(said)
                assert one.recv(100) == b"", said
        silent = []
        for _ in range(MAX_CONNECTIONS):
            silent.append(socket.socket(socket.AF_UNIX))
            silent[-1].connect(str(server.path))
            silent[-1].sendall(b'{"id"')
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(server.path))
            assert one.recv(1) == b""
        for connection in silent:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        seq = None
        for _ in range(200):  # the threads of those that went end when they notice
            try:
                seq = LedgerClient(server.path).append("claim", {}).seq
                break
            except LedgerUnavailable:
                continue
        assert seq == 1
