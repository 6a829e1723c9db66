"""The Merkle tree of RFC 6962 section 2.1 (RFC 9162 section 2.1), SHA-256, and its proofs.

`Tree` grows by one leaf hash at a time and keeps only the right edge: O(log n) memory. Node hashes can also be kept in
one dense file in the order of Go's `sumdb/tlog` (`stored_hash_index`), from which proofs are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

from deskcert_schema.errors import LedgerFormatError

__all__ = [
    "EMPTY_ROOT",
    "HASH_BYTES",
    "Tree",
    "check_consistency",
    "check_inclusion",
    "consistency_proof",
    "inclusion_proof",
    "leaf_hash",
    "leaf_hashes",
    "node_hash",
    "root_from_hashes",
    "stored_hash_count",
    "stored_hash_index",
    "subtrees",
]

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()
_LEAF, _NODE = sha256(b"\x00"), sha256(b"\x01")
"""Begun, and copied for each leaf and node (RFC 6962 section 2.1: the prefix keeps the two apart)."""

type ReadHash = Callable[[int, int], bytes]
"""(level, n) -> the hash of the n-th complete subtree of 2^level leaves."""


def leaf_hash(entry: bytes) -> bytes:
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def leaf_hashes(entries: Iterable[bytes]) -> list[bytes]:
    """`leaf_hash` of many: a copied state costs less than a new one."""
    fresh, done = _LEAF.copy, []
    for entry in entries:
        state = fresh()
        state.update(entry)
        done.append(state.digest())
    return done


def _complete(nodes: Sequence[bytes]) -> bytes:
    """The root over a power of two of nodes, level by level."""
    fresh = _NODE.copy
    while len(nodes) > 1:
        above = []
        for left, right in zip(nodes[::2], nodes[1::2], strict=True):
            state = fresh()
            state.update(left + right)
            above.append(state.digest())
        nodes = above
    return nodes[0]


def subtrees(first: int, leaves: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """(level, hash) of the largest complete subtrees that leaves [first, first + len) consist of, in order.

    Where they stand in the tree is all that they depend on, so ranges of leaves can be worked on apart.
    """
    at, count = 0, len(leaves)
    while at < count:
        room = (first + at) & -(first + at) or 1 << 30
        level = min(room.bit_length(), (count - at).bit_length()) - 1
        yield level, _complete(leaves[at : at + (1 << level)])
        at += 1 << level


class Tree:
    """The right edge of a growing tree."""

    __slots__ = ("_edge", "size")

    def __init__(self) -> None:
        self.size = 0
        self._edge: list[bytes] = []
        """Hashes of the complete subtrees, largest first: one for each 1 bit of `size`."""

    def append(self, leaf: bytes) -> list[bytes]:
        """Add a leaf hash; returns the stored hashes this adds in Go's order: the leaf, then each node it completes."""
        added = [leaf]
        size, edge = self.size, self._edge
        while size & 1:
            leaf = sha256(b"\x01" + edge.pop() + leaf).digest()
            added.append(leaf)
            size >>= 1
        edge.append(leaf)
        self.size += 1
        return added

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add many leaf hashes, without the list of what was added."""
        for level, node in subtrees(self.size, leaves):
            self.push(level, node)

    def push(self, level: int, node: bytes) -> None:
        """Add the hash of a complete subtree of 2^level leaves; `size` is a multiple of that."""
        bits, edge = self.size >> level, self._edge
        while bits & 1:
            node = sha256(b"\x01" + edge.pop() + node).digest()
            bits >>= 1
        edge.append(node)
        self.size += 1 << level

    def root(self) -> bytes:
        if not self._edge:
            return EMPTY_ROOT
        root = self._edge[-1]
        for left in reversed(self._edge[:-1]):
            root = sha256(b"\x01" + left + root).digest()
        return root

    def copy(self) -> Tree:
        other = Tree()
        other.size, other._edge = self.size, self._edge[:]
        return other


def stored_hash_index(level: int, n: int) -> int:
    """Where Go's tlog stores node (level, n) in its dense file (Crosby and Wallach 2009, section 3.3)."""
    for _ in range(level):
        n = 2 * n + 1
    index = 0
    while n > 0:
        index += n
        n >>= 1
    return index + level


