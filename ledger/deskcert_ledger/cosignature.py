"""Cosignatures on checkpoints (C2SP tlog-cosignature.md, Ed25519, type 0x04): a witness says *when* it saw a tree head.

The signature field is the time (8 bytes, seconds) and an Ed25519 signature over
`cosignature/v1\\ntime <seconds>\\n` and the checkpoint's text. The key id is made with type 0x04, so that a key
cannot be taken for one that signs checkpoints.
"""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deskcert_ledger.note import ALG_COSIGNATURE, Note, NoteSignature, Verifier, check_key_name
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["Witness", "cosigned_at"]

_TIME_BYTES, _SIGNATURE_BYTES = 8, 64


def _message(seconds: int, text: str) -> bytes:
    return f"cosignature/v1\ntime {seconds}\n{text}".encode()


class Witness:
    """A key that cosigns checkpoints. Whoever holds it first checks that the log only grew."""

    def __init__(self, name: str, seed: bytes | None) -> None:
        """Without a seed the key is drawn here, and nobody else ever holds it."""
        self._private = Ed25519PrivateKey.generate() if seed is None else Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(check_key_name(name), ALG_COSIGNATURE, self._private.public_key().public_bytes_raw())

    def cosign(self, text: str, seconds: int) -> str:
        """The signature line over a checkpoint's text, to be put after the log's own. `seconds` since 1970."""
        signature = seconds.to_bytes(_TIME_BYTES) + self._private.sign(_message(seconds, text))
        return NoteSignature(self.verifier.name, self.verifier.id, signature).line()


def cosigned_at(note: Note, witness: Verifier) -> int | None:
    """Seconds since 1970 at which `witness` cosigned, or None when it did not.

    Raises `LedgerFormatError` (no cosignature key) and `LedgerTampered` (there is one, and it does not hold).
    """
    if witness.algorithm != ALG_COSIGNATURE:
        raise LedgerFormatError(f"{witness.name} is no key for cosignatures")
    found = note.by(witness)
    if found is None:
        return None
    seconds = int.from_bytes(found.signature[:_TIME_BYTES])
    signature = found.signature[_TIME_BYTES:]
    if len(signature) != _SIGNATURE_BYTES or not witness.accepts(_message(seconds, note.text), signature):
        raise LedgerTampered(f"the cosignature of {witness.name} does not hold")
    return seconds
