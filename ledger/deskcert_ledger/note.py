"""Signed notes and verifier keys (C2SP signed-note.md), Ed25519.

A note is text that ends in a newline, an empty line, and signature lines `— <key name> base64(key id || signature)`.
Rules kept here: valid UTF-8, no control characters but newline, text split at the last empty line, unknown keys
ignored, a known key whose signature fails rejects the note, base64 in its one spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = [
    "ALG_COSIGNATURE",
    "ALG_ED25519",
    "ALG_MLDSA44",
    "Note",
    "NoteSignature",
    "Signer",
    "Verifier",
    "check_key_name",
    "key_id",
    "open_note",
    "parse_note",
    "parse_vkey",
]

ALG_ED25519 = 0x01
ALG_COSIGNATURE = 0x04
ALG_MLDSA44 = 0x06
"""A cosignature too: post-quantum, for those who want one (tlog-cosignature.md)."""
MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100
"""The specification asks to accept at least 16; Go's package stops at 100."""
_PUBLIC_BYTES = {ALG_ED25519: 32, ALG_COSIGNATURE: 32, ALG_MLDSA44: 1312}
_SIGNATURE_BYTES, _KEY_ID_BYTES = 64, 4
_DASH = "— "
_PLAIN_NAME = re.compile(r"[!-*,-~]+", re.ASCII)
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


def check_key_name(name: str) -> str:
    """Names are not empty and have no Unicode space, no control character and no plus sign."""
    if _PLAIN_NAME.fullmatch(name) is not None:
        return name
    if not name or "+" in name or any(c.isspace() or not c.isprintable() for c in name):
        raise LedgerFormatError(f"not a key name (no spaces, no '+', not empty): {name[:80]!a}")
    return name


def key_id(name: str, algorithm: int, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + bytes([algorithm]) + public).digest()[:_KEY_ID_BYTES]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A public key with its name. `str()` is the vkey text."""

    name: str
    algorithm: int
    public: bytes

    @property
    def id(self) -> bytes:
        return key_id(self.name, self.algorithm, self.public)

    def __str__(self) -> str:
        return f"{self.name}+{self.id.hex()}+{b64encode(bytes([self.algorithm]) + self.public)}"

    def accepts(self, message: bytes, signature: bytes) -> bool:
        """Does `signature` (64 bytes, Ed25519) hold over `message`?"""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def parse_vkey(text: str) -> Verifier:
    """Parse `name+hex(key id)+base64(type || key)`. Raises `LedgerFormatError` with the reason."""
    parts = text.strip("\n").split("+", 2)  # base64 holds '+' too
    if len(parts) != 3:
        raise LedgerFormatError(f"not a verifier key (name+id+key): {text[:80]!a}")
    name, hex_id, encoded = parts
    check_key_name(name)
    data = b64decode(encoded)
    if not data or len(data) - 1 != _PUBLIC_BYTES.get(data[0]):
        raise LedgerFormatError(f"verifier key {name!a} is of a type that is not known here")
    verifier = Verifier(name, data[0], data[1:])
    if hex_id != verifier.id.hex():
        raise LedgerFormatError(f"verifier key {name!a} does not fit its own id {hex_id[:16]!a}")
    return verifier


@dataclass(frozen=True, slots=True)
class NoteSignature:
    name: str
    key_id: bytes
    signature: bytes

    def line(self) -> str:
        return f"{_DASH}{self.name} {b64encode(self.key_id + self.signature)}\n"


class Signer:
    """An Ed25519 private key with its name. It lives in memory; whoever made it decides how long."""

    def __init__(self, name: str, seed: bytes | None) -> None:
        """Without a seed the key is drawn here, and nobody holds it but the library that signs."""
        self._private = Ed25519PrivateKey.generate() if seed is None else Ed25519PrivateKey.from_private_bytes(seed)
        self.verifier = Verifier(check_key_name(name), ALG_ED25519, self._private.public_key().public_bytes_raw())

    def sign_bytes(self, message: bytes) -> bytes:
        return self._private.sign(message)

    def signature_line(self, text: str) -> str:
        signature = self._private.sign(text.encode())
        return NoteSignature(self.verifier.name, self.verifier.id, signature).line()

    def sign_note(self, text: str) -> str:
        """The complete note over `text`, which ends in a newline."""
        if not text.endswith("\n"):
            raise LedgerFormatError("the text of a note ends in a newline")
        return f"{text}\n{self.signature_line(text)}"


@dataclass(frozen=True, slots=True)
class Note:
    text: str
    """With its last newline: exactly what is signed."""
    signatures: tuple[NoteSignature, ...]

    def by(self, verifier: Verifier) -> NoteSignature | None:
        """The first signature that names this key, checked or not."""
        for item in self.signatures:
            if item.name == verifier.name and item.key_id == verifier.id:
                return item
        return None

    def holds(self, verifier: Verifier) -> bool:
        """Is there a signature of `verifier` (Ed25519 over the text), and does it hold?"""
        if verifier.algorithm != ALG_ED25519:  # a cosignature says another thing; see `cosignature`
            return False
        item = self.by(verifier)
        return item is not None and verifier.accepts(self.text.encode(), item.signature)


def parse_note(raw: bytes | str) -> Note:
    """Parse a note without checking any signature. Raises `LedgerFormatError`."""
    if len(raw) > MAX_NOTE_BYTES:
        raise LedgerFormatError("a note of more than 1,000,000 bytes")
    try:
        whole = raw if isinstance(raw, str) else raw.decode("utf-8")
        whole.encode("utf-8")
    except UnicodeError as error:
        raise LedgerFormatError("a note that is not UTF-8") from error
    if _CONTROL.search(whole):
        raise LedgerFormatError("a note with a control character")
    split = whole.rfind("\n\n")
    if split < 0 or not whole.endswith("\n"):
        raise LedgerFormatError("not a signed note: no empty line before the signatures, or no newline at the end")
    text, block = whole[: split + 1], whole[split + 2 :]
    lines = block.split("\n")[:-1]
    if not lines or len(lines) > MAX_SIGNATURES:
        raise LedgerFormatError(f"a note has 1 to {MAX_SIGNATURES} signatures, not {len(lines)}")
    return Note(text, tuple(_parse_signature(line) for line in lines))


def _parse_signature(line: str) -> NoteSignature:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not encoded:
        raise LedgerFormatError(f"not a signature line: {line[:60]!a}")
    check_key_name(name)
    data = b64decode(encoded)
    if len(data) <= _KEY_ID_BYTES:
        raise LedgerFormatError("a signature too short to hold a key id")
    return NoteSignature(name, data[:_KEY_ID_BYTES], data[_KEY_ID_BYTES:])


def open_note(raw: bytes | str, known: Iterable[Verifier]) -> tuple[Note, tuple[Verifier, ...]]:
    """Parse and verify: the note, and which of `known` signed it.

    Raises `LedgerFormatError` (no note) and `LedgerTampered` (a known key's signature fails, or none is known).
    """
    note = parse_note(raw)
    keys = {(key.name, key.id): key for key in known if key.algorithm == ALG_ED25519}
    seen: dict[tuple[str, bytes], Verifier] = {}
    for item in note.signatures:
        key = keys.get((item.name, item.key_id))
        if key is None or (item.name, item.key_id) in seen:
            continue
        if len(item.signature) != _SIGNATURE_BYTES or not key.accepts(note.text.encode(), item.signature):
            raise LedgerTampered(f"the signature of {key.name} does not hold")
        seen[item.name, item.key_id] = key
    if not seen:
        raise LedgerTampered("the note bears no signature of a known key")
    return note, tuple(seen.values())
