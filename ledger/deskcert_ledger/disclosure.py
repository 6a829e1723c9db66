"""Secrets in a record: salted commitments in the form of RFC 9901 section 4.2, and their openings.

A disclosure is base64url of the JSON array `[salt, name, value]`; its digest is base64url of SHA-256 over the
disclosure *string*. The record holds the sorted digests under `_sd` and neither name nor length of what is hidden.
Openings stand in `disclosures.jsonl`, which may be deleted, in part or whole, without changing a leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from deskcert_ledger.b64 import b64url_decode, b64url_encode
from deskcert_ledger.line import dumps, encode, loads, unescape_text
from deskcert_schema.errors import LedgerFormatError

__all__ = ["SD", "Commitment", "Secret", "commit", "open_disclosure"]

SD = "_sd"
SALT_BYTES = 16
_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class Secret:
    """As a value in an object of a payload, or of a blob's content: written as a commitment."""

    value: str
    openable: bool = True
    """False leaves no opening at all: nobody can show the value later, not even its owner."""

    def __repr__(self) -> str:
        return "Secret(…)"


@dataclass(frozen=True, slots=True)
class Commitment:
    digest: str
    sidecar: bytes
    """The line for `disclosures.jsonl`, or nothing."""


def commit(name: str, secret: Secret, rng: Callable[[int], bytes]) -> Commitment:
    """The commitment to `name: value`. A fresh salt each time, so that equal values do not look equal."""
    disclosure = b64url_encode(encode([b64url_encode(rng(SALT_BYTES)), name, secret.value], limit=_LIMIT))
    digest = _digest(disclosure)
    line = dumps({"digest": digest, "disclosure": disclosure}) + b"\n" if secret.openable else b""
    return Commitment(digest, line)


def _digest(disclosure: str) -> str:
    return b64url_encode(sha256(disclosure.encode("ascii")).digest())


def open_disclosure(disclosure: str) -> tuple[str, str, str]:
    """`(digest, name, value)` of a disclosure string. Raises `LedgerFormatError`.

    Foreign writers may space their JSON otherwise, so the array is parsed leniently: the digest covers its bytes.
    """
    match loads(b64url_decode(disclosure)):
        case [str(), str(name), str(value)]:
            return _digest(disclosure), unescape_text(name), unescape_text(value)
    raise LedgerFormatError("a disclosure is an array of salt, name and text")