def stored_hash_count(size: int) -> int:
    """Number of stored hashes of a tree of `size` leaves."""
    if size == 0:
        return 0
    last = stored_hash_index(0, size - 1)
    n = size - 1
    while n & 1:
        last += 1
        n >>= 1
    return last + 1


def _subtree(start: int, end: int, read: ReadHash) -> bytes:
    """The hash of leaves [start, end), where `start` is a multiple of the size of the largest part."""
    parts: list[bytes] = []
    while start < end:
        level = (end - start).bit_length() - 1
        parts.append(read(level, start >> level))
        start += 1 << level
    root = parts[-1]
    for left in reversed(parts[:-1]):
        root = node_hash(left, root)
    return root


def root_from_hashes(size: int, read: ReadHash) -> bytes:
    return EMPTY_ROOT if size == 0 else _subtree(0, size, read)


def _split(count: int) -> int:
    """The largest power of two smaller than `count` (RFC 6962 section 2.1)."""
    return 1 << ((count - 1).bit_length() - 1)


def inclusion_proof(index: int, size: int, read: ReadHash) -> list[bytes]:
    """PATH(index, D[size]) of RFC 6962 section 2.1.1, the leaf's sibling first."""
    if not 0 <= index < size:
        raise LedgerFormatError(f"no leaf {index} in a tree of {size}")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_subtree(middle, end, read))
            end = middle
        else:
            path.append(_subtree(start, middle, read))
            start = middle
    return path[::-1]


def consistency_proof(old: int, new: int, read: ReadHash) -> list[bytes]:
    """PROOF(old, D[new]) of RFC 6962 section 2.1.2."""
    if not 0 < old <= new:
        raise LedgerFormatError(f"no consistency proof from size {old} to {new}")
    path: list[bytes] = []
    start, end, complete = 0, new, True
    while old != end:
        middle = start + _split(end - start)
        if old <= middle:
            path.append(_subtree(middle, end, read))
            end = middle
        else:
            path.append(_subtree(start, middle, read))
            start, complete = middle, False
    if not complete:
        path.append(_subtree(start, end, read))
    return path[::-1]


def _check_hashes(*hashes: bytes) -> None:
    if any(len(item) != HASH_BYTES for item in hashes):
        raise LedgerFormatError(f"a hash in a proof is not {HASH_BYTES} bytes")


def check_inclusion(index: int, size: int, leaf: bytes, proof: Sequence[bytes], root: bytes) -> None:
    """RFC 9162 section 2.1.3.2. Raises `LedgerFormatError` when the proof does not hold."""
    _check_hashes(leaf, root, *proof)
    if not 0 <= index < size:
        raise LedgerFormatError(f"the proof is for leaf {index}, the tree has {size}")
    fn, sn, r = index, size - 1, leaf
    for sibling in proof:
        if sn == 0:
            raise LedgerFormatError("the inclusion proof is too long")
        if fn & 1 or fn == sn:
            r = node_hash(sibling, r)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, sibling)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise LedgerFormatError("the inclusion proof is too short")
    if r != root:
        raise LedgerFormatError("the inclusion proof leads to another root")


def check_consistency(old: int, new: int, old_root: bytes, new_root: bytes, proof: Sequence[bytes]) -> None:
    """RFC 9162 section 2.1.4.2. Raises `LedgerFormatError`; so does `old` = 0: an empty tree vouches for nothing."""
    _check_hashes(*proof)
    if not 0 < old <= new:
        raise LedgerFormatError(f"no consistency proof leads from size {old} to {new}")
    if old == new:
        if proof or old_root != new_root:
            raise LedgerFormatError("two roots for one size, or a proof where none is due")
        return
    path = list(proof)
    if old & (old - 1) == 0:
        path.insert(0, old_root)
    if not path:
        raise LedgerFormatError("the consistency proof is empty")
    fn, sn = old - 1, new - 1
    while fn & 1:
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]
    for sibling in path[1:]:
        if sn == 0:
            raise LedgerFormatError("the consistency proof is too long")
        if fn & 1 or fn == sn:
            fr, sr = node_hash(sibling, fr), node_hash(sibling, sr)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, sibling)
        fn, sn = fn >> 1, sn >> 1
    if sn != 0:
        raise LedgerFormatError("the consistency proof is too short")
    if fr != old_root or sr != new_root:
        raise LedgerFormatError("the consistency proof leads to other roots")
