"""SSH signatures (openssh-portable PROTOCOL.sshsig), Ed25519: what `ssh-keygen -Y verify` checks.

The signature is over the certificate file as it lies there, so that a reviewer needs nothing but OpenSSH:
`ssh-keygen -Y verify -f allowed_signers -I <key name> -n deskcert -s run.sshsig < run.intoto.jsonl`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import sha512
from textwrap import wrap
from typing import Final

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.note import Verifier
from deskcert_schema.errors import LedgerFormatError

__all__ = ["NAMESPACE", "allowed_signer", "check_sshsig", "ssh_public_key", "sshsig"]

NAMESPACE: Final = "deskcert"
_MAGIC = b"SSHSIG"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_KEY_TYPE = b"ssh-ed25519"
_HASH = b"sha512"
_SIGNATURE_BYTES = 64


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _public(key: Verifier) -> bytes:
    return _string(_KEY_TYPE) + _string(key.public)


def ssh_public_key(key: Verifier) -> str:
    """As in `id_ed25519.pub`, without a comment."""
    return f"{_KEY_TYPE.decode()} {b64encode(_public(key))}"


def allowed_signer(key: Verifier) -> str:
    """The line for an `allowed_signers` file; the principal is the key's name."""
    return f'{key.name} namespaces="{NAMESPACE}" {ssh_public_key(key)}\n'


def _signed(message: bytes) -> bytes:
    """What the key signs."""
    parts = (NAMESPACE.encode(), b"", _HASH, sha512(message).digest())
    return _MAGIC + b"".join(map(_string, parts))


def _armour(key: Verifier, signature: bytes) -> bytes:
    parts = (_public(key), NAMESPACE.encode(), b"", _HASH, _string(_KEY_TYPE) + _string(signature))
    blob = _MAGIC + struct.pack(">I", 1) + b"".join(map(_string, parts))
    return "".join(f"{line}\n" for line in (_BEGIN, *wrap(b64encode(blob), 70), _END)).encode()


def sshsig(message: bytes, key: Verifier, sign_bytes: Callable[[bytes], bytes]) -> bytes:
    """The armoured signature of `key` over `message`."""
    return _armour(key, sign_bytes(_signed(message)))


def check_sshsig(raw: bytes, message: bytes, key: Verifier) -> bool:
    """Does `raw` hold a signature of `key` over `message`, in the one spelling that `sshsig` writes?

    Raises `LedgerFormatError` when it is no SSH signature at all.
    """
    try:
        lines = raw.decode("ascii").split("\n")
    except UnicodeDecodeError as error:
        raise LedgerFormatError("not an SSH signature: not ASCII") from error
    if len(lines) < 4 or lines[0] != _BEGIN or lines[-2:] != [_END, ""]:
        raise LedgerFormatError("not an SSH signature: its first or last line is missing")
    signature = b64decode("".join(lines[1:-2]))[-_SIGNATURE_BYTES:]
    return raw == _armour(key, signature) and key.accepts(_signed(message), signature)
