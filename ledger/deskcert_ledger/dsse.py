"""DSSE v1.0.2 envelopes (secure-systems-lab/dsse, protocol.md and envelope.md), Ed25519, one signature each.

What is signed is `PAE(type, body)`, never JSON that somebody parsed and wrote again. An envelope of ours has one
spelling: `decode_envelope` compares with its own re-encoding, so that no byte is without meaning. `keyid` is the
vkey without the key (`name+id`): a hint that names a key and is not believed.

A run key signs notes too. A PAE begins with `DSSEv1 `, and no note of ours does: the first line of a checkpoint is an
origin, and origins hold no space.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.line import decode, encode
from deskcert_ledger.note import Verifier
from deskcert_schema.errors import LedgerFormatError

__all__ = ["IN_TOTO", "Envelope", "bundle", "decode_bundle", "decode_envelope", "key_hint", "pae", "sign"]

IN_TOTO: Final = "application/vnd.in-toto+json"
_BUNDLE: Final = "application/vnd.dev.sigstore.bundle.v0.3+json"
_SIGNATURE_BYTES = 64
_LIMIT = 16 << 20


def pae(payload_type: str, body: bytes) -> bytes:
    """Pre-authentication encoding; lengths are decimal numbers of bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(body), body)


def key_hint(key: Verifier) -> str:
    return f"{key.name}+{key.id.hex()}"


@dataclass(frozen=True, slots=True)
class Envelope:
    payload_type: str
    payload: bytes
    keyid: str
    signature: bytes

    def as_json(self) -> dict[str, Any]:
        return {
            "payload": b64encode(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": self.keyid, "sig": b64encode(self.signature)}],
        }

    def encode(self) -> bytes:
        """One line, without its newline."""
        return encode(self.as_json(), limit=_LIMIT)

    def holds(self, key: Verifier) -> bool:
        """Does the envelope name `key`, and does its signature hold?"""
        return self.keyid == key_hint(key) and key.accepts(pae(self.payload_type, self.payload), self.signature)


def sign(body: bytes, key: Verifier, sign_bytes: Callable[[bytes], bytes], payload_type: str = IN_TOTO) -> Envelope:
    return Envelope(payload_type, body, key_hint(key), sign_bytes(pae(payload_type, body)))


def decode_envelope(raw: bytes) -> Envelope:
    """Parse strictly, signature unchecked. Raises `LedgerFormatError` for anything that `encode` would not write."""
    return _envelope(decode(raw, limit=_LIMIT), raw)


def _envelope(value: Any, raw: bytes | None = None) -> Envelope:
    match value:
        case {
            "payload": str(payload),
            "payloadType": str(kind),
            "signatures": [{"keyid": str(keyid), "sig": str(signature)}],
        }:
            found = Envelope(kind, b64decode(payload), keyid, b64decode(signature, length=_SIGNATURE_BYTES))
            if raw is None or found.encode() == raw:
                return found
    raise LedgerFormatError("not an envelope as this program writes it: payload, payloadType, one signature")


def bundle(envelope: Envelope) -> bytes:
    """A Sigstore bundle v0.3 with the key's hint and no log entry: `@sigstore/verify` takes it with the key at hand."""
    value = {
        "mediaType": _BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": envelope.keyid}, "tlogEntries": []},
        "dsseEnvelope": envelope.as_json(),
    }
    return encode(value, limit=_LIMIT) + b"\n"


def decode_bundle(raw: bytes) -> Envelope:
    """The envelope of a bundle as `bundle` writes it. Raises `LedgerFormatError`."""
    match decode(raw.removesuffix(b"\n"), limit=_LIMIT):
        case {"dsseEnvelope": value}:
            found = _envelope(value)
            if bundle(found) == raw:
                return found
    raise LedgerFormatError("not a Sigstore bundle as this program writes it")
