"""What was seen, three-valued, and the evidence E that a decision rests on.

A field is *known*, *absent* or *unknown*. A failed read is unknown, never absent; negating unknown gives unknown.
In JSON: known is the value itself, absent is `null` (or a missing key), unknown is `{"unknown": "<why>"}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "ABSENT",
    "Absent",
    "ActivationPath",
    "Destination",
    "Evidence",
    "Field",
    "Hit",
    "HitTest",
    "Known",
    "NameSources",
    "Unknown",
    "field_from_json",
    "field_to_json",
]


@dataclass(frozen=True, slots=True)
class Known[T]:
    value: T


@dataclass(frozen=True, slots=True)
class Absent:
    pass


@dataclass(frozen=True, slots=True)
class Unknown:
    why: str


type Field[T] = Known[T] | Absent | Unknown

ABSENT: Final = Absent()


def field_from_json(raw: object) -> Field[Any]:
    if raw is None:
        return ABSENT
    if isinstance(raw, Mapping) and set(raw) == {"unknown"}:
        return Unknown(str(raw["unknown"]))
    return Known(raw)


def field_to_json(value: Field[Any]) -> Any:
    match value:
        case Known(v):
            return v
        case Absent():
            return None
        case Unknown(why):
            return {"unknown": why}


NAME_SOURCES: Final = ("accessible", "text", "title", "alt", "value", "description", "placeholder")


@dataclass(frozen=True, slots=True)
class NameSources:
    """Every text by which a person could know the control. `value` is a submit button's, never an editable field's."""

    accessible: Field[str] = ABSENT
    text: Field[str] = ABSENT
    title: Field[str] = ABSENT
    alt: Field[str] = ABSENT
    value: Field[str] = ABSENT
    description: Field[str] = ABSENT
    placeholder: Field[str] = ABSENT

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> NameSources:
        return cls(**{k: field_from_json(raw.get(k)) for k in NAME_SOURCES})

    def as_json(self) -> dict[str, Any]:
        pairs = {k: field_to_json(getattr(self, k)) for k in NAME_SOURCES}
        return {k: v for k, v in pairs.items() if v is not None}


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an activation would lead: a link's href, or the form's action and method (both absolute)."""

    link: str | None = None
    form_action: str | None = None
    form_method: str | None = None
    download: str | None = None
    """The name that a link gives to the file that it leads to, where it says that it is one."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Destination:
        return cls(raw.get("link"), raw.get("form_action"), raw.get("form_method"), raw.get("download"))

    def as_json(self) -> dict[str, Any]:
        pairs = {
            "link": self.link,
            "form_action": self.form_action,
            "form_method": self.form_method,
            "download": self.download,
        }
        return {k: v for k, v in pairs.items() if v is not None}


@dataclass(frozen=True, slots=True)
class ActivationPath:
    """One more element that the event would activate, or lend its name: policy is asked about each."""

    why: str
    """`label_control | label | ancestor | descendant | default_submitter | access_key | focused`"""
    role: str
    names: NameSources
    destination: Field[Destination] = ABSENT
    context: tuple[tuple[str, str], ...] = ()
    """Of what the action is passed on to: by it the retry gate knows the same control when it is addressed itself."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ActivationPath:
        return cls(
            raw["why"],
            raw["role"],
            NameSources.from_json(raw["names"]),
            destination_from_json(raw.get("destination")),
            tuple((str(kind), str(label)) for kind, label in raw.get("context") or ()),
        )

    def as_json(self) -> dict[str, Any]:
        return _drop_null(
            {
                "why": self.why,
                "role": self.role,
                "names": self.names.as_json(),
                "destination": destination_to_json(self.destination),
                "context": [list(pair) for pair in self.context] or None,
            }
        )


@dataclass(frozen=True, slots=True)
class Hit:
    """What really received the event."""

    role: str
    name: str | None
    same_as_target: bool

    def as_json(self) -> dict[str, Any]:
        return _drop_null({"role": self.role, "name": self.name, "same_as_target": self.same_as_target})


