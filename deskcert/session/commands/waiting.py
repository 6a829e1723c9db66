"""`wait`: until an element, a text, a navigation, a dialog or the network is as asked. It looks and touches nothing.

What could not be read is no answer: an incomplete look never says that a text is gone, and a look that comes too late
does not count. The waits that look at the page take no snapshot, so no ref comes or goes by them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from deskcert.adapters.base import ObserveOptions, PageAdapter
from deskcert.contract.envelope import success
from deskcert.contract.evidence import ABSENT, Known
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, boolean, one_of, ref, text, whole_number
from deskcert.session.commands.observation import live, not_observed
from deskcert.session.desk import Call, Desk, Handler
from deskcert.session.matching import Query, run
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS"]

_EVERY_MS: Final = 100
_TIMEOUT_MS: Final = 10_000
_LOOK_MS: Final = 3_000
_LEAST_LOOK_MS: Final = 500
"""What one look may take: no longer than the wait has left, but long enough to see something."""
_MODES: Final = ("ms", "ref", "text", "text_gone", "navigation", "dialog", "download", "network_quiet_ms")
_PREDICATES: Final = (
    "exists",
    "gone",
    "visible",
    "enabled",
    "disabled",
    "checked",
    "unchecked",
    "expanded",
    "collapsed",
    "focused",
)
_STATES: Final = {"disabled": ("enabled", False), "unchecked": ("checked", False), "collapsed": ("expanded", False)}

type Look = Callable[[], Awaitable[str | None]]
"""None: it is as asked. Otherwise what is seen instead, in words."""


async def _wait(desk: Desk, call: Call) -> dict[str, Any]:
    values = call.values
    chosen = [m for m in _MODES if values[m] not in (None, False)]
    if len(chosen) != 1:
        raise Refused(Code.INVALID_ARGS, f"wait takes exactly one of {', '.join(_MODES)}", phase="parse")
    began, mode = desk.now_us(), chosen[0]
    if mode == "ms":
        await asyncio.sleep(values["ms"] / 1_000)
    else:
        await _until(desk, _look_of(desk, call, mode), mode, began, values["timeout_ms"])
    data = {"waited_for": mode, "elapsed_ms": (desk.now_us() - began) // 1_000}
    if mode == "dialog" and (dialog := desk.adapter.dialog()) is not None:
        data["dialog"] = {"id": dialog.id, "type": dialog.type, "text": dialog.text[:1_000]}
    if mode == "download":
        data["downloads"] = desk.happenings.ended_since()
    return success(Command.WAIT, data)


async def _until(desk: Desk, look: Look, mode: str, began: int, timeout_ms: int) -> None:
    """A first look always; then one every 100 ms. Raises `Refused` with what was seen last."""
    while True:
        seen = await look()
        elapsed = (desk.now_us() - began) // 1_000
        if seen is None and (elapsed <= timeout_ms or timeout_ms == 0):
            return
        if elapsed + _EVERY_MS > timeout_ms:
            last = seen or "it came too late"
            raise Refused(
                Code.TIMEOUT,
                f"{mode.replace('_', ' ')}: not within {timeout_ms} ms ({last})",
                phase="resolve",
                kind=DetailKind.WAIT_TIMEOUT,
                details={"timeout_ms": timeout_ms, "elapsed_ms": elapsed, "last_seen": last},
            )
        await asyncio.sleep(_EVERY_MS / 1_000)


def _look_of(desk: Desk, call: Call, mode: str) -> Look:
    values, begun = call.values, desk.now_us()

    def left() -> int:
        timeout_ms: int = values["timeout_ms"]
        if not timeout_ms:
            return _LOOK_MS
        return min(_LOOK_MS, max(_LEAST_LOOK_MS, timeout_ms - (desk.now_us() - begun) // 1_000))

    match mode:
        case "ref":
            return lambda: _element(desk, call, left())
        case "text":
            return lambda: _text(desk, values["text"], left())
        case "text_gone":
            return lambda: _text_gone(desk, values["text_gone"], left())
        case "navigation":
            return _navigated(desk)
        case "dialog":
            return lambda: _dialog(desk)
        case "download":
            return lambda: _download(desk)
        case _:
            began = desk.now_us()
            return lambda: _quiet(desk, values["network_quiet_ms"], began)


async def _element(desk: Desk, call: Call, budget_ms: int) -> str | None:
    wanted = call.values["predicate"]
    try:
        evidence = await live(desk, desk.saved(call.values["ref"]), call, budget_ms=budget_ms)
    except Refused as gone:
        if gone.code is not Code.STALE_REF:
            return gone.message
        if wanted == "gone":
            return None
        raise  # it never comes back: another element with its name is another element
    if wanted in ("exists", "gone"):
        return None if wanted == "exists" else "it is still there"
    state, holds = _STATES.get(wanted, (wanted, True))
    found = evidence.states.get(state, ABSENT)
    if found == Known(holds):
        return None
    return f"its state {state} is {str(found.value).lower() if isinstance(found, Known) else 'not known'}"


async def _seen(desk: Desk, wanted: str, budget_ms: int) -> tuple[bool, bool | None]:
    """Whether the text is there, and whether the look was complete; None: nothing could be seen at all."""
    try:
        raw = await desk.adapter.observe(ObserveOptions(budget_ms=budget_ms))
    except AdapterError as exc:
        if exc.kind == DetailKind.PENDING_DIALOG:
            raise not_observed(exc) from exc
        return False, None
    found = run(Query(texts={"text": wanted}), raw.nodes, complete=raw.complete)
    values = run(Query(texts={"value": wanted}), raw.nodes, complete=raw.complete)
    return bool(found.matches or values.matches), found.complete


async def _text(desk: Desk, wanted: str, budget_ms: int) -> str | None:
    there, complete = await _seen(desk, wanted, budget_ms)
    if there:
        return None
    return "the page could not be read" if complete is None else "the text is not seen"


async def _text_gone(desk: Desk, wanted: str, budget_ms: int) -> str | None:
    there, complete = await _seen(desk, wanted, budget_ms)
    if there:
        return "the text is still there"
    return None if complete else "the page was not read completely"


def _navigated(desk: Desk) -> Look:
    """Until the document is another one than that of the newest snapshot, or than now where there is none."""
    newest = desk.state.snapshots.newest
    before: list[tuple[str, str]] = [(newest.window.document, newest.window.url)] if newest is not None else []

    async def look() -> str | None:
        try:
            window = await desk.adapter.window()
        except AdapterError as exc:
            return str(exc)
        now = (window.document, window.url)
        if not before:
            before.append(now)
        return None if now != before[0] else "the page is still the same"

    return look


async def _dialog(desk: Desk) -> str | None:
    return None if desk.adapter.dialog() is not None else "no dialog is open"


async def _download(desk: Desk) -> str | None:
    """Until one has come to its end since the newest action began, and none is under way."""
    found = desk.happenings
    if found.under_way:
        return f"{found.under_way} downloads are under way"
    return None if found.ended_since() else "no download has begun"


async def _quiet(desk: Desk, wanted_ms: int, began: int) -> str | None:
    """Quiet from the beginning of the wait on: what was just done may not have asked for anything yet."""
    if not isinstance(desk.adapter, PageAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "there are no pages here", phase="parse")
    under_way, quiet_us = desk.adapter.network()
    if under_way:
        return f"{under_way} requests are under way"
    quiet_us = min(quiet_us, desk.now_us() - began)
    return None if quiet_us >= wanted_ms * 1_000 else f"quiet for {quiet_us // 1_000} ms"


COMMANDS: Final = (
    Handler(
        Command.WAIT,
        (
            Arg("ms", whole_number(1, 60_000)),
            Arg("ref", ref),
            Arg("predicate", one_of(*_PREDICATES), default="exists"),
            Arg("text", text(1_000, empty=False)),
            Arg("text_gone", text(1_000, empty=False)),
            Arg("navigation", boolean, default=False),
            Arg("dialog", boolean, default=False),
            Arg("download", boolean, default=False),
            Arg("network_quiet_ms", whole_number(1, 60_000)),
            Arg("timeout_ms", whole_number(0, 60_000), default=_TIMEOUT_MS),
        ),
        _wait,
    ),
)
