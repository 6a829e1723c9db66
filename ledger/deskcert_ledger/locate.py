"""Where a ledger differs: a hint from `ledger.hashes`, which proves nothing and is only ever used to point."""

from __future__ import annotations

from pathlib import Path

from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.merkle import HASH_BYTES, leaf_hash, stored_hash_index
from deskcert_ledger.store import HASHES, LEDGER

__all__ = ["first_difference"]


def first_difference(folder: Path, good: tuple[int, int], end: int) -> tuple[int, int, bool]:
    """The first record from `good` (size, byte) on whose leaf hash is not the stored one.

    Returns (seq, byte, exact); where the hash file is no help, the beginning of the range and False.
    """
    seq, byte = good
    try:
        with (folder / LEDGER).open("rb") as ledger, (folder / HASHES).open("rb") as hashes:
            ledger.seek(byte)
            while seq < end:
                line = ledger.readline(MAX_LINE_BYTES + 2)
                hashes.seek(stored_hash_index(0, seq) * HASH_BYTES)
                stored = hashes.read(HASH_BYTES)
                if not line or len(stored) < HASH_BYTES:
                    break
                if leaf_hash(line.removesuffix(b"\n")) != stored:
                    return seq, byte, True
                seq, byte = seq + 1, byte + len(line)
    except OSError:
        pass
    return *good, False
