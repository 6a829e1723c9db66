"""in-toto Statements v1 (in-toto/attestation, spec/v1): our own predicates, and `test-result/v0.1` for other tools.

A statement is written with fixed order of members and no time of its own: everything in it is a function of what is
certified. Digests are lower-case hex SHA-256.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from deskcert_ledger.clock import timestamp
from deskcert_ledger.line import decode, encode
from deskcert_schema.errors import LedgerFormatError

__all__ = [
    "RUN_PREDICATE",
    "SUITE_PREDICATE",
    "TEST_RESULT",
    "VALID_DAYS",
    "Statement",
    "decode_statement",
    "expires_at",
    "named_digests",
    "parse_time",
    "result_of_tests",
]

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
TEST_RESULT: Final = "https://in-toto.io/attestation/test-result/v0.1"
RUN_PREDICATE: Final = "deskcert:run-certificate/v1"
SUITE_PREDICATE: Final = "deskcert:suite-certificate/v1"
VALID_DAYS: Final = 90
"""Agents and applications change; a certificate that old says little about today's."""
_LIMIT = 16 << 20
_HEX = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Statement:
    subjects: tuple[tuple[str, str], ...]
    """(name, hex SHA-256)."""
    predicate_type: str
    predicate: dict[str, Any]

    def encode(self) -> bytes:
        """Raises `ContractError` for a predicate outside the ledger's JSON subset."""
        return encode(
            {
                "_type": STATEMENT_TYPE,
                "subject": [descriptor(name, digest) for name, digest in self.subjects],
                "predicateType": self.predicate_type,
                "predicate": self.predicate,
            },
            limit=_LIMIT,
        )


def descriptor(name: str, digest: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest}}


def decode_statement(raw: bytes) -> Statement:
    """Parse strictly. Raises `LedgerFormatError` for anything that `Statement.encode` would not write."""
    match decode(raw, limit=_LIMIT):
        case {
            "_type": str(),
            "subject": [_, *_] as subjects,
            "predicateType": str(predicate_type),
            "predicate": dict(predicate),
        }:
            found = Statement(tuple(map(_subject, subjects)), predicate_type, predicate)
            if found.encode() == raw:
                return found
    raise LedgerFormatError("not an in-toto statement as this program writes it")


def _subject(value: Any) -> tuple[str, str]:
    match value:
        case {"name": str(name), "digest": {"sha256": str(digest)}} if _HEX.fullmatch(digest):
            return name, digest
    raise LedgerFormatError("a subject has a name and a SHA-256")


def result_of_tests(
    subjects: Sequence[tuple[str, str]],
    result: str,
    configuration: Sequence[Mapping[str, Any]],
    *,
    passed: Sequence[str],
    warned: Sequence[str] = (),
    failed: Sequence[str] = (),
) -> Statement:
    """`result`: PASSED, WARNED or FAILED."""
    predicate = {
        "result": result,
        "configuration": list(configuration),
        "passedTests": list(passed),
        "warnedTests": list(warned),
        "failedTests": list(failed),
    }
    return Statement(tuple(subjects), TEST_RESULT, predicate)


def named_digests(start: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a `run.start`: what a run was made with. Another digest of one of these, and its certificate says nothing."""
    found = []
    for name, member in (("agent", "command_digest"), ("policy", "digest"), ("suite", "digest"), ("schema", "digest")):
        part = start.get(name)
        digest = part.get(member) if isinstance(part, Mapping) else None
        if isinstance(digest, str) and _HEX.fullmatch(digest):
            found.append(descriptor(name, digest))
    return found


def parse_time(text: str) -> datetime:
    """A record's `t`. Raises `LedgerFormatError`."""
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise LedgerFormatError(f"not a time as a record has it: {text[:40]!a}") from error


def expires_at(last: str) -> str:
    """`VALID_DAYS` after the last record: the clock of whoever asks has no part in it."""
    return timestamp(parse_time(last) + timedelta(days=VALID_DAYS))
