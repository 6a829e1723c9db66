"""Verifier policies (C2SP tlog-policy.md): whose keys count, and which witnesses have to have seen a checkpoint.

    log <vkey> [<url>]                     a project's key: it introduces the keys that sign runs
    witness <name> <vkey> [<url>]          a key of type 0x04 or 0x06, which cosigns checkpoints
    group <name> all|any|<k> <name>...     as many of these have to have cosigned
    quorum <name>|none                     exactly once

One difference to the page: there a log's key signs checkpoints under its own name; here every run has a key of its own,
and the `log` is whoever introduces it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from deskcert_ledger.cosignature import COSIGNING
from deskcert_ledger.note import ALG_ED25519, Verifier, parse_vkey
from deskcert_schema.errors import LedgerFormatError, UsageError

__all__ = ["Group", "VerifierPolicy", "parse_policy", "read_policy"]

_MAX_BYTES = 1 << 20
_MAX_LINES = 4096
_NONE = "none"
_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Group:
    least: int
    members: tuple[str, ...]
    """Names of witnesses and of groups that were defined before."""


@dataclass(frozen=True, slots=True)
class VerifierPolicy:
    logs: tuple[Verifier, ...]
    witnesses: Mapping[str, Verifier]
    groups: Mapping[str, Group]
    quorum: str
    """Name of a witness or group, or `none`."""

    def met_by(self, cosigned: frozenset[str]) -> bool:
        """Is the quorum reached when the witnesses `cosigned` (names of this policy) have cosigned?"""
        seen = set(cosigned)
        for name, group in self.groups.items():  # in the order of their definition: members come first
            if sum(member in seen for member in group.members) >= group.least:
                seen.add(name)
        return self.quorum == _NONE or self.quorum in seen


def read_policy(path: Path) -> VerifierPolicy:
    """Raises `UsageError`."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"--policy {path}: cannot be read: {error.strerror}.") from error
    try:
        return parse_policy(raw)
    except LedgerFormatError as error:
        raise UsageError(f"--policy {path}: {error}. The form is that of C2SP tlog-policy.") from error


def parse_policy(raw: bytes) -> VerifierPolicy:
    """Raises `LedgerFormatError` with the line's number."""
    if len(raw) > _MAX_BYTES or raw.count(b"\n") > _MAX_LINES:
        raise LedgerFormatError(f"a policy of more than {_MAX_LINES} lines or {_MAX_BYTES} bytes")
    if _FORBIDDEN.search(raw):
        raise LedgerFormatError("a policy with a control character")
    if raw and not raw.endswith(b"\n"):
        raise LedgerFormatError("the last line of the policy does not end")
    reader = _Reader()
    # Bytes beyond ASCII are opaque: surrogates carry them, and only equal names are the same.
    for number, line in enumerate(raw.decode("utf-8", "surrogateescape").split("\n"), 1):
        items = [item for item in re.split("[ \t]+", line) if item]
        if not items or items[0].startswith("#"):
            continue
        try:
            reader.line(items)
        except LedgerFormatError as error:
            raise LedgerFormatError(error.reason, line=number) from error
    return reader.policy()


class _Reader:
    def __init__(self) -> None:
        self._logs: list[Verifier] = []
        self._witnesses: dict[str, Verifier] = {}
        self._groups: dict[str, Group] = {}
        self._members: set[str] = set()
        self._quorum: str | None = None

    def line(self, items: list[str]) -> None:
        match items:
            case ["log", vkey] | ["log", vkey, _]:
                self._logs.append(self._key(vkey, frozenset({ALG_ED25519}), self._logs))
            case ["witness", name, vkey] | ["witness", name, vkey, _]:
                self._new(name)
                self._witnesses[name] = self._key(vkey, COSIGNING, self._witnesses.values())
            case ["group", name, threshold, *members] if members:
                self._group(name, threshold, members)
            case ["quorum", name]:
                if self._quorum is not None:
                    raise LedgerFormatError("a second quorum")
                if name != _NONE:
                    self._known(name)
                self._quorum = name
            case _:
                raise LedgerFormatError(f"not a log, witness, group or quorum: {' '.join(items)[:60]!a}")

    def policy(self) -> VerifierPolicy:
        if self._quorum is None:
            raise LedgerFormatError("a policy without its quorum; `quorum none` asks for no witness")
        return VerifierPolicy(tuple(self._logs), self._witnesses, self._groups, self._quorum)

    def _key(self, vkey: str, types: frozenset[int], others: Iterable[Verifier]) -> Verifier:
        try:
            vkey.encode()
        except UnicodeEncodeError as error:
            raise LedgerFormatError("a key's name that is not UTF-8") from error
        key = parse_vkey(vkey)
        if key.algorithm not in types:
            kind = "signs" if ALG_ED25519 in types else "cosigns (type 0x04 or 0x06)"
            raise LedgerFormatError(f"the key {key.name!a} is not one that {kind}")
        if any(key.public == other.public for other in others):
            raise LedgerFormatError(f"the key {key.name!a} stands there twice")
        return key

    def _new(self, name: str) -> None:
        if name == _NONE or name in self._witnesses or name in self._groups:
            raise LedgerFormatError(f"the name {name[:60]!a} is taken")

    def _known(self, name: str) -> None:
        if name not in self._witnesses and name not in self._groups:
            raise LedgerFormatError(f"no witness or group {name[:60]!a} is defined before this line")

    def _group(self, name: str, threshold: str, members: list[str]) -> None:
        self._new(name)
        for member in members:
            self._known(member)
            if member in self._members:
                raise LedgerFormatError(f"{member[:60]!a} is a member twice")
            self._members.add(member)
        least = {"all": len(members), "any": 1}.get(threshold)
        if least is None and _NUMBER.fullmatch(threshold):
            least = int(threshold)
        if least is None or least > len(members):
            raise LedgerFormatError(f"not `all`, `any` or 1 to {len(members)}: {threshold[:60]!a}")
        self._groups[name] = Group(least, tuple(members))
