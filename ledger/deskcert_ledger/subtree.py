"""Subtrees of a log, as draft-ietf-plants-merkle-tree-certs has them: what somebody who holds a part needs to show that
the part belongs to the whole, and which parts cover a stretch of records.

A subtree is [start, end) with `start` a multiple of the smallest power of two that is not less than its size.
"""

from __future__ import annotations

from collections.abc import Callable

from deskcert_ledger.merkle import EMPTY_ROOT, node_hash

__all__ = ["covering", "is_subtree", "subtree_consistency", "subtree_root"]

type LeafAt = Callable[[int], bytes]
"""A leaf's hash by its number."""


def is_subtree(start: int, end: int) -> bool:
    """The empty one counts."""
    return start == end or (0 <= start < end and start % (1 << (end - start - 1).bit_length()) == 0)


def subtree_root(start: int, end: int, leaf: LeafAt) -> bytes:
    """RFC 9162, 2.1.1, over the leaves [start, end)."""
    if start == end:
        return EMPTY_ROOT
    if end - start == 1:
        return leaf(start)
    middle = start + _left(end - start)
    return node_hash(subtree_root(start, middle, leaf), subtree_root(middle, end, leaf))


def subtree_consistency(
    start: int, end: int, size: int, leaf: LeafAt, *, root: Callable[[int, int], bytes] | None = None
) -> list[bytes]:
    """Hashes that lead from the root of [start, end) to that of the first `size` records. `root`: of any stretch, where
    the caller has it. Raises `ValueError` for what is no subtree of them."""
    if not is_subtree(start, end) or end > size:
        raise ValueError(f"[{start}, {end}) is no subtree of {size} records")
    told = root if root is not None else lambda low, high: subtree_root(low, high, leaf)
    return [] if start == end else _proof(start, end, 0, size, told, known=True)


def _proof(start: int, end: int, low: int, high: int, root: Callable[[int, int], bytes], *, known: bool) -> list[bytes]:
    """Within [low, high). `known`: whoever checks holds the root of [start, end) itself."""
    if (start, end) == (low, high):
        return [] if known else [root(low, high)]
    middle = low + _left(high - low)
    if end <= middle:
        return [*_proof(start, end, low, middle, root, known=known), root(middle, high)]
    if start >= middle:
        return [*_proof(start, end, middle, high, root, known=known), root(low, middle)]
    return [*_proof(middle, end, middle, high, root, known=False), root(low, middle)]


def covering(start: int, end: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Two subtrees, side by side, that hold [start, end) and little before it; the second may be empty."""
    if end - start <= 1:
        return (start, end), (end, end)
    last = end - 1
    mask = (1 << (start ^ last).bit_length() - 1) - 1
    middle = last & ~mask
    first = start & ~((1 << (~start & mask).bit_length()) - 1)
    return (first, middle), (middle, end)


def _left(size: int) -> int:
    """The largest power of two below `size`."""
    return 1 << (size - 1).bit_length() - 1
