"""What an agent saw: one snapshot answer, flattened, with the questions that the engine asks of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
        return tuple(n for n in self.named(goal) if n.ref is not None)

    def named(self, goal: Goal | DoneWhen) -> tuple[Node, ...]:
        """As `matches`, for reading only: also what has no ref."""
        return tuple(n for n in self.nodes if _is(n, goal))

    def holds(self, when: DoneWhen, context: Sequence[str] = (), before: Page | None = None) -> Holds:
        """Whether the page shows it: inside `context` (the condition's own, or the goal's), or as something that the
        page `before` did not show. What must be absent is established by a complete page only."""
        inside = when.context or context
        absent = Holds.NO if self.complete else Holds.NOT_ESTABLISHED
        if when.no_text is not None and self._count(when.no_text, inside):
            return Holds.NO
        if when.url is not None and when.url not in self.url:
            return Holds.NO
        if when.text is not None and not self._appeared(when.text, when.context, context, before):
            return absent
        if when.element and not any(_in_state(n, when) for n in self.named(when)):
            return absent
        return Holds.YES if self.complete or when.no_text is None else Holds.NOT_ESTABLISHED

    def _appeared(self, text: str, own: Sequence[str], context: Sequence[str], before: Page | None) -> bool:
        if own or (context and self._count(text, context)):
            return self._count(text, own or context) > 0
        return self._count(text, ()) > (before._count(text, ()) if before is not None else 0)

    def _count(self, text: str, context: Sequence[str]) -> int:
        wanted = _flat(text)
        return sum(any(wanted in t for t in n.texts) for n in self._scope(context))

    def _scope(self, context: Sequence[str]) -> Iterator[Node]:
        """The whole page, or the smallest containers that carry the innermost label.

        A container carries a label as its own name, or as a text inside it that makes it the context of its
        controls: never the table or the page around it."""
        if not context:
            yield from self.nodes
            return
        label = _flat(context[-1])
        for i, n in enumerate(self.nodes):
            inside = self.nodes[i : n.end]
            if n.role in _CONTAINERS and any(_carries(m, label) for m in inside):
                nested = any(
                    m.role in _CONTAINERS and any(_carries(x, label) for x in self.nodes[j : m.end])
                    for j, m in enumerate(inside[1:], i + 1)
                )
                if not nested or label in n.texts:
                    yield from inside


_CONTAINERS = frozenset(("row", "listitem", "group", "form", "dialog", "alertdialog", "region", "article", "option"))


def _is(node: Node, wanted: Goal | DoneWhen) -> bool:
    if wanted.role is not None and node.role != wanted.role:
        return False
    if wanted.name is not None and _flat(node.name or "") != _flat(wanted.name):
        return False
    return all(_flat(label) in node.context for label in wanted.context)


def _in_state(node: Node, when: DoneWhen) -> bool:
    return (when.state is None or when.state in node.states) and (when.value is None or _flat(when.value) in node.texts)


def _carries(node: Node, label: str) -> bool:
    return label in node.texts or label in node.context


def read_page(data: Mapping[str, Any]) -> Page:
    """From the `data` of a snapshot answer. Unknown keys are ignored: a newer deskcert may say more."""
    nodes: list[Node] = []
    tree = data["tree"]
    cut = [_add(root, nodes) for root in (tree if isinstance(tree, list) else [tree])]
    complete = data.get("complete") is True and not any(cut)
    return Page(data["snapshot_id"], data["window"].get("url", ""), complete, tuple(nodes))


def _add(raw: Mapping[str, Any], into: list[Node]) -> bool:
    """True where a part of the subtree was cut, or could not be read."""
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
    cut = raw.get("subtree_truncated") is True or bool(raw.get("unknown")) or raw.get("opaque") is True
    for child in raw.get("children", ()):
        cut = _add(child, into) or cut
    into[at] = replace(node, end=len(into))
    return cut


def _flat(text: str) -> str:
    return " ".join(text.split())
