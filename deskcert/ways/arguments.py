"""What each command takes, as every way in tells it: MCP's input schemas and the command line's options.

A table of plain data: the one-shot command line reads it without loading the guard. A test holds it against the
commands themselves, which remain the judges of what they are given.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from deskcert.ways.desktop_arguments import DESKTOP_COMMANDS
from deskcert.ways.params import COMMON, REF, CommandInfo, Param, flag, number, one_of, word

__all__ = ["COMMANDS", "CommandInfo", "Param", "input_schema"]


_DIALOG: Final = Param("dialog", {"type": "string"}, "Its id, as it was told; without it, the one that is open.")
_TAB: Final = Param("tab", {"type": "string", "minLength": 1}, "Its id, from tabs.", required=True, positional=True)
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
                Param("root", REF.schema, "Only what is in this element, with new refs; for parts of a skeleton."),
                Param(
                    "surface",
                    {"type": "string", "enum": ["window", "dialog", "menu", "listbox", "tooltip"]},
                    "Only what is in what is open of this sort.",
                ),
                flag("skeleton", "Three levels; what is cut off has a ref, for root."),
                flag("interactive_only", "Only branches that hold a ref."),
                flag("compact", "Without groups that say nothing."),
                number("max_depth", 0, 50, "Levels shown."),
                flag("include_bounds", "With places, in CSS pixels."),
                number("budget_ms", 1, 30_000, "Time for looking; what is cut is marked."),
                number("max_nodes", 1, 50_000, "Nodes looked at; what is cut is marked."),
            ),
            example="deskcert snapshot --interactive-only",
        ),
        "find": CommandInfo(
            "Find elements by what they are and say; an answer that is not established says so.",
            (
                word("role", "Its role, such as button."),
                word("name", "Its accessible name."),
                word("text", "A text in it."),
                word("value", "Its value."),
                word("description", "Its description."),
                word("native_id", "Its id in the page."),
                Param("states", {"type": "array", "items": {"type": "string"}}, "States that it has."),
                flag("exact", "Whole texts, as they are written."),
                flag("first", "The first of several."),
                flag("last", "The last of several."),
                number("nth", 1, 100_000, "The n-th of several, from 1."),
                flag("count", "Only how many there are."),
                number("limit", 0, 10_000, "How many are shown; default 50."),
            ),
            example='deskcert find --role button --name "Approve"',
        ),
        "wait": CommandInfo(
            "Wait until something is so, or until the time is over.",
            (
                number("ms", 1, 60_000, "Only so long."),
                Param("ref", REF.schema, "Whose."),
                word("predicate", "exists, gone, visible, enabled, …; of the ref. Default: exists."),
                word("text", "Until this text is on the page."),
                word("text_gone", "Until this text is not on the page, established by a complete look."),
                flag("navigation", "Until another document is there."),
                flag("dialog", "Until a native dialog is open."),
                flag("download", "Until a download has come to its end."),
                number("network_quiet_ms", 1, 60_000, "Until no request has been under way for so long."),
                number("timeout_ms", 0, 60_000, "At most so long; default 10,000."),
            ),
            example='deskcert wait --text "was approved"',
        ),
        "screenshot": CommandInfo(
            "A picture of what the window shows, an element outlined where one is named.",
            (Param("ref", REF.schema, "Which to outline.", positional=True),),
            example="deskcert screenshot",
        ),
        "tabs": CommandInfo(
            "The pages that are open; guarded is the one that commands are about.", example="deskcert tabs"
        ),
        "tab-focus": CommandInfo(
            "Go to another tab; commands are about it from then on.",
            (_TAB, *COMMON),
            acting=True,
            example="deskcert tab-focus 5F0C1A",
        ),
        "tab-close": CommandInfo(
            "Close a tab; what its page asks first is a dialog.",
            (_TAB, *COMMON),
            acting=True,
            example="deskcert tab-close 5F0C1A",
        ),
        "list-surfaces": CommandInfo("Windows, dialogs and menus that are open.", example="deskcert list-surfaces"),
        "batch": CommandInfo(
            "Several commands in one call; all are parsed, and judged by the policy, before the first one runs.",
            (
                Param(
                    "entries",
                    {"type": "array", "items": {"type": "object"}, "minItems": 1},
                    'A list of {"command": …, "args": {…}}.',
                    required=True,
                    positional=True,
                ),
                flag("stop_on_error", "Stop at the first that fails; the default."),
            ),
            may_act=True,
            example="""deskcert batch '[{"command": "click", "args": {"ref": "@s8f3k2p9:e8"}}]'""",
        ),
        "get": CommandInfo(
            "Read one property of the live element.",
            (
                REF,
                one_of(("text", "value", "name", "title", "bounds", "role", "states"), "Which one.", required=False),
            ),
            example="deskcert get @s8f3k2p9:e8 value",
        ),
        "is": CommandInfo(
            "Ask the live element whether it is enabled, checked, …; unknown is an answer.",
            (
                REF,
                one_of(
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
            name: CommandInfo(line, (REF, *COMMON), acting=True, example=f"deskcert {name} @s8f3k2p9:e8")
            for name, line in _PLAIN.items()
        },
        "type": CommandInfo(
            "Type a text into a field, behind what is there.",
            (
                REF,
                Param("text", {"type": "string", "minLength": 1}, "The text.", required=True, positional=True),
                *COMMON,
            ),
            acting=True,
            example='deskcert type @s8f3k2p9:e8 "two boxes"',
        ),
        "select": CommandInfo(
            "Select options of a list by what they say.",
            (
                REF,
                Param(
                    "options",
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "The options' texts.",
                    required=True,
                    positional=True,
                ),
                *COMMON,
            ),
            acting=True,
            example='deskcert select @s8f3k2p9:e8 "Express"',
        ),
        "scroll": CommandInfo(
            "Scroll what the element stands in.",
            (
                REF,
                Param("direction", {"type": "string", "enum": ["up", "down", "left", "right"]}, "Default: down."),
                number("amount", 1, 100, "Steps; default 5."),
                *COMMON,
            ),
            acting=True,
            example="deskcert scroll @s8f3k2p9:e8 --direction up",
        ),
        "drag": CommandInfo(
            "Drag an element onto another one.",
            (REF, Param("to", REF.schema, "Onto which.", required=True, positional=True), *COMMON),
            acting=True,
            example="deskcert drag @s8f3k2p9:e8 @s8f3k2p9:e12",
        ),
        "upload": CommandInfo(
            "Choose files for a file field, from the folders that the session may upload from.",
            (
                REF,
                Param(
                    "files",
                    {"type": "array", "items": {"type": "string"}, "minItems": 1},
                    "Absolute paths.",
                    required=True,
                    positional=True,
                ),
                *COMMON,
            ),
            acting=True,
            example="deskcert upload @s8f3k2p9:e8 /srv/invoices/1001.pdf",
        ),
        "set-value": CommandInfo(
            "Put a text into a field, instead of what is there.",
            (REF, Param("value", {"type": "string"}, "The text.", required=True, positional=True), *COMMON),
            acting=True,
            example='deskcert set-value @s8f3k2p9:e8 "two boxes"',
        ),
        "press": CommandInfo(
            "Press a key on an element.",
            (
                REF,
                Param(
                    "key",
                    {"type": "string", "minLength": 1},
                    "Enter, Space or an arrow; other keys, and ctrl+a and the like, with --mode focus_fallback.",
                    required=True,
                    positional=True,
                ),
                *COMMON,
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
                *COMMON,
            ),
            acting=True,
            example="deskcert navigate http://127.0.0.1:8000/orders",
        ),
        "back": CommandInfo("Go back in the page's history.", COMMON, acting=True, example="deskcert back"),
        "forward": CommandInfo("Go forward in the page's history.", COMMON, acting=True, example="deskcert forward"),
        "reload": CommandInfo("Load the page anew.", COMMON, acting=True, example="deskcert reload"),
        "dialog-accept": CommandInfo(
            "Accept the native dialog that is open.",
            (_DIALOG, Param("text", {"type": "string"}, "The answer to a prompt."), *COMMON),
            acting=True,
            example="deskcert dialog-accept",
        ),
        "dialog-dismiss": CommandInfo(
            "Dismiss the native dialog that is open.",
            (_DIALOG, *COMMON),
            acting=True,
            example="deskcert dialog-dismiss",
        ),
        **DESKTOP_COMMANDS,
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
        told = {p.name: {**p.schema, "description": p.help} for p in (REF, *COMMON)}
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
