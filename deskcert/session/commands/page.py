"""The page commands. What guards them stands in the guard's `page`: the address, or the dialog, before; the document
after."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.adapters.base import Entry, PageAdapter, WindowState
from deskcert.guard.outcome import NavigateRequest
from deskcert.guard.page import navigate
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, text
from deskcert.session.commands.acting import COMMON, run_pipeline
from deskcert.session.desk import Call, Desk, Handler
from deskcert_ledger import Secret
from deskcert_schema.errors import AdapterError, ContractError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS", "entry_of", "go"]

_MAX_URL_BYTES: Final = 8_192
_TIMEOUT_MS: Final = 10_000
_MAX_DIALOG: Final = 1_000


async def _navigate(desk: Desk, call: Call) -> dict[str, Any]:
    return await go(desk, call, call.values["url"])


async def _travel(desk: Desk, call: Call) -> dict[str, Any]:
    """back, forward, reload: where it leads is known, and judged, before."""
    entry = await entry_of(desk, call.command)
    if entry is None:
        raise Refused(
            Code.ELEMENT_NOT_FOUND,
            f"there is nothing to go {call.command} to",
            phase="resolve",
            kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE,
        )
    if entry.method not in (None, "GET"):
        raise Refused(
            Code.ACTION_NOT_SUPPORTED,
            f"this page is the answer to a {entry.method}: to reload it would send that again",
            phase="gate",
            suggestion="navigate to its address instead",
        )
    return await go(desk, call, entry.url)


async def entry_of(desk: Desk, command: str) -> Entry | None:
    if not isinstance(desk.adapter, PageAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "there are no pages here", phase="parse")
    try:
        return await desk.adapter.entry(command)
    except AdapterError as exc:
        raise Refused(Code.APP_UNRESPONSIVE, str(exc), phase="resolve", kind=DetailKind.OBSERVATION_INCOMPLETE) from exc


async def _answer(desk: Desk, call: Call) -> dict[str, Any]:
    """The dialog that is open now; with `dialog`, only if it is that one."""
    found, asked = desk.adapter.dialog(), call.values["dialog"]
    if not isinstance(desk.adapter, PageAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "there are no pages here", phase="parse")
    if found is None or (asked is not None and asked != found.id):
        which = "no dialog is open" if found is None else f"the dialog that is open is {found.id}, not {asked}"
        raise Refused(Code.ELEMENT_NOT_FOUND, which, phase="resolve", kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE)
    text_asked = call.values.get("text")
    if text_asked is not None and found.type != "prompt":
        raise Refused(Code.ACTION_NOT_SUPPORTED, f"a {found.type} dialog takes no text", phase="resolve")
    about: dict[str, Any] = {"id": found.id, "type": found.type, "text": found.text[:_MAX_DIALOG]}
    last = desk.state.last_target
    if found.opened_by is not None and last is not None and last["seq"] == found.opened_by:
        about["opener"] = {k: v for k, v in last.items() if k != "seq"}
    return await go(desk, call, (await _window(desk)).url, dialog=about, text=text_asked)


async def go(
    desk: Desk,
    call: Call,
    url: str,
    *,
    dialog: Mapping[str, Any] | None = None,
    text: str | None = None,
    tab: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The guard's pipeline for a page command, and the envelope of its outcome. Raises `Refused`."""
    newest = desk.state.snapshots.newest
    timeout_ms = call.values["timeout_ms"]
    request = NavigateRequest(
        action_no=call.action,
        url=url,
        command=call.command,
        dialog=dialog,
        text=text,
        tab=tab,
        secret=Secret,
        window=await _window(desk),
        newest_snapshot_seq=newest.seq if newest is not None else 0,
        policy=desk.policy,
        gate=desk.state.gate,
        now_us=desk.now_us(),
        repeat_of=call.values["repeat_of"],
        timeout_ms=_TIMEOUT_MS if timeout_ms is None else timeout_ms,
        mode=desk.options.mode,
        prev_commit_us=desk.records.prev_commit_us,
    )
    return await run_pipeline(desk, call, navigate(request))


async def _window(desk: Desk) -> WindowState:
    try:
        return await desk.adapter.window()
    except AdapterError as exc:
        raise Refused(
            Code.APP_UNRESPONSIVE,
            f"the window could not be read: {exc}",
            phase="resolve",
            kind=DetailKind.OBSERVATION_INCOMPLETE,
        ) from exc


def _absolute(name: str, raw: object) -> str:
    """Only addresses of pages: no script, no file, nothing relative to a page that may just be changing."""
    url: str = text(_MAX_URL_BYTES, empty=False)(name, raw)
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not any(c <= " " for c in url)
        _ = parts.port  # raises for a port that is none
    except ValueError:
        good = False
    if not good:
        raise ContractError(f"{name} must be an absolute http or https address, not {url[:80]!r}")
    return url


_DIALOG: Final = Arg("dialog", text(32, empty=False))

COMMANDS: Final = (
    Handler(Command.NAVIGATE, (Arg("url", _absolute, required=True), *COMMON), _navigate, acting=True),
    *(Handler(c, COMMON, _travel, acting=True) for c in (Command.BACK, Command.FORWARD, Command.RELOAD)),
    Handler(
        Command.DIALOG_ACCEPT,
        (_DIALOG, Arg("text", text(_MAX_DIALOG)), *COMMON),
        _answer,
        acting=True,
        through_dialog=True,
    ),
    Handler(Command.DIALOG_DISMISS, (_DIALOG, *COMMON), _answer, acting=True, through_dialog=True),
)
