"""Cosignatures on checkpoints (C2SP tlog-cosignature.md): a witness says *when* it saw a tree head.

Ed25519, type 0x04: the signature field is the time (8 bytes, seconds) and a signature over
`cosignature/v1\\ntime <seconds>\\n` and the checkpoint's text. ML-DSA-44 (FIPS 204), type 0x06: the time, and a
signature over a structure of name, time, origin, range and root. The type is in the key id, so that a key cannot be
taken for one that signs checkpoints.
"""

from __future__ import annotations

from typing import Any, Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from deskcert_ledger.b64 import b64decode
from deskcert_ledger.merkle import HASH_BYTES
from deskcert_ledger.note import (
    ALG_COSIGNATURE,
    ALG_MLDSA44,
    Note,
    NoteSignature,
    Verifier,
    check_key_name,
)
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["COSIGNING", "PostQuantumWitness", "Witness", "cosigned_at", "why_not_counted"]

COSIGNING: Final = frozenset({ALG_COSIGNATURE, ALG_MLDSA44})
"""Types of key that cosign."""
_TIME_BYTES = 8
_MAX_SECONDS: Final = (1 << 63) - 1
_SLACK_SECONDS: Final = 3600
"""So much may a witness's clock be ahead of ours."""
_SIGNATURE_BYTES = {ALG_COSIGNATURE: 64, ALG_MLDSA44: 2420}


def _message(seconds: int, text: str) -> bytes:
    return f"cosignature/v1\ntime {seconds}\n{text}".encode()


def _subtree_message(name: str, seconds: int, text: str) -> bytes:
    """The structure of type 0x06 for a whole tree. Raises `LedgerFormatError` when `text` is no checkpoint's."""
    origin, size, root, *_ = [*text.split("\n"), "", "", ""]
    names = [item.encode() for item in (name, origin)]
    if not size.isdecimal() or max(map(len, names)) > 255 or int(size) >= 1 << 64:
        raise LedgerFormatError("no checkpoint that can be cosigned")
    who, log = (bytes([len(item)]) + item for item in names)
    ends = (0).to_bytes(8) + int(size).to_bytes(8)
    return b"subtree/v1\n\0" + who + seconds.to_bytes(8) + log + ends + b64decode(root, length=HASH_BYTES)


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


class PostQuantumWitness:
    """The same with ML-DSA-44, where the `cryptography` package has it."""

    def __init__(self, name: str) -> None:
        """Raises `LedgerFormatError` where it has not."""
        self._private = _mldsa().MLDSA44PrivateKey.generate()
        self.verifier = Verifier(check_key_name(name), ALG_MLDSA44, self._private.public_key().public_bytes_raw())

    def cosign(self, text: str, seconds: int) -> str:
        """As `Witness.cosign`."""
        signature = self._private.sign(_subtree_message(self.verifier.name, seconds, text))
        return NoteSignature(self.verifier.name, self.verifier.id, seconds.to_bytes(_TIME_BYTES) + signature).line()


def cosigned_at(note: Note, witness: Verifier) -> int | None:
    """Seconds since 1970 at which `witness` cosigned, or None when it did not.

    Raises `LedgerFormatError` (no cosignature key) and `LedgerTampered` (there is one, and it does not hold).
    """
    if witness.algorithm not in COSIGNING:
        raise LedgerFormatError(f"{witness.name} is no key for cosignatures")
    found = note.by(witness)
    if found is None:
        return None
    seconds = int.from_bytes(found.signature[:_TIME_BYTES])
    signature = found.signature[_TIME_BYTES:]
    fits = len(signature) == _SIGNATURE_BYTES[witness.algorithm] and seconds <= _MAX_SECONDS
    if not fits or not _holds(witness, seconds, note.text, signature):
        raise LedgerTampered(f"the cosignature of {witness.name} does not hold")
    return seconds


def why_not_counted(seconds: int, now: int) -> str:
    """A cosignature that holds and is no answer to "was this the latest state, and when?"; "" for one that is.

    The page lets a cosigner say time 0 when it does not vouch for the tree being the largest it saw, and a verifier
    reject times that are still to come.
    """
    if seconds == 0:
        return "it names no time, and so does not say that nothing longer was seen"
    return "its time is still to come" if seconds > now + _SLACK_SECONDS else ""


def _holds(witness: Verifier, seconds: int, text: str, signature: bytes) -> bool:
    if witness.algorithm == ALG_COSIGNATURE:
        return witness.accepts(_message(seconds, text), signature)
    try:
        public = _mldsa().MLDSA44PublicKey.from_public_bytes(witness.public)
        public.verify(signature, _subtree_message(witness.name, seconds, text))
    except (InvalidSignature, ValueError, LedgerFormatError):
        return False
    return True


def _mldsa() -> Any:
    """Guarded: mitmproxy allows releases of `cryptography` that do not have it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import mldsa

        mldsa.MLDSA44PrivateKey.generate()
    except (ImportError, UnsupportedAlgorithm) as error:
        raise LedgerFormatError("ML-DSA-44 needs a newer release of the `cryptography` package") from error
    return mldsa
