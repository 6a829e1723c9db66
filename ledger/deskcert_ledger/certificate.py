"""Checking a certificate: against a pinned project key, with nothing else at hand, or beside the run it is about.

A run's certificate is signed by the run key, which it introduces with a note of the project key; a suite's is signed by
the project key itself. Neither is trusted for what it carries: the pin comes from outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.checkpoint import parse_checkpoint
from deskcert_ledger.classes import ClassNote, parse_class_note
from deskcert_ledger.dsse import IN_TOTO, Envelope, decode_bundle, decode_envelope, key_hint
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.keys import introduced_by
from deskcert_ledger.note import Verifier, parse_note, parse_vkey
from deskcert_ledger.statement import (
    RUN_PREDICATE,
    SUITE_PREDICATE,
    TEST_RESULT,
    Statement,
    decode_statement,
    parse_time,
)
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["MAX_CERTIFICATE_BYTES", "Certificate", "check_certificate", "file_digest", "read_certificate"]

MAX_CERTIFICATE_BYTES = 64 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate whose signatures hold."""

    statement: Statement
    """Of our own predicate."""
    test_result: str | None
    """PASSED, WARNED or FAILED; None in a bundle, which holds one statement."""
    key: Verifier
    """That signed it."""
    pin: Verifier
    classes: ClassNote | None
    """Of a run."""

    @property
    def is_suite(self) -> bool:
        return self.statement.predicate_type == SUITE_PREDICATE

    def expired(self, now: datetime) -> bool:
        return parse_time(str(self.statement.predicate.get("expires_at"))) <= now


def read_certificate(path: Path) -> bytes:
    """Raises `LedgerFormatError` when it cannot be read or is too long."""
    try:
        raw = read_bounded(path, MAX_CERTIFICATE_BYTES)
    except OSError as error:
        raise LedgerFormatError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > MAX_CERTIFICATE_BYTES:
        raise LedgerFormatError(f"{path} is too long for a certificate")
    return raw


def check_certificate(raw: bytes, pins: Sequence[Verifier]) -> Certificate:
    """Check `*.intoto.jsonl` or `*.sigstore.json`. What is parsed is what was verified, byte for byte.

    Raises `LedgerFormatError` when it is none, `LedgerTampered` when it does not hold. Expiry is the caller's question.
    """
    envelopes = _envelopes(raw)
    statements = [_statement(envelope) for envelope in envelopes]
    first = statements[0]
    match first.predicate_type:
        case t if t == RUN_PREDICATE:
            key, pin = _run_key(first.predicate, pins)
        case t if t == SUITE_PREDICATE:
            found = next((pin for pin in pins if key_hint(pin) == envelopes[0].keyid), None)
            if found is None:
                raise LedgerTampered("the certificate is not signed by a pinned key")
            key = pin = found
        case _:
            raise LedgerFormatError(f"its predicate is not one of ours: {first.predicate_type[:100]!a}")
    if not all(envelope.holds(key) for envelope in envelopes):
        raise LedgerTampered("a signature of the certificate does not hold")
    result = None
    for other in statements[1:]:
        if other.predicate_type != TEST_RESULT or other.subjects != first.subjects or result is not None:
            raise LedgerTampered("the second statement is no test result about the same subjects")
        result = str(other.predicate.get("result"))
    classes = _check_run(first.predicate, key) if key is not pin else None
    parse_time(str(first.predicate.get("expires_at")))
    return Certificate(first, result, key, pin, classes)


def _envelopes(raw: bytes) -> list[Envelope]:
    if raw.startswith(b'{"mediaType"'):
        return [decode_bundle(raw)]
    lines = raw.split(b"\n")
    if lines.pop() != b"" or len(lines) != 2:
        raise LedgerFormatError("a certificate is two lines, our statement and the test result, or a Sigstore bundle")
    return [decode_envelope(line) for line in lines]


def _statement(envelope: Envelope) -> Statement:
    if envelope.payload_type != IN_TOTO:
        raise LedgerFormatError("its payload is no in-toto statement")
    return decode_statement(envelope.payload)


def _run_key(predicate: dict[str, Any], pins: Sequence[Verifier]) -> tuple[Verifier, Verifier]:
    origin, vkey, intro = (str(predicate.get(name)) for name in ("origin", "vkey", "key_intro"))
    key = parse_vkey(vkey)
    if str(key) != vkey or key.name != origin:
        raise LedgerTampered("the run key has another name than the origin")
    pin = next((pin for pin in pins if introduced_by(intro, origin, vkey, pin)), None)
    if pin is None:
        raise LedgerTampered("no pinned key introduced the run key of this certificate")
    return key, pin


def _check_run(predicate: dict[str, Any], key: Verifier) -> ClassNote:
    """The notes within the statement say the same as the statement."""
    checkpoint = parse_checkpoint(str(predicate.get("checkpoint")).encode())
    text = parse_note(str(predicate.get("classes_note")))
    classes = parse_class_note(text.text)
    if not checkpoint.note.holds(key) or not text.holds(key):
        raise LedgerTampered("a note in the certificate is not signed by the run key")
    told = (predicate.get("origin"), predicate.get("size"), predicate.get("root"))
    counts = {name: count for name, (count, _) in classes.classes.items()}
    same = (classes.origin, classes.size, classes.root) == (checkpoint.origin, checkpoint.size, checkpoint.root)
    if told != (checkpoint.origin, checkpoint.size, b64encode(checkpoint.root)) or not same:
        raise LedgerTampered("the certificate names another tree than its checkpoint")
    if predicate.get("classes") != counts:
        raise LedgerTampered("the certificate counts its classes otherwise than its note")
    return classes


def file_digest(path: Path) -> str:
    """Hex SHA-256 of a file. Raises `OSError`."""
    digest = sha256()
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
