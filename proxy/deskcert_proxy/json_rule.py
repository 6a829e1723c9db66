"""A JSON pointer and the value that must stand there, in documents and in the fields of forms.

Forbidding reads as the most lenient server does: keys in any case, numbers as texts, lists as their members, texts as C
takes them, which end at a null byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from deskcert_proxy.texts import Match, Pattern, all_of, any_of, fold, folds

__all__ = ["JsonAt", "read_json"]


@dataclass(frozen=True, slots=True)
class JsonAt:
    pointer: tuple[str, ...]
    equals: Any
    has_equals: bool
    matches: Pattern | None

    def of(self, documents: tuple[Any, ...], fields: tuple[tuple[str, str], ...], *, generous: bool) -> Match:
        """Forbidding: any value that stands there. Allowing: one in each document, and every one of them."""
        if not generous:
            each = [list(_at(document, self.pointer, generous=False)) for document in documents]
            if not each or not all(each):
                return Match.NO
            return all_of(*(self._value(value, generous=False) for values in each for value in values))
        found = [value for document in documents for value in _at(document, self.pointer, generous=True)]
        wanted = tuple(fold(part) for part in self.pointer)
        found += [value for name, value in fields if any(spelt == wanted for spelt in _names(name))]
        return any_of([self._value(value, generous=True) for value in found])

    def _value(self, value: Any, *, generous: bool) -> Match:
        if generous and isinstance(value, list):
            return any_of([self._value(item, generous=True) for item in value])
        if isinstance(value, dict | list):
            return Match.NO
        if self.matches is not None:
            return self.matches.hits(_text(value), generous=generous)
        return Match.YES if _same(value, self.equals, generous=generous) else Match.NO


def read_json(raw: Mapping[str, Any], where: str) -> JsonAt:
    """Raises `ConfigError`, which names `where`."""
    pointer = tuple(part.replace("~1", "/").replace("~0", "~") for part in str(raw["pointer"]).split("/")[1:])
    matches = Pattern.read(raw["matches"], f"{where}.matches") if "matches" in raw else None
    return JsonAt(pointer, raw.get("equals"), "equals" in raw, matches)


def _at(value: Any, pointer: tuple[str, ...], *, generous: bool) -> Iterator[Any]:
    """Values at a pointer. Generous: keys in any case, and inside each element of a batch."""
    if not pointer:
        yield value
        return
    head, rest = pointer[0], pointer[1:]
    if isinstance(value, dict):
        for key, item in value.items():
            if key == head or (generous and fold(head) in folds(key)):
                yield from _at(item, rest, generous=generous)
    elif isinstance(value, list):
        if head.isdecimal() and int(head) < len(value):
            yield from _at(value[int(head)], rest, generous=generous)
        elif generous:
            for item in value:
                yield from _at(item, pointer, generous=generous)


def _names(name: str) -> Iterator[tuple[str, ...]]:
    """`order[id]`, `order.id`, `order[0].id` as the parts of a pointer: with the numbers of lists, and without."""
    for spelt in folds(name):
        parts = tuple(part for part in spelt.replace("[", ".").replace("]", "").split(".") if part)
        yield parts
        yield tuple(part for part in parts if not part.isdecimal())


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case _:
            return str(value)


def _same(value: Any, wanted: Any, *, generous: bool) -> bool:
    """Generous: as servers coerce, `"1001"`, `1001.0` and `1001` are alike, `"TRUE"` and `true`."""
    if not generous:
        return type(value) is type(wanted) and bool(value == wanted)
    if fold(_text(wanted)) in folds(_text(value)):
        return True
    if isinstance(wanted, bool) and not isinstance(value, bool):
        return fold(_text(value)) in (("1", "yes", "on") if wanted else ("0", "no", "off", ""))
    try:
        left, right = Decimal(_text(value).strip()), Decimal(_text(wanted).strip())
    except InvalidOperation:
        return False
    # Readers that keep numbers as doubles cannot tell some large ones apart.
    return left == right or (left.is_finite() and right.is_finite() and float(left) == float(right))
