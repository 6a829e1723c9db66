"""What each command takes, as every way in tells it: MCP's input schemas and the command line's options.

A table of plain data: the one-shot command line reads it without loading the guard. A test holds it against the
commands themselves, which remain the judges of what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

__all__ = ["COMMANDS", "CommandInfo", "Param", "input_schema"]


@dataclass(frozen=True, slots=True)
class Param:
    name: str
    schema: Mapping[str, Any]
    """JSON Schema of its value."""
    help: str
    required: bool = False
    positional: bool = False
    """On the command line it stands without an option's name."""


@dataclass(frozen=True, slots=True)
class CommandInfo:
    line: str
    """One sentence, for lists."""
    params: tuple[Param, ...] = ()
    acting: bool = False
    """It reaches the application: never to be repeated blindly."""
    example: str = ""
    """Of the command line."""


_REF: Final = Param(
    "ref",
    {"type": "string", "pattern": "^@s[0-9a-z]{3,63}:e[1-9][0-9]{0,8}$"},
    "Whose: @<snapshot id>:e<n>, from a snapshot.",
    required=True,
    positional=True,
)
_COMMON: Final = (
    Param(
        "timeout_ms",
        {"type": "integer", "minimum": 0, "maximum": 60_000},
        "How long to wait until it can be done, in ms; 0 is one look.",
    ),
    Param(
        "repeat_of",
        {"type": "integer", "minimum": 0, "maximum": 2**53 - 1},
        "The ledger.seq of the earlier attempt that this one repeats on purpose.",
    ),
)


def _property(words: tuple[str, ...], help_: str, *, required: bool) -> Param:
    return Param("property", {"type": "string", "enum": list(words)}, help_, required=required, positional=True)


def _flag(name: str, help_: str) -> Param:
    return Param(name, {"type": "boolean"}, help_)


def _number(name: str, least: int, most: int, help_: str) -> Param:
    return Param(name, {"type": "integer", "minimum": least, "maximum": most}, help_)


_DIALOG: Final = Param("dialog", {"type": "string"}, "Its id, as it was told; without it, the one that is open.")
_PLAIN: Final = {
    "click": "Click an element, once.",
    "double-click": "Click an element twice, as one gesture.",
    "triple-click": "Click an element three times, as one gesture.",
    "right-click": "Open an element's context menu.",
    "hover": "Put the pointer over an element.",
    "focus": "Give an element the focus.",
    "clear": "Empty a field.",
    "check": "Switch a box on; nothing happens if it is on.",
    "uncheck": "Switch a box off; nothing happens if it is off.",
    "toggle": "Switch a box to its other state.",
    "expand": "Open what can be opened; nothing happens if it is open.",
    "collapse": "Close what can be closed; nothing happens if it is closed.",
    "scroll-to": "Bring an element into view.",
}
"""Commands that need nothing but the element."""

