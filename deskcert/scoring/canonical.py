"""The one way in which a verdict is written: sorted keys, no floats, ASCII, one line with a final newline."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deskcert_schema.errors import ContractError

__all__ = ["canonical"]


def canonical(value: Any) -> bytes:
    """Equal values give equal bytes. Raises `ContractError` for a float: ratios are decimal strings."""
    _check(value)
    return (json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n").encode("ascii")


def _check(value: Any) -> None:
    match value:
        case None | bool() | int() | str():
            return
        case Mapping():
            for key, item in value.items():
                if not isinstance(key, str):
                    raise ContractError(f"a key of a verdict is a string, not {key!r}")
                _check(item)
        case list() | tuple():
            for item in value:
                _check(item)
        case _:
            raise ContractError(f"a verdict holds integers and strings only, not {value!r}")
