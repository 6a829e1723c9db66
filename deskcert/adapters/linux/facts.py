"""What one accessible object says about itself, three-valued, and what that means in the contract's words. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from deskcert.adapters.linux import words
from deskcert.adapters.linux.bus import ObjectRef
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ABSENT, Absent, Field, Known, Unknown

__all__ = ["Box", "Facts", "Toolkit", "action_for", "capabilities", "plain"]

type Box = tuple[int, int, int, int]
"""x, y, width, height in pixels."""

_PRESS: Final = ("click", "press", "activate", "jump", "dodefault", "invoke", "open")
_TOGGLE: Final = ("toggle", "check", "uncheck", "click", "press", "activate")
_EXPAND: Final = (
    "expand or contract",
    "expand",
    "collapse",
    "show menu",
    "showmenu",
    "open",
    "close",
    "press",
    "click",
)
_MENU: Final = ("click", "press", "show menu", "showmenu", "activate")
_PRESSED: Final = frozenset({"button", "link", "menuitem", "menubutton"}) | words.CHECKABLE
_CHOOSE: Final = ("click", "press", "jump", "select", "dodefault")
"""Not `activate`: on an entry of a list that is what a double click does."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What differs between toolkits, found out by asking. Source of each: environment, "AT-SPI", and tests."""

    name: str = ""
    all_at_once: bool = True
    """`Properties.GetAll` is answered (Qt refuses it)."""
    tells_showing: bool = True
    """GTK 4 sets `showing` on windows only."""
    tells_modal: bool = True
    """Qt has no `modal` state; the X server knows."""
    places_on_screen: bool = True
    """GTK 4 answers places within the window, whatever it is asked for."""
    hides_by_state: bool = False
    """What is hidden has no `visible` either, so that what is only not `showing` is out of sight (Chromium). GTK's
    closed menus are `visible`."""
    chooses_in_combo: bool = True
    """Qt lets a combo box's list be selected in, and keeps the combo box as it was."""
    rows_by_table: bool = False
    """GTK 3 refuses `SelectChild` on rows, and takes `AddRowSelection`."""
    effect_after_ms: int = 0
    """A button's effect may come so long after DoAction has answered True (Qt animates the press for 100 ms)."""


@dataclass(slots=True)
class Facts:
    """Mutable while it is being read."""

    ref: ObjectRef
    name: Field[str] = ABSENT
    description: Field[str] = ABSENT
    native: Field[str] = ABSENT
    role: Field[int] = ABSENT
    states: Field[int] = ABSENT
    children: Field[tuple[ObjectRef, ...]] = ABSENT
    child_count: Field[int] = ABSENT
    parent: Field[ObjectRef] = ABSENT
    interfaces: Field[frozenset[str]] = ABSENT
    box: Field[Box] = ABSENT
    actions: Field[tuple[tuple[str, str], ...]] = ABSENT
    """(name, key binding), in the order of their numbers."""
    text: Field[str] = ABSENT
    """What stands in a field; never read where it is secure."""
    number: Field[float] = ABSENT
    label: Field[str] = ABSENT
    """Name of what labels it."""
    cell: Field[tuple[int, int]] = ABSENT
    """Row and column in its table."""
    link: Field[str] = ABSENT
    below: list[Facts] = field(default_factory=list)
    """Descendants that lend their names: read for evidence only."""

    @property
    def word(self) -> str:
        return words.role_word(self.role.value) if isinstance(self.role, Known) else "unknown"

    @property
    def secure(self) -> bool:
        return isinstance(self.role, Known) and self.role.value in words.SECURE_ROLES

    def has(self, state: State) -> Field[bool]:
        if isinstance(self.states, Known):
            return Known(bool(self.states.value >> state & 1))
        return self.states

    def is_(self, state: State) -> bool:
        return self.has(state) == Known(True)

    @property
    def gone(self) -> bool:
        """The application says that there is no such object (any more)."""
        return isinstance(self.role, Absent) or isinstance(self.states, Absent) or self.is_(State.DEFUNCT)

    def unread(self) -> str | None:
        """Why something that identity rests on could not be read."""
        for part in (self.role, self.states, self.name):
            if isinstance(part, Unknown):
                return part.why
        return None

    def accessible_name(self) -> Field[str]:
        """Ranked: its own name, its label's. Where a stronger source could not be read, a weaker one proves nothing."""
        for source in (self.name, self.label):
            if isinstance(source, Unknown):
                return source
            if isinstance(source, Known) and source.value.strip():
                return Known(source.value.strip())
        return ABSENT

    def editable(self) -> Field[bool]:
        if self.word == "slider":
            return Known(not self.is_(State.READ_ONLY))
        if self.word not in words.FIELDS:
            return Known(False)
        return self.has(State.EDITABLE)

    def enabled(self) -> Field[bool]:
        """GTK 4 and menus say only `sensitive`; everything else both or neither."""
        return self.has(State.SENSITIVE)

    def checked(self) -> Field[bool]:
        if self.word not in words.CHECKABLE:
            return ABSENT
        if self.is_(State.PRESSED):
            return Known(True)
        return self.has(State.CHECKED)

    def expanded(self) -> Field[bool]:
        if self.has(State.EXPANDABLE) != Known(True):
            return ABSENT
        return self.has(State.EXPANDED)

    def value(self) -> Field[str]:
        """A field's text, a slider's number, what a combo box shows; a secure field's is withheld."""
        if self.secure:
            return ABSENT
        if self.word == "combobox" and not self.is_(State.EDITABLE):
            return self.name
        if self.word in words.FIELDS and not isinstance(self.text, Absent):
            return self.text
        if isinstance(self.number, Known):
            return Known(plain(self.number.value))
        return self.number