COMMANDS: Final[Mapping[str, CommandInfo]] = MappingProxyType(
    {
        "snapshot": CommandInfo(
            "Look at the page: its elements, with a ref for each that can be acted on.",
            (
                _flag("interactive_only", "Only branches that hold a ref."),
                _flag("compact", "Without groups that say nothing."),
                _number("max_depth", 0, 50, "Levels shown."),
                _flag("include_bounds", "With places, in CSS pixels."),
                _number("budget_ms", 1, 30_000, "Time for looking; what is cut is marked."),
                _number("max_nodes", 1, 50_000, "Nodes looked at; what is cut is marked."),
            ),
            example="deskcert snapshot --interactive-only",
        ),
        "get": CommandInfo(
            "Read one property of the live element.",
            (
                _REF,
                _property(("text", "value", "name", "title", "bounds", "role", "states"), "Which one.", required=False),
            ),
            example="deskcert get @s8f3k2p9:e8 value",
        ),
        "is": CommandInfo(
            "Ask the live element whether it is enabled, checked, …; unknown is an answer.",
            (
                _REF,
                _property(
                    (
                        *("visible", "enabled", "editable", "readonly", "checked", "expanded", "selected", "pressed"),
                        *("focused", "secure", "required", "indeterminate"),
                    ),
                    "Which state.",
                    required=True,
                ),
            ),
            example="deskcert is @s8f3k2p9:e8 enabled",
        ),
        **{
            name: CommandInfo(line, (_REF, *_COMMON), acting=True, example=f"deskcert {name} @s8f3k2p9:e8")
            for name, line in _PLAIN.items()
        },
        "type": CommandInfo(
            "Type a text into a field, behind what is there.",
            (
                _REF,
                Param("text", {"type": "string", "minLength": 1}, "The text.", required=True, positional=True),
                *_COMMON,
            ),
            acting=True,
            example='deskcert type @s8f3k2p9:e8 "two boxes"',
        ),
        "select": CommandInfo(
            "Select options of a list by what they say.",
            (
                _REF,
                Param(
                    "options",
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "The options' texts.",
                    required=True,
                    positional=True,
                ),
                *_COMMON,
            ),
            acting=True,
            example='deskcert select @s8f3k2p9:e8 "Express"',
        ),
        "scroll": CommandInfo(
            "Scroll what the element stands in.",
            (
                _REF,
                Param("direction", {"type": "string", "enum": ["up", "down", "left", "right"]}, "Default: down."),
                _number("amount", 1, 100, "Steps; default 5."),
                *_COMMON,
            ),
            acting=True,
            example="deskcert scroll @s8f3k2p9:e8 --direction up",
        ),
        "set-value": CommandInfo(
            "Put a text into a field, instead of what is there.",
            (_REF, Param("value", {"type": "string"}, "The text.", required=True, positional=True), *_COMMON),
            acting=True,
            example='deskcert set-value @s8f3k2p9:e8 "two boxes"',
        ),
        "press": CommandInfo(
            "Press Enter or Space on an element.",
            (
                _REF,
                Param("key", {"type": "string", "minLength": 1}, "Enter or Space.", required=True, positional=True),
                *_COMMON,
            ),
            acting=True,
            example="deskcert press @s8f3k2p9:e8 Enter",
        ),
        "navigate": CommandInfo(
            "Open an address in the page.",
            (
                Param(
                    "url",
                    {"type": "string", "minLength": 1},
                    "Absolute, http or https.",
                    required=True,
                    positional=True,
                ),
                *_COMMON,
            ),
            acting=True,
            example="deskcert navigate http://127.0.0.1:8000/orders",
        ),
        "back": CommandInfo("Go back in the page's history.", _COMMON, acting=True, example="deskcert back"),
        "forward": CommandInfo("Go forward in the page's history.", _COMMON, acting=True, example="deskcert forward"),
        "reload": CommandInfo("Load the page anew.", _COMMON, acting=True, example="deskcert reload"),
        "dialog-accept": CommandInfo(
            "Accept the native dialog that is open.",
            (_DIALOG, Param("text", {"type": "string"}, "The answer to a prompt."), *_COMMON),
            acting=True,
            example="deskcert dialog-accept",
        ),
        "dialog-dismiss": CommandInfo(
            "Dismiss the native dialog that is open.",
            (_DIALOG, *_COMMON),
            acting=True,
            example="deskcert dialog-dismiss",
        ),
        "status": CommandInfo("What is used up, what is open, and which policy holds.", example="deskcert status"),
        "finish": CommandInfo(
            "Make your claim about the task; nothing more is done after it.",
            (
                Param(
                    "outcome",
                    {"type": "string", "enum": ["done", "refused", "failed", "unsure"]},
                    "What you claim.",
                    required=True,
                ),
                Param("message", {"type": "string"}, "Why, in a sentence."),
            ),
            example='deskcert finish --outcome done --message "order 1001 is approved"',
        ),
    }
)


def input_schema(command: str, names: Mapping[str, bool] | None = None) -> dict[str, Any]:
    """JSON Schema of a command's arguments. For a command that is not in the table `names` has its arguments, and
    whether each is required; what they may be is the command's to judge."""
    info = COMMANDS.get(command)
    if info is None:
        told = {p.name: {**p.schema, "description": p.help} for p in (_REF, *_COMMON)}
        found = names or {}
        return {
            "type": "object",
            "properties": {name: told.get(name, {}) for name in found},
            "required": [name for name, required in found.items() if required],
            "additionalProperties": not found,
        }
    return {
        "type": "object",
        "properties": {p.name: {**p.schema, "description": p.help} for p in info.params},
        "required": [p.name for p in info.params if p.required],
        "additionalProperties": False,
    }
