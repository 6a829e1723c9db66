"""The commands on one element, named by its ref, each through the whole pipeline."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

from deskcert.adapters.base import Action, DragAdapter
from deskcert.guard import outcome
from deskcert.guard.pipeline import act
from deskcert.guard.rules import key_of
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, one_of, ref, text, text_lines, whole_number
from deskcert.session.commands.acting import COMMON, run_pipeline
from deskcert.session.desk import Call, Desk, Handler, target_of
from deskcert.session.snapshots import Saved
from deskcert.session.uploads import files_to_upload
from deskcert_ledger import Secret
from deskcert_schema.vocabulary import Code, Command, DetailKind, Mode

__all__ = ["COMMANDS", "action_of"]

MAX_VALUE_BYTES: Final = 10_000
MAX_TYPED_BYTES: Final = 2_000
"""Typed character by character; for more there is set-value."""
_HELD: Final = frozenset({"alt", "ctrl", "meta", "shift"})
TRUSTED: Final = frozenset(
    (
        *("enter", "space", "tab", "escape", "backspace", "delete", "home", "end", "pageup", "pagedown"),
        *("arrowleft", "arrowup", "arrowright", "arrowdown"),
        *(f"f{n}" for n in range(1, 13)),
        *"abcdefghijklmnopqrstuvwxyz0123456789",
    )
)
"""Keys that go out as trusted input."""
_KEYS: Final = {"enter": "Enter", "return": "Enter", "space": "Space", " ": "Space"}
_PHYSICAL: Final = frozenset(
    (
        *(Command.CLICK, Command.DOUBLE_CLICK, Command.TRIPLE_CLICK, Command.RIGHT_CLICK, Command.HOVER),
        *(Command.SCROLL, Command.DRAG, Command.TYPE),
    )
)
"""Commands that a headed session carries out by pointer and keyboard; `press` is so with every key that is trusted."""
_ARROWS: Final = {f"arrow{side.lower()}": f"Arrow{side}" for side in ("Left", "Up", "Right", "Down")}
"""Without trusted input they do to a native control what the browser does by default."""


async def _upload(desk: Desk, call: Call) -> dict[str, Any]:
    """Only files of folders that the session was given, whatever way leads to them."""
    folders = desk.options.upload_folders
    if not folders:
        raise Refused(Code.ACTION_NOT_SUPPORTED, "no folder was opened for uploads in this session", phase="parse")
    if outside := [file for file in call.values["files"] if not file.within(folders)]:
        raise Refused(
            Code.POLICY_DENIED,
            f"{outside[0].name} is in none of the folders that were opened for uploads",
            phase="gate",
            kind=DetailKind.NOT_ALLOWED,
        )
    return await _on_element(desk, call)


async def _drag(desk: Desk, call: Call) -> dict[str, Any]:
    saved, to = desk.saved(call.values["ref"]), desk.saved(call.values["to"])
    if not isinstance(desk.adapter, DragAdapter):
        why: str | None = "nothing can be dragged here"
    else:
        why = desk.adapter.cannot_drag(saved.handle, to.handle)
    if saved.handle == to.handle:
        why = "an element cannot be dragged onto itself"
    if why is not None:
        raise Refused(
            Code.ACTION_NOT_SUPPORTED,
            why,
            phase="parse",
            suggestion="look for a button or a menu of the page that does the same",
            target=target_of(saved) | {"to": target_of(to)},
            snapshot_seq=saved.snapshot_seq,
        )
    return await _on_element(desk, call, to)


async def _on_element(desk: Desk, call: Call, to: Saved | None = None) -> dict[str, Any]:
    saved = desk.saved(call.values["ref"])
    action = action_of(call, saved, desk.options.mode)
    newest = desk.state.snapshots.newest
    timeout_ms = call.values["timeout_ms"]
    request = outcome.ActRequest(
        action_no=call.action,
        action=action,
        ref=saved.ref,
        saved=outcome.Saved(saved.node, saved.handle, saved.window),
        snapshot_seq=saved.snapshot_seq,
        newest_snapshot_seq=newest.seq if newest is not None else saved.snapshot_seq,
        policy=desk.policy,
        gate=desk.state.gate,
        run_key=desk.key,
        now_us=desk.now_us(),
        secret=Secret,
        repeat_of=call.values["repeat_of"],
        timeout_ms=desk.options.timeout_ms if timeout_ms is None else timeout_ms,
        mode=desk.options.mode,
        prev_commit_us=desk.records.prev_commit_us,
        to=None if to is None else (to.ref, outcome.Saved(to.node, to.handle, to.window)),
    )
    if to is not None:
        request = replace(request, action=replace(action, to=to.handle))
    return await run_pipeline(desk, call, act(request))


def action_of(call: Call, saved: Saved, mode: Mode) -> Action:
    values = call.values
    value = values.get("value", values.get("text"))
    if call.command == Command.SELECT:
        value = "\n".join(values["options"])
    if call.command == Command.UPLOAD:
        value = json.dumps([file.as_json() for file in values["files"]])
    amount = values.get("amount") or 0
    physical = mode is Mode.HEADED and call.command in _PHYSICAL
    return Action(call.command, value, _key(call, saved, mode), values.get("direction"), amount, physical=physical)


def _key(call: Call, saved: Saved, mode: Mode) -> str | None:
    """Enter, Space and arrows have a default action that can be emulated; other keys are trusted input, which needs a
    mode that may take the focus; arrows are it there. A combination with Enter or Space would be one more way to
    press a button: there is none."""
    asked = call.values.get("key")
    if asked is None:
        return None
    known = (_KEYS | (_ARROWS if mode is Mode.HEADLESS else {})).get(asked.casefold())
    if known is not None:
        return key_of(known) if mode is Mode.HEADED else known
    *held, name = (key := key_of(asked)).split("+")
    unknown = name not in TRUSTED or name in ("enter", "space")
    if unknown or any(m not in _HELD for m in held) or asked.count("+") != len(held):
        why, hint = (
            f"press knows no key {asked[:40]!r}",
            "use Enter, Space, Tab, Escape, an arrow, or ctrl+a and the like",
        )
    elif mode is Mode.HEADLESS:
        why = f"press takes Enter, Space or an arrow in this mode, not {asked[:40]!r}"
        hint = "use set-value or type for text and click for what a click does; other keys need --mode focus_fallback"
    else:
        return key
    raise Refused(
        Code.ACTION_NOT_SUPPORTED,
        why,
        phase="parse",
        suggestion=hint,
        target=target_of(saved),
        snapshot_seq=saved.snapshot_seq,
    )


_REF: Final = Arg("ref", ref, required=True)

_PLAIN: Final = (
    *(Command.CLICK, Command.DOUBLE_CLICK, Command.TRIPLE_CLICK, Command.RIGHT_CLICK, Command.HOVER, Command.FOCUS),
    *(Command.CLEAR, Command.CHECK, Command.UNCHECK, Command.TOGGLE, Command.EXPAND, Command.COLLAPSE),
    Command.SCROLL_TO,
)
"""Commands that need nothing but the element."""
_SCROLLED: Final = (
    Arg("direction", one_of("up", "down", "left", "right"), default="down"),
    Arg("amount", whole_number(1, 100), default=5),
)

COMMANDS: Final = (
    *(Handler(command, (_REF, *COMMON), _on_element, acting=True) for command in _PLAIN),
    Handler(
        Command.TYPE,
        (_REF, Arg("text", text(MAX_TYPED_BYTES, empty=False), required=True), *COMMON),
        _on_element,
        acting=True,
    ),
    Handler(
        Command.SELECT, (_REF, Arg("options", text_lines(64, 1_000), required=True), *COMMON), _on_element, acting=True
    ),
    Handler(Command.DRAG, (_REF, Arg("to", ref, required=True), *COMMON), _drag, acting=True),
    Handler(Command.UPLOAD, (_REF, Arg("files", files_to_upload, required=True), *COMMON), _upload, acting=True),
    Handler(Command.SCROLL, (_REF, *_SCROLLED, *COMMON), _on_element, acting=True),
    Handler(
        Command.SET_VALUE,
        (_REF, Arg("value", text(MAX_VALUE_BYTES), required=True), *COMMON),
        _on_element,
        acting=True,
    ),
    Handler(Command.PRESS, (_REF, Arg("key", text(64, empty=False), required=True), *COMMON), _on_element, acting=True),
)
