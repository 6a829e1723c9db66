"""Refs: `@<snapshot id>:e<n>`. A bare `@e8` names nothing, because a number means something in one snapshot only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deskcert_schema.errors import ContractError

__all__ = ["Ref", "parse_ref", "snapshot_id"]

_REF = re.compile(r"@(?P<snapshot>s[0-9a-z]{3,63}):e(?P<n>[1-9][0-9]{0,8})", re.ASCII)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Ref:
    snapshot: str
    n: int

    def __str__(self) -> str:
        return f"@{self.snapshot}:e{self.n}"


def parse_ref(text: object) -> Ref:
    """Raises `ContractError` for everything but a qualified ref, with what to do about it."""
    found = _REF.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ContractError(
            f"{str(text)[:80]!r} is not a ref; use the form @<snapshot id>:e<n> exactly as the snapshot gave it"
        )
    return Ref(found["snapshot"], int(found["n"]))


def snapshot_id(random: bytes) -> str:
    """An id from at least 5 random bytes: `s` and base-36 digits."""
    number, digits = int.from_bytes(random, "big"), ""
    while number:
        number, d = divmod(number, 36)
        digits = _DIGITS[d] + digits
    return "s" + digits.rjust(8, "0")
