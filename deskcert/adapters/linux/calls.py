"""Which D-Bus calls carry an action out, by what the element offers. Nothing is sent here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deskcert.adapters.base import Action
from deskcert.adapters.linux import words
from deskcert.adapters.linux.bus import ObjectRef
from deskcert.adapters.linux.evidence import Looked
from deskcert.adapters.linux.facts import Facts, Toolkit, action_for
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import Known

__all__ = ["BusCall", "Impossible", "calls_for", "chosen_by_row"]

_ANYWHERE: Final = 6
"""`ScrollTo`: wherever it takes the least scrolling."""
_TABLE: Final = "org.a11y.atspi.Table"
_SET: Final = "org.freedesktop.DBus.Properties"


@dataclass(frozen=True, slots=True)
class BusCall:
    ref: ObjectRef
    interface: str
    member: str
    signature: str
    body: tuple[Any, ...]
    label: str
    """For the record: what was asked of the toolkit, never a value."""


@dataclass(frozen=True, slots=True)
class Impossible:
    why: str


def calls_for(action: Action, looked: Looked, toolkit: Toolkit, index: int) -> tuple[BusCall, ...] | Impossible:
    """In order. `index`: the element's number, or its row's, in what it is chosen in, read just now."""
    facts = looked.facts
    assert facts is not None
    match action.command:
        case "click" | "double-click" | "check" | "uncheck" | "toggle" | "expand" | "collapse" | "press":
            return _activation(action.command, looked, index, rows=chosen_by_row(looked, toolkit))
        case "set-value" | "clear" if facts.word in ("slider", "spinbutton") and action.command == "set-value":
            return _number(facts, action.value or "")
        case "set-value" | "clear":
            text = action.value or "" if action.command == "set-value" else ""
            return (BusCall(facts.ref, words.EDITABLE_TEXT, "SetTextContents", "s", (text,), "SetTextContents"),)
        case "type":
            return _insertion(facts, action.value or "", toolkit)
        case "select":
            return _selection(looked)
        case "focus":
            return (BusCall(facts.ref, words.COMPONENT, "GrabFocus", "", (), "GrabFocus"),)
        case "scroll-to":
            return (BusCall(facts.ref, words.COMPONENT, "ScrollTo", "u", (_ANYWHERE,), "ScrollTo"),)
        case _:
            return Impossible(f"{action.command} has no semantic form on the desktop")


def chosen_by_row(looked: Looked, toolkit: Toolkit) -> bool:
    return toolkit.rows_by_table and looked.holder is not None and looked.holder[0].word in ("table", "tree")


def _activation(command: str, looked: Looked, index: int, *, rows: bool) -> tuple[BusCall, ...] | Impossible:
    """By the action's name, never by its number alone; an entry of a list is chosen in the list."""
    facts, holder = looked.facts, looked.holder
    assert facts is not None
    number = action_for(command, facts)
    if number is not None and isinstance(facts.actions, Known):
        name = facts.actions.value[number][0]
        return (BusCall(facts.ref, words.ACTION, "DoAction", "i", (number,), f"DoAction {name}"),)
    if command == "click" and holder is not None and facts.word in words.ITEMS and facts.is_(State.SELECTABLE):
        if index < 0:
            return Impossible("its number in the list could not be read")
        if rows:
            return (BusCall(holder[0].ref, _TABLE, "AddRowSelection", "i", (index,), "AddRowSelection"),)
        return (BusCall(holder[0].ref, words.SELECTION, "SelectChild", "i", (index,), "SelectChild"),)
    return Impossible(f"the element offers no action for {command}")


def _number(facts: Facts, text: str) -> tuple[BusCall, ...] | Impossible:
    try:
        value = float(text)
    except ValueError:
        return Impossible("it takes a number only")
    from dbus_fast import Variant

    body = (words.VALUE, "CurrentValue", Variant("d", value))
    return (BusCall(facts.ref, _SET, "Set", "ssv", body, "Set CurrentValue"),)


def _insertion(facts: Facts, text: str, toolkit: Toolkit) -> tuple[BusCall, ...] | Impossible:
    """After what stands there. GTK counts the length in bytes, Qt in UTF-16 units."""
    if facts.secure:
        position = -1
    elif isinstance(facts.text, Known):
        position = len(facts.text.value)
    else:
        return Impossible("what stands in the field could not be read")
    qt = toolkit.name.casefold().startswith("qt")
    length = len(text.encode("utf-16-le")) // 2 if qt else len(text.encode())
    body = (position, text, length)
    return (BusCall(facts.ref, words.EDITABLE_TEXT, "InsertText", "isi", body, "InsertText"),)


def _selection(looked: Looked) -> tuple[BusCall, ...] | Impossible:
    choice, facts = looked.choice, looked.facts
    assert facts is not None
    if choice is None or choice.counts is None or len(choice.chosen) != len(choice.counts):
        return Impossible("the entries could not be found")
    choosing = tuple(
        BusCall(choice.holder, words.SELECTION, "SelectChild", "i", (number,), "SelectChild")
        for number, _ in choice.chosen
    )
    if facts.word == "combobox":
        return choosing
    return (BusCall(choice.holder, words.SELECTION, "ClearSelection", "", (), "ClearSelection"), *choosing)
