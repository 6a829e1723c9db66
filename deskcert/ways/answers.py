"""What the Python way in answers with: the envelope, typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deskcert_schema.errors import AdapterError, ContractError

__all__ = ["Answer", "Element", "Snapshot"]


@dataclass(frozen=True, slots=True)
class Answer:
    """One envelope."""

    envelope: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        return self.envelope.get("ok") is True

    @property
    def data(self) -> Mapping[str, Any]:
        """Empty for an error."""
        found: Mapping[str, Any] = self.envelope.get("data", {})
        return found

    @property
    def error(self) -> Mapping[str, Any]:
        """Empty for a success."""
        found: Mapping[str, Any] = self.envelope.get("error", {})
        return found

    @property
    def code(self) -> str | None:
        return self.error.get("code")

    @property
    def kind(self) -> str | None:
        """The stable sub-code."""
        found: str | None = (self.error or self.data).get("details", {}).get("kind")
        return found

    @property
    def delivery(self) -> str | None:
        """What is known about this attempt; None for a command that only reads."""
        found: str | None = (self.error or self.data).get("disposition", {}).get("delivery")
        return found

    @property
    def retry(self) -> str | None:
        """`safe`, `unsafe` or `never_automatic`."""
        found: str | None = (self.error or self.data).get("disposition", {}).get("retry")
        return found

    @property
    def seq(self) -> int | None:
        """Where its record stands in the ledger: what `repeat_of` names."""
        found: int | None = self.envelope.get("ledger", {}).get("seq")
        return found

    def or_raise(self) -> Answer:
        """Itself, or `AdapterError` with the sentence, the sub-code and what is known about the delivery."""
        if self.ok:
            return self
        message = f"{self.code}: {self.error.get('message')}"
        raise AdapterError(message, delivery=self.delivery or "unknown", kind=self.kind)


@dataclass(frozen=True, slots=True)
class Element:
    """One node of a snapshot, as it was seen."""

    ref: str | None
    role: str
    name: str
    value: str | None
    states: tuple[str, ...]
    context: tuple[tuple[str, str], ...]
    """Kind and label of what it stands in: `("row", "Order 1001")`."""


@dataclass(frozen=True, slots=True)
class Snapshot(Answer):
    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))

    @property
    def complete(self) -> bool:
        """Without it, what is not here may still be there."""
        return self.data.get("complete") is True

    def elements(self) -> Iterator[Element]:
        """Every node shown, in the page's order."""
        yield from _elements(self.data.get("tree", []))

    def find(
        self, *, role: str | None = None, name: str | None = None, context: str | None = None
    ) -> tuple[Element, ...]:
        """Those with a ref that match exactly in everything that is given; `context` is the label of any level."""
        return tuple(
            e
            for e in self.elements()
            if e.ref is not None
            and (role is None or e.role == role)
            and (name is None or e.name == name)
            and (context is None or any(label == context for _, label in e.context))
        )

    def one(self, *, role: str | None = None, name: str | None = None, context: str | None = None) -> str:
        """The ref of the only match. Raises `ContractError` for none and for several."""
        found = self.find(role=role, name=name, context=context)
        if len(found) == 1:
            assert found[0].ref is not None
            return found[0].ref
        asked = ", ".join(f"{k} {v!r}" for k, v in (("role", role), ("name", name), ("context", context)) if v)
        if not found:
            unsure = "" if self.complete else "; the snapshot is incomplete, so that it is missing is not established"
            raise ContractError(f"no element with {asked}{unsure}")
        raise ContractError(f"{len(found)} elements with {asked}; say more, such as the context of one")


def _elements(node: Any) -> Iterator[Element]:
    for one in node if isinstance(node, list) else [node]:
        yield Element(
            one.get("ref_id"),
            one.get("role", "unknown"),
            one.get("name", ""),
            one.get("value"),
            tuple(one.get("states", ())),
            tuple((kind, label) for kind, label in one.get("context", ())),
        )
        yield from _elements(one.get("children", []))
