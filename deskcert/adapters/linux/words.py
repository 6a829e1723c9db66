"""AT-SPI's numbers and words, and the contract's words for them. Pure.

Numbers from at-spi2-core's `atspi-constants.h`; role *names* differ between toolkits ("push button", "button"), the
numbers do not.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import Final

__all__ = [
    "ACCESSIBLE",
    "ACTION",
    "CHECKABLE",
    "COMPONENT",
    "CONTAINERS",
    "EDITABLE_TEXT",
    "FIELDS",
    "INTERACTIVE",
    "ITEMS",
    "LABELLED_BY",
    "ROLES",
    "SELECTION",
    "TEXT",
    "VALUE",
    "WINDOWS",
    "State",
    "role_word",
]

_ATSPI: Final = "org.a11y.atspi."
ACCESSIBLE: Final = f"{_ATSPI}Accessible"
ACTION: Final = f"{_ATSPI}Action"
COMPONENT: Final = f"{_ATSPI}Component"
EDITABLE_TEXT: Final = f"{_ATSPI}EditableText"
SELECTION: Final = f"{_ATSPI}Selection"
TEXT: Final = f"{_ATSPI}Text"
VALUE: Final = f"{_ATSPI}Value"

LABELLED_BY: Final = 2
"""Of `GetRelationSet`."""


class State(IntEnum):
    """Bits of `GetState`, as far as they are used."""

    ACTIVE = 1
    CHECKED = 4
    COLLAPSED = 5
    DEFUNCT = 6
    EDITABLE = 7
    ENABLED = 8
    EXPANDABLE = 9
    EXPANDED = 10
    FOCUSABLE = 11
    FOCUSED = 12
    ICONIFIED = 15
    MODAL = 16
    PRESSED = 20
    SELECTABLE = 22
    SELECTED = 23
    SENSITIVE = 24
    SHOWING = 25
    VISIBLE = 30
    MANAGES_DESCENDANTS = 31
    INDETERMINATE = 32
    REQUIRED = 33
    IS_DEFAULT = 39
    CHECKABLE = 41
    READ_ONLY = 43


ROLES: Final = MappingProxyType(
    {
        2: "alert",
        7: "checkbox",
        8: "menuitemcheckbox",
        10: "columnheader",
        11: "combobox",
        16: "dialog",
        19: "dialog",
        20: "generic",
        22: "dialog",
        23: "window",
        26: "img",
        27: "img",
        28: "window",
        29: "statictext",
        31: "listbox",
        32: "option",
        33: "menuitem",
        34: "menubar",
        35: "menuitem",
        37: "tab",
        38: "tablist",
        39: "generic",
        40: "textbox",
        41: "menu",
        42: "progressbar",
        43: "button",
        44: "radio",
        45: "menuitemradio",
        47: "rowheader",
        48: "scrollbar",
        49: "generic",
        50: "separator",
        51: "slider",
        52: "spinbutton",
        54: "status",
        55: "table",
        56: "cell",
        57: "columnheader",
        58: "rowheader",
        59: "menuitem",
        60: "textbox",
        61: "textbox",
        62: "switch",
        63: "toolbar",
        64: "tooltip",
        65: "tree",
        66: "tree",
        69: "window",
        73: "paragraph",
        75: "application",
        79: "textbox",
        82: "document",
        83: "heading",
        88: "link",
        90: "row",
        91: "treeitem",
        95: "document",
        98: "listbox",
        99: "group",
        101: "alert",
        110: "region",
        116: "statictext",
        129: "menubutton",
        130: "switch",
    }
)
"""Others read `generic`."""

_FORM: Final = 87
_PASSWORD: Final = 40
SECURE_ROLES: Final = frozenset({_PASSWORD})

FIELDS: Final = frozenset({"textbox", "spinbutton", "combobox"})
"""They may hold a text that is typed."""
CHECKABLE: Final = frozenset({"checkbox", "switch", "radio", "menuitemcheckbox", "menuitemradio"})
ITEMS: Final = frozenset({"option", "cell", "treeitem", "tab", "row"})
"""Chosen in a container rather than pressed."""
WINDOWS: Final = frozenset({"window", "dialog", "alert"})
CONTAINERS: Final = frozenset({"generic", "toolbar", "tablist", "table", "tree", "document", "application", "menubar"})
INTERACTIVE: Final = (
    frozenset({"button", "link", "menuitem", "menubutton", "slider", "listbox"}) | FIELDS | CHECKABLE | ITEMS
)


def role_word(number: int) -> str:
    """The contract's word for a role."""
    return "form" if number == _FORM else ROLES.get(number, "generic")
