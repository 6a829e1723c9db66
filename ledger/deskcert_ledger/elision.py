"""Elided lines: in an export a whole record may stand as `{"_elided":"<base64 leaf hash>"}`.

The tree still leads to the signed root; what the record said nobody can read. A verifier counts such lines and, unless
it is told that they are allowed, does not call the ledger complete.
"""

from __future__ import annotations

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.merkle import HASH_BYTES, leaf_hash
from deskcert_schema.errors import LedgerFormatError

__all__ = ["elide", "elided_leaf"]

_BEGIN, _END = b'{"_elided":"', b'"}'
_LENGTH = len(_BEGIN) + 44 + len(_END)


def elide(line: bytes) -> bytes:
    return _BEGIN + b64encode(leaf_hash(line)).encode() + _END


def elided_leaf(line: bytes) -> bytes | None:
    """The leaf hash of an elided line; None for any other line."""
    if len(line) != _LENGTH or not line.startswith(_BEGIN) or not line.endswith(_END):
        return None
    try:
        return b64decode(line[len(_BEGIN) : -len(_END)].decode("ascii"), length=HASH_BYTES)
    except (LedgerFormatError, UnicodeDecodeError):
        return None
