"""A witness in a process of its own: it cosigns what grows, and nothing that was rolled back or forked."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deskcert_ledger import ProjectKey, RunLedger, recover_run, verify_run
from deskcert_ledger.b64 import b64decode
from deskcert_ledger.checkpoint import checkpoint_text, parse_checkpoint
from deskcert_ledger.cosignature import PostQuantumWitness, Witness, cosigned_at
from deskcert_ledger.merkle import Tree, consistency_proof, leaf_hash, stored_hash_index
from deskcert_ledger.notary import Following
from deskcert_ledger.note import Signer, parse_vkey
from deskcert_ledger.policy import parse_policy
from deskcert_ledger.witness import Witnessing, WitnessProcess, add_checkpoint
from deskcert_schema.errors import LedgerError

Create = Callable[..., RunLedger]
NAMED = "cosignature of the run's own witness"
MISSED = "the run's witness did not cosign"


@pytest.fixture(scope="module")
def witness() -> Iterator[WitnessProcess]:
    with WitnessProcess() as process:
        yield process


@pytest.fixture
def run(create: Create, witness: WitnessProcess, request: pytest.FixtureRequest) -> Path:
    ledger = create(origin=f"deskcert/test/{abs(hash(request.node.name))}", witness=witness, following=Following.THREAD)
    for number in range(20):
        ledger.append("claim", {"n": number})
    ledger.append("run.end", {"outcome": "finished"})
    sealed = ledger.seal()
    assert sealed.checkpoint_text == (ledger.folder / "checkpoint").read_text()
    return ledger.folder


def own_witness(run: Path) -> str:
    start = json.loads((run / "ledger.jsonl").read_bytes().split(b"\n")[0])
    return str(start["witness"])


def test_a_sealed_run_bears_the_cosignature_of_the_other_process(
    run: Path, key: ProjectKey, witness: WitnessProcess
) -> None:
    assert own_witness(run) == witness.vkey
    final = parse_checkpoint((run / "checkpoint").read_bytes())
    assert len(final.note.signatures) == 2
    assert cosigned_at(final.note, parse_vkey(witness.vkey)) is not None
    report = verify_run(run, pins=[key.vkey], every_signature=True)
    assert (report.headline, report.problems) == ("complete", ())
    assert any(NAMED in item for item in report.checked)
    assert recover_run(run, key).outcome.value == "nothing_to_do"


def test_a_policy_can_ask_for_it(run: Path, key: ProjectKey, witness: WitnessProcess) -> None:
    policy = parse_policy(f"log {key.vkey}\nwitness second {witness.vkey}\nquorum second\n".encode())
    assert verify_run(run, policy=policy).headline == "complete"
    note = (run / "checkpoint").read_text().splitlines(keepends=True)
    (run / "checkpoint").write_text("".join(note[:-1]))
    assert verify_run(run, policy=policy).headline == "unverifiable"


def test_a_lost_cosignature_is_named_and_a_changed_one_is_tampering(run: Path, key: ProjectKey) -> None:
    whole = (run / "checkpoint").read_bytes()
    line = whole.rindex("\n— ".encode(), 0, -1) + 1
    (run / "checkpoint").write_bytes(whole[:line])
    report = verify_run(run, pins=[key.vkey])
    assert any(MISSED in item for item in report.not_checked)
    for at in range(line, len(whole), 3):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        (run / "checkpoint").write_bytes(changed)
        report = verify_run(run, pins=[key.vkey])
        lost = any(MISSED in item for item in report.not_checked)
        assert report.headline == "tampered" or lost, (at, report.headline)


def test_a_witness_that_nobody_introduced_is_tampering(create: Create, key: ProjectKey) -> None:
    """Whoever writes `run.start` cannot name a witness of their own choice: the project's key has to."""
    other = str(Witness("deskcert/witness/other", b"\7" * 32).verifier)
    ledger = create()
    start = json.loads((ledger.folder / "ledger.jsonl").read_bytes())
    start |= {"witness": other, "witness_intro": start["key_intro"]}
    from deskcert_ledger.epochs import Epochs
    from deskcert_schema.errors import LedgerTampered

    with pytest.raises(LedgerTampered, match="witness"):
        Epochs((key.verifier,), every_signature=False, notes_there=True).start(start)


def test_a_killed_witness_is_missed_and_the_run_goes_on(create: Create, key: ProjectKey) -> None:
    with WitnessProcess() as process:
        ledger = create(witness=process)
        os.kill(process.pid, signal.SIGKILL)
        ledger.append("claim", {})
        ledger.append("run.end", {})
        ledger.seal()
    report = verify_run(ledger.folder, pins=[key.vkey])
    assert report.headline == "complete"
    assert any(MISSED in item for item in report.not_checked)


def test_a_crashed_run_is_recovered_without_its_witness(
    create: Create, key: ProjectKey, witness: WitnessProcess
) -> None:
    ledger = create(origin="deskcert/test/crashed", witness=witness)
    ledger.append("action.intent", {"action": 1})
    folder = ledger.folder.with_name("crashed")
    shutil.copytree(ledger.folder, folder)
    assert recover_run(folder, key).open_intents == (1,)
    report = verify_run(folder, pins=[key.vkey], every_signature=True)
    assert (report.headline, report.problems) == ("interrupted", ())
    assert any(MISSED in item for item in report.not_checked)


