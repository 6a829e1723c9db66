"""What an agent saw: one snapshot answer, flattened, with the questions that the engine asks of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from deskcert.agents.plan import DoneWhen, Goal

__all__ = ["Holds", "Node", "Page", "read_page"]


class Holds(Enum):
    """Three answers, because a page that was not read completely establishes no absence."""

    YES = "yes"
    NO = "no"
    NOT_ESTABLISHED = "not_established"


@dataclass(frozen=True, slots=True)
class Node:
    role: str
    ref: str | None
    texts: tuple[str, ...]
    """Name, value and description, where they are known; the name first."""
    name: str | None
    """None where absent or unknown."""
    states: frozenset[str]
    actions: tuple[str, ...]
    context: tuple[str, ...]
    """Labels that enclose it, outermost first."""
    end: int
    """Index behind the last node of its subtree, in pre-order."""


@dataclass(frozen=True, slots=True)
class Page:
    snapshot_id: str
    url: str
    complete: bool
    nodes: tuple[Node, ...]

    def matches(self, goal: Goal) -> tuple[Node, ...]:
        """Every node with a ref whose role, name and context are exactly those of the goal."""
        return tuple(n for n in self.nodes if n.ref is not None and _is(n, goal))

    def named(self, goal: Goal) -> tuple[Node, ...]:
        """As `matches`, for reading only: also what has no ref."""
        return tuple(n for n in self.nodes if _is(n, goal))

    def holds(self, when: DoneWhen, context: str | None) -> Holds:
        seen = [text for n in self._scope(context) for text in n.texts]
        if when.text is not None and not any(_flat(when.text) in t for t in seen):
            return Holds.NO if self.complete else Holds.NOT_ESTABLISHED
        if when.no_text is not None:
            if any(_flat(when.no_text) in t for t in seen):
                return Holds.NO
            if not self.complete:
                return Holds.NOT_ESTABLISHED
        return Holds.YES

    def _scope(self, context: str | None) -> Iterator[Node]:
        """The whole page, or the subtrees of those containers that the label names.

        A container is named by its own name, or by a text inside it that makes it the context of its controls: so
        the smallest enclosing structure around that text is taken, never the table or the page."""
        if context is None:
            yield from self.nodes
            return
        label = _flat(context)
        for i, n in enumerate(self.nodes):
            if n.role not in _CONTAINERS:
                continue
            inside = self.nodes[i : n.end]
            nested = any(m.role in _CONTAINERS and label in m.texts for m in inside[1:])
            if label in n.texts or (not nested and any(label in (m.texts + m.context) for m in inside)):
                yield from inside


_CONTAINERS = frozenset(("row", "listitem", "group", "form", "dialog", "alertdialog", "region", "article", "option"))


def _is(node: Node, goal: Goal) -> bool:
    if goal.role is not None and node.role != goal.role:
        return False
    if goal.name is not None and (node.name is None or _flat(node.name) != _flat(goal.name)):
        return False
    return goal.context is None or _flat(goal.context) in node.context


def read_page(data: Mapping[str, Any]) -> Page:
    """From the `data` of a snapshot answer. Unknown keys are ignored: a newer deskcert may say more."""
    nodes: list[Node] = []
    tree = data["tree"]
    for root in tree if isinstance(tree, list) else [tree]:
        _add(root, nodes)
    return Page(data["snapshot_id"], data["window"].get("url", ""), data.get("complete") is True, tuple(nodes))


def _add(raw: Mapping[str, Any], into: list[Node]) -> None:
    at = len(into)
    found = [t for t in (raw.get("name"), raw.get("text"), raw.get("value"), raw.get("description")) if t]
    name = raw.get("name")
    node = Node(
        role=str(raw.get("role", "unknown")),
        ref=raw.get("ref_id"),
        texts=tuple(dict.fromkeys(_flat(t) for t in found if isinstance(t, str))),
        name=name if isinstance(name, str) else None,
        states=frozenset(raw.get("states", ())),
        actions=tuple(raw.get("available_actions", ())),
        context=tuple(_flat(str(label)) for _, label in raw.get("context", ())),
        end=at + 1,
    )
    into.append(node)
    for child in raw.get("children", ()):
        _add(child, into)
    if len(into) > at + 1:
        into[at] = _ending(node, len(into))


def _ending(node: Node, end: int) -> Node:
    return Node(node.role, node.ref, node.texts, node.name, node.states, node.actions, node.context, end)


def _flat(text: str) -> str:
    return " ".join(text.split())
