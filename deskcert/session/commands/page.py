"""`navigate`: the page command. What guards it stands in the guard's `page`: the address before, the document after."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.adapters.base import WindowState
from deskcert.guard.outcome import NavigateRequest
from deskcert.guard.page import navigate
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, text
from deskcert.session.commands.acting import COMMON, run_pipeline
from deskcert.session.desk import Call, Desk, Handler
from deskcert_schema.errors import AdapterError, ContractError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS"]

_MAX_URL_BYTES: Final = 8_192
_TIMEOUT_MS: Final = 10_000


async def _navigate(desk: Desk, call: Call) -> dict[str, Any]:
    newest = desk.state.snapshots.newest
    timeout_ms = call.values["timeout_ms"]
    request = NavigateRequest(
        action_no=call.action,
        url=call.values["url"],
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


COMMANDS: Final = (Handler(Command.NAVIGATE, (Arg("url", _absolute, required=True), *COMMON), _navigate, acting=True),)