class Log:
    """A log whose holder tries things."""

    def __init__(self) -> None:
        self.signer = Signer("deskcert/test/log", b"\1" * 32)
        self.cells: list[bytes] = []
        self.tree = Tree()

    def grow(self, *lines: bytes) -> Log:
        for line in lines:
            self.cells += self.tree.append(leaf_hash(line))
        return self

    def request(self, old: int, claimed: int | None = None) -> str:
        note = self.signer.sign_note(checkpoint_text("deskcert/test/log", self.tree.size, self.tree.root())).encode()
        size = self.tree.size
        path = (
            consistency_proof(old, size, lambda level, n: self.cells[stored_hash_index(level, n)])
            if 0 < old <= size
            else []
        )
        return add_checkpoint(old if claimed is None else claimed, path, note)


@pytest.fixture
def known() -> Witnessing:
    made = Witnessing(Witness("deskcert/witness/t", b"\2" * 32))
    made.know(str(Log().signer.verifier))
    return made


def test_a_witness_cosigns_what_grows(known: Witnessing) -> None:
    log = Log().grow(b"a", b"b", b"c")
    first = known.add(log.request(0), 1000)
    second = known.add(log.grow(b"d", b"e").request(3), 1001)
    assert first != second
    assert known.add(log.request(5), 1002)  # the same once more: only the time is newer


@pytest.mark.parametrize("what", ["rolled back", "forked", "from nothing again", "another key", "no proof", "unknown"])
def test_a_witness_cosigns_nothing_else(known: Witnessing, what: str) -> None:
    log = Log().grow(b"a", b"b", b"c", b"d", b"e")
    known.add(log.request(0), 1000)
    request = {
        "rolled back": lambda: Log().grow(b"a", b"b", b"c").request(3, claimed=5),
        "forked": lambda: Log().grow(b"a", b"b", b"c", b"X", b"e", b"f").request(5),
        "from nothing again": lambda: Log().grow(b"a", b"b").request(0),
        "another key": lambda: _signed_by_another(log.grow(b"f")).request(5),
        "no proof": lambda: log.grow(b"f").request(0, claimed=5),
        "unknown": lambda: log.grow(b"f").request(5).replace("deskcert/test/log", "deskcert/test/gol"),
    }[what]()
    with pytest.raises(LedgerError):
        known.add(request, 1001)
    assert known.size("deskcert/test/log") == 5


def _signed_by_another(log: Log) -> Log:
    log.signer = Signer("deskcert/test/log", b"\3" * 32)
    return log


def test_a_log_keeps_the_key_it_came_with(known: Witnessing) -> None:
    with pytest.raises(LedgerError):
        known.know(str(Signer("deskcert/test/log", b"\3" * 32).verifier))


@pytest.fixture(scope="module")
def post_quantum() -> PostQuantumWitness:
    return PostQuantumWitness("deskcert/witness/pq")


def test_a_post_quantum_cosignature_counts_for_a_policy(
    run: Path, key: ProjectKey, post_quantum: PostQuantumWitness
) -> None:
    vkey = str(post_quantum.verifier)
    policy = parse_policy(f"log {key.vkey}\nwitness pq {vkey}\nquorum pq\n".encode())
    assert verify_run(run, policy=policy).headline == "unverifiable"
    note = (run / "checkpoint").read_text()
    with (run / "checkpoint").open("a") as file:
        file.write(post_quantum.cosign(parse_checkpoint(note.encode()).note.text, 1_764_500_000))
    report = verify_run(run, policy=policy)
    assert (report.headline, report.exit_code) == ("complete", 0)
    assert report.witnesses[0].seconds == 1_764_500_000


def test_a_post_quantum_cosignature_is_over_time_name_size_and_root(post_quantum: PostQuantumWitness) -> None:
    """The message is made here again from the specification, and checked by the library alone."""
    from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA44PublicKey

    text = checkpoint_text("deskcert/test/log", 7, b"\5" * 32)
    line = post_quantum.cosign(text, 1000)
    raw = b64decode(line.rpartition(" ")[2].strip())
    name, origin = b"deskcert/witness/pq", b"deskcert/test/log"
    message = b"subtree/v1\n\0" + bytes([len(name)]) + name + (1000).to_bytes(8) + bytes([len(origin)]) + origin
    message += (0).to_bytes(8) + (7).to_bytes(8) + b"\5" * 32
    assert raw[:4] == post_quantum.verifier.id
    assert int.from_bytes(raw[4:12]) == 1000
    MLDSA44PublicKey.from_public_bytes(post_quantum.verifier.public).verify(raw[12:], message)
    signed = Signer("deskcert/test/log", b"\1" * 32).sign_note(text) + line
    assert cosigned_at(parse_checkpoint(signed.encode()).note, post_quantum.verifier) == 1000
    for other in (text.replace("\n7\n", "\n8\n"), text.replace("/log", "/lag")):
        moved = Signer("deskcert/test/log", b"\1" * 32).sign_note(other) + line
        with pytest.raises(LedgerError):
            cosigned_at(parse_checkpoint(moved.encode()).note, post_quantum.verifier)
