"""Which nodes of a snapshot a query means: three-valued, so that what could not be read is never "not there".

A node matches, does not match, or is unknown: a field that could not be read answers nothing, and its negation neither.
A count, and "none", need a snapshot that is complete and has no unknown verdict; "the first" needs that of all nodes
before it only. Source: reference 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from deskcert.adapters.base import RawNode
from deskcert.guard.rules import role_of

__all__ = ["ROLES", "Found", "Query", "Verdict", "run"]

ROLES: Final = frozenset(
    (
        *("alert", "alertdialog", "application", "article", "banner", "blockquote", "button", "caption"),
        *("cell", "checkbox", "code", "columnheader", "combobox", "complementary", "contentinfo"),
        *("definition", "deletion", "dialog", "emphasis", "feed", "figure", "form", "generic", "grid"),
        *("gridcell", "group", "heading", "iframe", "img", "insertion", "label", "legend", "link"),
        *("list", "listbox", "listitem", "log", "main", "marquee", "math", "menu", "menubar"),
        *("menuitem", "menuitemcheckbox", "menuitemradio", "meter", "navigation", "note", "option"),
        *("progressbar", "radio", "radiogroup", "region", "row", "rowheader", "scrollbar", "search"),
        *("searchbox", "separator", "slider", "spinbutton", "statictext", "status", "strong", "switch"),
        *("tab", "table", "tablist", "tabpanel", "textbox", "timer", "toolbar", "tooltip", "tree"),
        *("treegrid", "treeitem"),
    )
)
"""Words that a snapshot may use for a role. Another one in a query is a mistake, not a query without matches."""


class Verdict(Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Query:
    """Every part that is given must hold. Texts are compared without regard to case and white space."""

    role: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    """`name`, `value`, `description`, `native_id`, or `text`: the name or the text."""
    exact: bool = False
    states: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Found:
    matches: tuple[RawNode, ...]
    complete: bool
    """That there are no others is established."""
    before_first: bool
    """That none stands before the first match is established."""
    roles: tuple[str, ...]
    """Of the interactive nodes that are there: a hint where nothing matches."""


def run(query: Query, nodes: Sequence[RawNode], *, complete: bool) -> Found:
    matches: list[RawNode] = []
    doubtful = cut = before_first = False
    for node in nodes:
        match verdict(query, node):
            case Verdict.YES:
                if not matches:
                    before_first = not doubtful and not cut
                matches.append(node)
            case Verdict.UNKNOWN:
                doubtful = True
            case Verdict.NO:
                pass
        cut = cut or node.get("truncated") is True or node.get("opaque") is True
    roles = sorted({str(n["role"]) for n in nodes if "ref" in n})
    return Found(tuple(matches), complete and not doubtful, before_first, tuple(roles))


def verdict(query: Query, node: RawNode) -> Verdict:
    parts = [_role(query, node), *(_text(query, node, k, v) for k, v in query.texts.items()), _states(query, node)]
    if Verdict.NO in parts:
        return Verdict.NO
    return Verdict.UNKNOWN if Verdict.UNKNOWN in parts else Verdict.YES


def _role(query: Query, node: RawNode) -> Verdict:
    if query.role is None:
        return Verdict.YES
    return _of(role_of(str(node.get("role", ""))) == role_of(query.role))


def _text(query: Query, node: RawNode, key: str, wanted: str) -> Verdict:
    if key == "text":
        either = [_one(query, node.get(k), wanted) for k in ("name", "text")]
        return max(either, key=[Verdict.NO, Verdict.UNKNOWN, Verdict.YES].index)
    found = node.get(key)
    return _one(query, found.get("value") if key == "native_id" and isinstance(found, Mapping) else found, wanted)


def _one(query: Query, found: Any, wanted: str) -> Verdict:
    if isinstance(found, Mapping):
        return Verdict.UNKNOWN
    if found is None:
        return Verdict.NO
    have, want = _plain(str(found)), _plain(wanted)
    return _of(have == want if query.exact else want in have)


def _states(query: Query, node: RawNode) -> Verdict:
    """A state that a node never has is neither on nor off: such a node does not match."""
    if not query.states:
        return Verdict.YES
    found = node.get("states")
    if found is None:
        return Verdict.NO
    if isinstance(found, Mapping):
        return Verdict.UNKNOWN
    return _of(all(_has(found, state) is wanted for state, wanted in query.states.items()))


def _has(states: Sequence[str], state: str) -> bool:
    if state == "enabled":
        return "disabled" not in states
    if state == "visible":
        return "hidden" not in states
    return state in states


def _of(holds: bool) -> Verdict:
    return Verdict.YES if holds else Verdict.NO


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