@dataclass(frozen=True, slots=True)
class HitTest:
    """`status`: pass | fail | unknown | deferred (out of view). `occluder` names what covers the target."""

    status: str
    occluder_role: str | None = None
    occluder_name: str | None = None

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> HitTest:
        return cls(raw["status"], raw.get("occluder_role"), raw.get("occluder_name"))

    def as_json(self) -> dict[str, Any]:
        return _drop_null(
            {"status": self.status, "occluder_role": self.occluder_role, "occluder_name": self.occluder_name}
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """E: everything about one live element that a decision may rest on, collected in one look.

    The adapter builds it, the guard decides on it, and the dispatch compares it in the act: `digest` stands for the
    compared part (identity, role, names, context, destination, paths, states, hit test; never a mutable value).
    """

    document: str
    """Generation of the document (or process). Another document is another generation."""
    node: str
    """Retained identity inside that document."""
    role: str
    names: NameSources
    context: tuple[tuple[str, str], ...]
    """(kind, label) outermost first; kind: row | listitem | legend | group | dialog | heading | region."""
    url: str
    """URL of the element's own document; window origin and path come from it."""
    destination: Field[Destination]
    paths: tuple[ActivationPath, ...]
    states: Mapping[str, Field[bool]]
    """visible, enabled, editable, readonly, checked, expanded, selected, pressed, focused, secure, required,
    indeterminate."""
    actions: tuple[str, ...]
    """Commands the element supports: click, set-value, press, …"""
    box: tuple[int, int, int, int] | None
    """x, y, width, height in whole thousandths of a CSS pixel; None when it could not be read."""
    hit_test: HitTest
    value: Field[str]
    """Current value of a field (editable: a secret); a secure field's is withheld: absent, with states.secure true."""
    digest: str
    """Hex SHA-256 of `compared`."""
    options: tuple[int, ...] | None = None
    """For select: how many options that can be chosen each asked one names."""
    steady: bool | None = None
    """Its box was the same over two frames; only where it was asked for, which is for physical input."""
    other: Evidence | None = None
    """For a drag: of the element that it ends on."""
    compared: str = field(repr=False, default="")
    """The very text that the dispatch compares; built by the adapter, deterministic for equal pages."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Evidence:
        box = raw.get("box")
        return cls(
            document=raw["document"],
            node=raw["node"],
            role=raw["role"],
            names=NameSources.from_json(raw["names"]),
            context=tuple((k, v) for k, v in raw["context"]),
            url=raw["url"],
            destination=destination_from_json(raw.get("destination")),
            paths=tuple(ActivationPath.from_json(p) for p in raw["paths"]),
            states={k: field_from_json(v) for k, v in raw["states"].items()},
            actions=tuple(raw["actions"]),
            box=(box[0], box[1], box[2], box[3]) if box is not None else None,
            hit_test=HitTest.from_json(raw["hit_test"]),
            value=field_from_json(raw.get("value")),
            digest=raw["digest"],
            options=tuple(raw["options"]) if raw.get("options") is not None else None,
            steady=raw.get("steady"),
            other=Evidence.from_json(raw["other"]) if raw.get("other") is not None else None,
            compared=raw.get("compared", ""),
        )

    def as_json(self) -> dict[str, Any]:
        """For the record. `compared` stays out (it repeats the rest); `value` is left to the caller, who knows
        whether it must be a commitment."""
        return _drop_null(
            {
                "document": self.document,
                "node": self.node,
                "role": self.role,
                "names": self.names.as_json(),
                "context": [[k, v] for k, v in self.context],
                "url": self.url,
                "destination": destination_to_json(self.destination),
                "paths": [p.as_json() for p in self.paths],
                "states": {k: field_to_json(v) for k, v in self.states.items() if v != ABSENT},
                "actions": list(self.actions),
                "box": list(self.box) if self.box is not None else None,
                "hit_test": self.hit_test.as_json(),
                "digest": self.digest,
                "options": list(self.options) if self.options is not None else None,
                "steady": self.steady,
                "other": self.other.as_json() if self.other is not None else None,
            }
        )


def destination_from_json(raw: object) -> Field[Destination]:
    found = field_from_json(raw)
    return Known(Destination.from_json(found.value)) if isinstance(found, Known) else found


def destination_to_json(value: Field[Destination]) -> Any:
    return value.value.as_json() if isinstance(value, Known) else field_to_json(value)


def _drop_null(pairs: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in pairs.items() if v is not None}
