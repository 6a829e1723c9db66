"""`ledger.hashes`: every node of the tree in Go's order, derived from the ledger and never trusted.

It makes proofs (whose root is then compared with a signed one) and points at the line that differs. When it is missing,
short or wrong, it is computed again from the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from deskcert_ledger.files import open_regular
from deskcert_ledger.line import MAX_LINE_BYTES
from deskcert_ledger.merkle import HASH_BYTES, Tree, leaf_hash, stored_hash_index
from deskcert_ledger.store import HASHES, LEDGER

__all__ = ["first_difference", "stored_hashes"]


def stored_hashes(folder: Path, end: int) -> Iterator[bytes]:
    """The cells of the hash file, computed from the first `end` bytes of the ledger, in constant memory."""
    tree = Tree()
    with open_regular(folder / LEDGER) as file:
        while end > 0 and (line := file.readline(MAX_LINE_BYTES + 2)):
            end -= len(line)
            yield b"".join(tree.append(leaf_hash(line.removesuffix(b"\n"))))


def first_difference(folder: Path, good: tuple[int, int], end: int) -> tuple[int, int, bool]:
    """The first record from `good` (size, byte) on whose leaf hash is not the stored one.

    Returns (seq, byte, exact); where the hash file is no help, the beginning of the range and False.
    """
    seq, byte = good
    try:
        with open_regular(folder / LEDGER) as ledger, open_regular(folder / HASHES) as hashes:
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