def plain(number: float) -> str:
    """`3` for 3.0: no toolkit's whole numbers become decimals."""
    return str(int(number)) if number == int(number) else repr(number)


def action_for(command: str, facts: Facts) -> int | None:
    """Number of the toolkit's action that does it, by name; None where there is none."""
    names: tuple[str, ...]
    match command:
        case "click" if facts.word in words.CHECKABLE:
            names = _TOGGLE
        case "click" if facts.word == "menuitem":
            names = _MENU
        case "click" if facts.word in words.ITEMS:
            names = _CHOOSE
        case "double-click" if facts.word in words.ITEMS:
            names = ("activate",)
        case "click" | "press":
            names = _PRESS
        case "toggle" | "check" | "uncheck":
            names = _TOGGLE
        case "expand" | "collapse":
            names = _EXPAND
        case "focus":
            names = ("set focus", "focus", "grab focus")
        case _:
            return None
    offered = [name.casefold() for name, _ in facts.actions.value] if isinstance(facts.actions, Known) else []
    return next((offered.index(name) for name in names if name in offered), None)


def capabilities(facts: Facts, toolkit: Toolkit, *, headed: bool, in_selection: bool) -> tuple[str, ...]:
    """Commands that can be carried out on it. `in_selection`: its parent has the Selection interface."""
    if not isinstance(facts.role, Known) or facts.word in words.WINDOWS | words.CONTAINERS | {"statictext"}:
        return ()
    out: list[str] = []
    # A disabled control may offer nothing now (Qt): what its role promises is what waiting is for.
    resting = facts.enabled() == Known(False)
    pressable = action_for("click", facts) is not None or (resting and facts.word in _PRESSED)
    chosen = in_selection and facts.word in words.ITEMS and facts.is_(State.SELECTABLE)
    if pressable or chosen or (headed and facts.word in words.INTERACTIVE):
        out.append("click")
    if facts.word in words.CHECKABLE and (resting or action_for("toggle", facts) is not None):
        out.append("toggle")
    if facts.is_(State.EXPANDABLE) and action_for("expand", facts) is not None:
        out.append("expand")
    if facts.word in words.FIELDS and facts.is_(State.EDITABLE):
        out += ["set-value", "type"]
    elif facts.word == "slider":
        out.append("set-value")
    if facts.word == "listbox" or (facts.word == "combobox" and toolkit.chooses_in_combo):
        out.append("select")
    if facts.is_(State.FOCUSABLE):
        out.append("focus")
    if (headed and facts.is_(State.FOCUSABLE)) or action_for("press", facts) is not None:
        out.append("press")
    return tuple(out)


def known(value: Field[Any], otherwise: Any = None) -> Any:
    return value.value if isinstance(value, Known) else otherwise
