"""Files for a file chooser. Only the browser can put them there, so this is no single task: E is compared just before,
and what was chosen is read back by name and size after."""

from __future__ import annotations

import json
from typing import Any

from deskcert.adapters.base import Action, Dispatch, DispatchEnd, PointHook
from deskcert.adapters.web.channel import FAILURES, Channel, ChannelLost, ChannelRefused, ChannelTimeout
from deskcert.adapters.web.dispatch import Signals, reported, request_of, written
from deskcert.adapters.web.script import call_function
from deskcert.contract.evidence import Evidence

__all__ = ["upload"]


async def upload(
    channel: Channel,
    signals: Signals,
    *,
    context: int,
    node: str,
    action: Action,
    expected: Evidence,
    budget_ms: int,
    at: PointHook,
) -> Dispatch:
    async def call(function: str, *args: str, by_value: bool = True) -> Any:
        params = {
            "functionDeclaration": call_function(function),
            "executionContextId": context,
            "arguments": [{"value": a} for a in args],
            "returnByValue": by_value,
        }
        return (await channel.call("Runtime.callFunctionOn", params, budget_ms=budget_ms))["result"]

    try:
        chooser = (await call("node", node, by_value=False)).get("objectId")
        armed = json.loads((await call("arm", node, json.dumps(request_of(signals.number, action, expected))))["value"])
    except FAILURES as error:
        return Dispatch(DispatchEnd.NOT_SENT, reached=False, error=str(error))
    if armed["end"] is not None:
        return reported(armed, signals, expected)
    paths = [file["path"] for file in json.loads(action.value or "[]")]
    task = channel.start("DOM.setFileInputFiles", {"objectId": chooser, "files": paths})
    await written()
    await at("dispatched")
    end, why = DispatchEnd.COMPLETED, None
    try:
        await channel.answer(task, budget_ms=budget_ms)
    except ChannelRefused as error:
        end, why = DispatchEnd.NOT_SENT, str(error)
    except (ChannelTimeout, ChannelLost) as error:
        end, why = DispatchEnd.NO_ANSWER, str(error)
    try:
        found = reported(json.loads((await call("disarm"))["value"]), signals, expected)
    except FAILURES:
        return Dispatch(end, bool(signals.reached), dialog=signals.dialog, error=why)
    if found.reached:
        await at("reached")
    return Dispatch(end, found.reached, found.events_sent, hit=found.hit, dialog=signals.dialog, error=why)
