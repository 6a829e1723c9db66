"""The project key's file: plain, in Go's skey form, or under a passphrase.

A protected file is one JSON object: the public key in clear (so that verifying needs no passphrase), and the 32 bytes
of the private key under ChaCha20-Poly1305 (RFC 8439) with a key made by scrypt (RFC 7914). The public key and the
parameters are authenticated along. The passphrase comes from `DESKCERT_KEY_PASSPHRASE`, from the file that
`DESKCERT_KEY_PASSPHRASE_FILE` names (its first line), or is asked for on a terminal; never from the command line, which
every user of the machine can read.
"""

from __future__ import annotations

import getpass
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.note import ALG_ED25519, Verifier, check_key_name, parse_vkey
from deskcert_schema.errors import LedgerFormatError, UsageError

__all__ = ["PASSPHRASE_FILE_VARIABLE", "PASSPHRASE_VARIABLE", "PRIVATE", "KeyFile", "given_passphrase", "passphrase"]

PASSPHRASE_VARIABLE: Final = "DESKCERT_KEY_PASSPHRASE"
PASSPHRASE_FILE_VARIABLE: Final = "DESKCERT_KEY_PASSPHRASE_FILE"
PRIVATE: Final = "PRIVATE+KEY+"
_FORMAT: Final = "deskcert protected key v1"
_N, _R, _P = 1 << 15, 8, 1
"""scrypt: 32 MiB, about a tenth of a second."""
_MAX_N: Final = 1 << 20


class KeyFile:
    """What stands in a key's file. `seed` asks for the passphrase if there has to be one."""

    def __init__(self, text: str) -> None:
        """Raises `LedgerFormatError`."""
        self._raw: dict[str, Any] | None = None
        self._seed = b""
        if text.startswith("{"):
            self._raw, self.verifier = _protected(text)
        else:
            self._seed, self.verifier = _plain(text)

    @property
    def protected(self) -> bool:
        return self._raw is not None

    def seed(self, ask: Callable[[], str]) -> bytes:
        """The private key. Raises `UsageError` when the passphrase is wrong."""
        if self._raw is None:
            return self._seed
        raw = self._raw
        key = _stretch(ask(), b64decode(raw["salt"]), raw["n"], raw["r"], raw["p"])
        try:
            return ChaCha20Poly1305(key).decrypt(b64decode(raw["nonce"]), b64decode(raw["sealed"]), _bound(raw))
        except InvalidTag as error:
            raise UsageError("The passphrase of the project key is wrong, or its file is damaged.") from error


def plain_text(verifier: Verifier, seed: bytes) -> str:
    return f"{PRIVATE}{verifier.name}+{verifier.id.hex()}+{b64encode(bytes([ALG_ED25519]) + seed)}\n"


def protected_text(verifier: Verifier, seed: bytes, secret: str, rng: Callable[[int], bytes]) -> str:
    salt, nonce = rng(16), rng(12)
    raw: dict[str, Any] = {"format": _FORMAT, "vkey": str(verifier), "kdf": "scrypt", "n": _N, "r": _R, "p": _P}
    raw |= {"salt": b64encode(salt), "nonce": b64encode(nonce)}
    sealed = ChaCha20Poly1305(_stretch(secret, salt, _N, _R, _P)).encrypt(nonce, seed, _bound(raw))
    return json.dumps(raw | {"sealed": b64encode(sealed)}) + "\n"


def given_passphrase(environ: Mapping[str, str] = os.environ) -> str | None:
    """What the environment gives, or None. Raises `UsageError`."""
    value = environ.get(PASSPHRASE_VARIABLE, "")
    if value:
        return value
    named = environ.get(PASSPHRASE_FILE_VARIABLE, "")
    if not named:
        return None
    try:
        first = Path(named).read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{PASSPHRASE_FILE_VARIABLE} names {named}, which cannot be read.") from error
    if not first:
        raise UsageError(f"{PASSPHRASE_FILE_VARIABLE} names {named}, whose first line is empty.")
    return first


def passphrase() -> str:
    """From the environment, or from the terminal. Raises `UsageError` when there is neither."""
    given = given_passphrase()
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise UsageError(
            f"The project key is protected by a passphrase. Set {PASSPHRASE_VARIABLE} or {PASSPHRASE_FILE_VARIABLE}, "
            "or run this on a terminal."
        )
    return getpass.getpass("Passphrase of the project key: ")


def _stretch(secret: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return Scrypt(salt=salt, length=32, n=n, r=r, p=p).derive(secret.encode())


def _bound(raw: Mapping[str, Any]) -> bytes:
    """What is authenticated along."""
    return json.dumps({name: raw[name] for name in ("format", "vkey", "kdf", "n", "r", "p", "salt")}).encode()


def _plain(text: str) -> tuple[bytes, Verifier]:
    from deskcert_ledger.note import Signer

    if not text.startswith(PRIVATE) or not text.endswith("\n"):
        raise LedgerFormatError("it does not begin with PRIVATE+KEY+")
    parts = text[len(PRIVATE) : -1].split("+", 2)
    if len(parts) != 3:
        raise LedgerFormatError("it lacks a part")
    name, hex_id, encoded = parts
    data = b64decode(encoded, length=33)
    if data[0] != ALG_ED25519:
        raise LedgerFormatError("its type is not Ed25519")
    verifier = Signer(check_key_name(name), data[1:]).verifier
    if verifier.id.hex() != hex_id:
        raise LedgerFormatError("it does not fit its own id")
    return data[1:], verifier


def _protected(text: str) -> tuple[dict[str, Any], Verifier]:
    try:
        raw = json.loads(text)
        numbers = [raw["n"], raw["r"], raw["p"]]
        texts = [raw["format"], raw["kdf"], raw["vkey"], raw["salt"], raw["nonce"], raw["sealed"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LedgerFormatError("it is no protected key") from error
    if [type(number) for number in numbers] != [int] * 3 or [type(item) for item in texts] != [str] * 6:
        raise LedgerFormatError("it is no protected key")
    if (raw["format"], raw["kdf"]) != (_FORMAT, "scrypt"):
        raise LedgerFormatError("it is protected in a way that is not known here")
    if not (2 <= raw["n"] <= _MAX_N and raw["n"] & (raw["n"] - 1) == 0 and 1 <= raw["r"] <= 16 and 1 <= raw["p"] <= 4):
        raise LedgerFormatError("it asks for more work than a key needs")
    b64decode(raw["salt"], length=16)
    b64decode(raw["nonce"], length=12)
    b64decode(raw["sealed"], length=48)
    return raw, parse_vkey(raw["vkey"])
