"""`screenshot`, with the target outlined where one is named.

A picture shows whatever the page shows, so it stands in no record and is given to the agent alone.
"""

from __future__ import annotations

from typing import Any, Final

from deskcert.adapters.base import PictureAdapter
from deskcert.contract.envelope import success
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, ref
from deskcert.session.commands.observation import live, not_observed
from deskcert.session.desk import Call, Desk, Handler
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, Command

__all__ = ["COMMANDS"]

_BUDGET_MS: Final = 5_000
_MOST_CHARACTERS: Final = 900_000
"""An answer is one line of at most 1 MiB."""


async def _screenshot(desk: Desk, call: Call) -> dict[str, Any]:
    if not isinstance(desk.adapter, PictureAdapter):
        raise Refused(Code.PLATFORM_NOT_SUPPORTED, "no pictures can be taken here", phase="parse")
    box, node = None, ""
    if call.values["ref"] is not None:
        evidence = await live(desk, desk.saved(call.values["ref"]), call)
        box, node = evidence.box, evidence.node
    try:
        data = await desk.adapter.picture(box, node=node, budget_ms=_BUDGET_MS)
    except AdapterError as exc:
        raise not_observed(exc) from exc
    if len(data) > _MOST_CHARACTERS:
        raise Refused(Code.ACTION_FAILED, "the picture is longer than an answer may be", phase="resolve")
    return success(Command.SCREENSHOT, {"format": "png", "data": data, "outlined": box is not None})


COMMANDS: Final = (Handler(Command.SCREENSHOT, (Arg("ref", ref),), _screenshot),)
