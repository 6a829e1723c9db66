"""`tabs`: the pages that are open; `tab-focus` and `tab-close`: which of them the session guards."""

from __future__ import annotations

from typing import Any, Final

from deskcert.adapters.base import PageAdapter, Tab, TabAdapter
from deskcert.contract.envelope import success
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, text
from deskcert.session.commands.acting import COMMON
from deskcert.session.commands.observation import not_observed
from deskcert.session.commands.page import go
from deskcert.session.desk import Call, Desk, Handler
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS", "open_tabs"]


async def open_tabs(desk: Desk) -> tuple[Tab, ...]:
    if not isinstance(desk.adapter, PageAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "there are no pages here", phase="parse")
    try:
        return await desk.adapter.tabs()
    except AdapterError as exc:
        raise not_observed(exc) from exc


async def _tabs(desk: Desk, _call: Call) -> dict[str, Any]:
    found = await open_tabs(desk)
    tabs = [{"id": t.id, "title": t.title, "url": t.url, "guarded": t.guarded} for t in found]
    return success(Command.TABS, {"tabs": tabs})


async def _tab(desk: Desk, call: Call) -> dict[str, Any]:
    asked = call.values["tab"]
    if not isinstance(desk.adapter, TabAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "this session has one tab, and guards no other", phase="parse")
    found = await open_tabs(desk)
    tab = next((t for t in found if t.id == asked), None)
    if tab is None:
        raise Refused(
            Code.WINDOW_NOT_FOUND,
            f"there is no tab {asked}",
            phase="resolve",
            kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE,
            suggestion="tabs shows those that are open",
        )
    if call.command == Command.TAB_CLOSE and len(found) == 1:
        raise Refused(
            Code.ACTION_NOT_SUPPORTED,
            "this is the only tab; it is closed with the session",
            phase="resolve",
            suggestion="navigate to another address, or make your claim with finish",
        )
    return await go(desk, call, tab.url, tab={"id": tab.id, "title": tab.title})


_TAB: Final = Arg("tab", text(64, empty=False), required=True)

COMMANDS: Final = (
    Handler(Command.TABS, (), _tabs),
    *(Handler(c, (_TAB, *COMMON), _tab, acting=True) for c in (Command.TAB_FOCUS, Command.TAB_CLOSE)),
)
