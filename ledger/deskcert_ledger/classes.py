"""Record classes, and what makes "these are all of them" provable.

For each class the ledger keeps an RFC 6962 tree over its members alone; a leaf is the record's number (8 bytes) and
its leaf hash in the ledger's own tree. At the seal the run key signs a note with every class's count and root:

    deskcert record classes
    <origin>
    <size> <base64 root of the ledger>
    <class> <count> <base64 root>          one line for each class, in the order of `CLASSES`

Whoever is shown all members of a class computes its root and compares; "there are none" is a line of the note. The
note is only as good as the classification behind it, so a full verification classifies every record again. (A sum
tree over all records would need a path of hashes for every member; a tree of the members needs none.)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from deskcert_ledger.b64 import b64decode, b64encode
from deskcert_ledger.merkle import HASH_BYTES, Tree, leaf_hash
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import LedgerFormatError

__all__ = [
    "CLASSES",
    "UNCERTAIN",
    "WATCHED_KINDS",
    "ClassNote",
    "ClassTrees",
    "class_root",
    "classify",
    "parse_class_note",
]

_OF_KIND: Final = {
    "action.denied": "denied",
    "action.refused": "refused",
    "net.blocked": "blocked",
    "component.lost": "lost",
    "recovery": "recovery",
    "redaction": "redaction",
    "blob.missing": "missing",
}
CLASSES: Final = (
    "denied",
    "unsafe_retry",
    "refused",
    "uncertain",
    "blocked",
    "lost",
    "recovery",
    "redaction",
    "missing",
)
"""`unsafe_retry`: denied because nobody knows whether the same action happened; `uncertain`: results without a known
delivery; the others are kinds."""
WATCHED_KINDS: Final = frozenset({*_OF_KIND, "action.result"})
UNCERTAIN = frozenset({Delivery.UNKNOWN.value, Delivery.DELIVERY_UNCERTAIN.value})
_TITLE: Final = "deskcert record classes"
_HEAD = re.compile(r"(0|[1-9][0-9]{0,15}) ([A-Za-z0-9+/]{43}=)", re.ASCII)
_LINE = re.compile(r"([a-z_]+) (0|[1-9][0-9]{0,15}) ([A-Za-z0-9+/]{43}=)", re.ASCII)


def classify(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The classes of one record, given its whole object. A function of the record alone."""
    kind = data.get("kind")
    if kind == "action.result":
        return ("uncertain",) if data.get("delivery") in UNCERTAIN else ()
    if kind == "action.denied" and data.get("detail_kind") == "unsafe_retry":
        return ("denied", "unsafe_retry")
    found = _OF_KIND.get(kind) if isinstance(kind, str) else None
    return () if found is None else (found,)


def _member(seq: int, leaf: bytes) -> bytes:
    return leaf_hash(seq.to_bytes(8) + leaf)


def class_root(members: Iterable[tuple[int, bytes]]) -> bytes:
    """Root of a class from (number, leaf hash) of all its members in order."""
    tree = Tree()
    for seq, leaf in members:
        tree.append(_member(seq, leaf))
    return tree.root()


@dataclass(frozen=True, slots=True)
class ClassNote:
    origin: str
    size: int
    root: bytes
    classes: dict[str, tuple[int, bytes]]
    """Name -> (count, root)."""

    def text(self) -> str:
        lines = [f"{name} {count} {b64encode(root)}\n" for name, (count, root) in self.classes.items()]
        return f"{_TITLE}\n{self.origin}\n{self.size} {b64encode(self.root)}\n{''.join(lines)}"


class ClassTrees:
    """Fed with every record of a watched kind, in order."""

    def __init__(self) -> None:
        self._trees = {name: Tree() for name in CLASSES}

    def add(self, seq: int, data: Mapping[str, Any], line: bytes) -> None:
        for name in classify(data):
            self._trees[name].append(_member(seq, leaf_hash(line)))

    def add_member(self, names: Iterable[str], seq: int, leaf: bytes) -> None:
        """A record of the classes `names`, with its leaf hash in the ledger's own tree."""
        for name in names:
            self._trees[name].append(_member(seq, leaf))

    @property
    def counts(self) -> dict[str, int]:
        return {name: tree.size for name, tree in self._trees.items()}

    def note(self, origin: str, size: int, root: bytes) -> ClassNote:
        """What is to be signed of a ledger of this origin, size and root."""
        classes = {name: (tree.size, tree.root()) for name, tree in self._trees.items()}
        return ClassNote(origin, size, root, classes)


def parse_class_note(text: str) -> ClassNote:
    """Raises `LedgerFormatError`. The signature is the caller's business."""
    lines = text.split("\n")
    head = _HEAD.fullmatch(lines[2]) if len(lines) > 4 else None
    if head is None or lines[0] != _TITLE or lines[-1] != "":
        raise LedgerFormatError("not a note of record classes")
    classes: dict[str, tuple[int, bytes]] = {}
    for line in lines[3:-1]:
        found = _LINE.fullmatch(line)
        if found is None or found[1] in classes:
            raise LedgerFormatError(f"not a record class with count and root: {line[:60]!a}")
        classes[found[1]] = int(found[2]), b64decode(found[3], length=HASH_BYTES)
    return ClassNote(lines[1], int(head[1]), b64decode(head[2], length=HASH_BYTES), classes)
