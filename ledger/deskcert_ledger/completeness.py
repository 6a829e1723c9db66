"""Completeness proofs: "these are all 3 denials among a million records", "no write was blocked".

One JSON object on one line, in the ledger's subset and in one spelling:

    {"format":"deskcert/class-proof/v1","class":…,"key_intro":…,"classes_note":…,"checkpoint":…,
     "records":[{"seq":…,"line":…,"path":[<base64 hash>…]}…]}

The note of record classes and the checkpoint are signed by the run key, which the pinned project key introduced. All
members together give the class's root; each leads to the ledger's root; each is of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.certificate import check_certificate, read_certificate
from deskcert_ledger.checkpoint import parse_checkpoint
from deskcert_ledger.classes import CLASSES, WATCHED_KINDS, class_root, classify, parse_class_note
from deskcert_ledger.keys import introduced_by
from deskcert_ledger.line import decode, encode
from deskcert_ledger.merkle import HASH_BYTES, check_inclusion, leaf_hash
from deskcert_ledger.note import Verifier, parse_note
from deskcert_ledger.proof import Prover, run_key_of
from deskcert_ledger.reader import Record, check_record, open_ledger, parse_record
from deskcert_ledger.run_certificate import RUN_CERTIFICATE, kind_of
from deskcert_schema.errors import ContractError, LedgerFormatError, LedgerTampered

__all__ = ["MAX_CLASS_PROOF_BYTES", "AllOf", "check_class_proof", "is_class_proof", "prove_all"]

_FORMAT: Final = "deskcert/class-proof/v1"
_BEGIN: Final = b'{"format":"deskcert/class-proof/'
MAX_CLASS_PROOF_BYTES: Final = 16 << 20
"""Some ten thousand records of ordinary length. Reading it takes a few times as much memory."""
_TOO_MANY: Final = (
    f"the class has so many records that their proof would be larger than {MAX_CLASS_PROOF_BYTES >> 20} MiB; "
    "show the whole ledger instead: deskcert ledger export RUN --to pack"
)


@dataclass(frozen=True, slots=True)
class AllOf:
    """These are all records of one class, in that log."""

    name: str
    records: tuple[Record, ...]
    origin: str
    size: int
    pin: Verifier
    not_checked: tuple[str, ...]
    """Names of keys whose signatures are not known here."""


def prove_all(folder: Path, name: str, pins: Sequence[Verifier]) -> bytes:
    """A completeness proof for class `name` of a sealed run.

    Raises `LedgerFormatError` (no such class, no ledger, no certificate) and `LedgerTampered` (they contradict).
    """
    if name not in CLASSES:
        raise LedgerFormatError(f"there is no record class {name!a}; there are {', '.join(CLASSES)}")
    if not (folder / RUN_CERTIFICATE).exists():
        raise LedgerFormatError(f"{folder} has no {RUN_CERTIFICATE}: only a sealed run can prove that records are all")
    certificate = check_certificate(read_certificate(folder / RUN_CERTIFICATE), pins)
    with Prover(folder) as prover:
        records: list[dict[str, Any]] = []
        left = MAX_CLASS_PROOF_BYTES
        for seq, line in _members(folder, name, prover.checkpoint.size):
            path = [b64encode(item) for item in prover.path(seq, line)]
            left -= len(line) + 47 * len(path)
            if left < 0:
                raise LedgerFormatError(_TOO_MANY)
            records.append({"seq": seq, "line": line.decode(), "path": path})
        value = {
            "format": _FORMAT,
            "class": name,
            "key_intro": prover.key_intro,
            "classes_note": certificate.statement.predicate["classes_note"],
            "checkpoint": prover.checkpoint.raw.decode(),
            "records": records,
        }
    try:
        raw = encode(value, limit=MAX_CLASS_PROOF_BYTES - 1) + b"\n"
    except ContractError as error:
        raise LedgerFormatError(_TOO_MANY) from error
    check_class_proof(raw, pins)
    return raw


def _members(folder: Path, name: str, size: int) -> Iterator[tuple[int, bytes]]:
    with open_ledger(folder) as file:
        for seq, line in zip(range(size), file, strict=False):
            if kind_of(line) in WATCHED_KINDS and name in classify(check_record(line[:-1], seq)):
                yield seq, line[:-1]


def is_class_proof(raw: bytes) -> bool:
    return raw.startswith(_BEGIN)


def check_class_proof(raw: bytes, pins: Sequence[Verifier]) -> AllOf:
    """Check a completeness proof against pinned project keys, with nothing else at hand.

    Raises `LedgerFormatError` when it is none, `LedgerTampered` when it proves nothing.
    """
    if len(raw) > MAX_CLASS_PROOF_BYTES:
        raise LedgerFormatError(f"a completeness proof of more than {MAX_CLASS_PROOF_BYTES >> 20} MiB")
    match decode(raw.removesuffix(b"\n"), limit=MAX_CLASS_PROOF_BYTES):
        case {
            "format": str(form),
            "class": str(name),
            "key_intro": str(intro),
            "classes_note": str(note_text),
            "checkpoint": str(checkpoint_text),
            "records": [*members],
            **rest,
        } if form == _FORMAT and not rest and raw.endswith(b"\n"):
            pass
        case _:
            raise LedgerFormatError("not a completeness proof")
    checkpoint, note = parse_checkpoint(checkpoint_text.encode()), parse_note(note_text)
    key = run_key_of(intro, checkpoint.origin)
    pin = next((pin for pin in pins if introduced_by(intro, checkpoint.origin, str(key), pin)), None)
    if pin is None:
        raise LedgerTampered("no pinned key introduced the run key of this proof")
    if not checkpoint.note.holds(key) or not note.holds(key):
        raise LedgerTampered("a note of this proof is not signed by the run key")
    told = parse_class_note(note.text)
    if (told.origin, told.size, told.root) != (checkpoint.origin, checkpoint.size, checkpoint.root):
        raise LedgerTampered("the classes are those of another ledger, or of another state of this one")
    if name not in told.classes:
        raise LedgerTampered(f"the note has no class {name!a}")
    records = tuple(_member(item, name, checkpoint.size, checkpoint.root) for item in members)
    count, root = told.classes[name]
    if len(records) != count or class_root((item.seq, leaf_hash(item.line)) for item in records) != root:
        raise LedgerTampered(f"these are not all records of class {name}: the run key signed {count}")
    signatures = [*checkpoint.note.signatures, *note.signatures]
    others = tuple(item.name for item in signatures if (item.name, item.key_id) != (key.name, key.id))
    return AllOf(name, records, checkpoint.origin, checkpoint.size, pin, others)


def _member(item: Any, name: str, size: int, root: bytes) -> Record:
    match item:
        case {"seq": int(seq), "line": str(text), "path": [*path], **rest} if not rest and seq is not True:
            line = text.encode(errors="replace")
        case _:
            raise LedgerFormatError("a member has a number, its line and a path")
    try:
        hashes = [b64decode(str(part), length=HASH_BYTES) for part in path]
        check_inclusion(seq, size, leaf_hash(line), hashes, root)
    except LedgerFormatError as error:
        raise LedgerTampered(f"record {seq}: {error}") from error
    if name not in classify(check_record(line, seq)):
        raise LedgerTampered(f"record {seq} is not of class {name}")
    return parse_record(line, seq)
