"""A record of the proxy and the browser's word about the same request meet, whichever comes first."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from deskcert_ledger import Receipt, Secret
from deskcert_proxy.joining import Joining
from deskcert_schema.vocabulary import NetworkHow

URL = "http://127.0.0.1/api/orders/1"
RECORD = {"method": "POST", "url": Secret(URL), "how": "none"}


async def completed(joining: Joining) -> Any:
    answer = await asyncio.to_thread(joining.complete, "net.allowed", dict(RECORD))
    assert isinstance(answer, Future)
    return await asyncio.wait_for(asyncio.wrap_future(answer), 10)


async def test_record_that_comes_first_waits_for_the_browsers_word() -> None:
    joining = Joining(asyncio.get_running_loop())
    waiting = asyncio.create_task(completed(joining))
    while not any(joining._waiting.values()):  # noqa: ASYNC110 - no event tells of the other thread
        await asyncio.sleep(0)
    joining.saw("POST", URL, NetworkHow.CAUSAL, 7)
    found = await waiting
    assert (found["how"], found["intent"]) == ("causal", 7)


async def test_record_without_a_word_is_put_down_to_the_open_span_and_else_to_nobody() -> None:
    class Ledger:
        def submit(self, *_: Any, **__: Any) -> Future[Receipt]:
            done: Future[Receipt] = Future()
            done.set_result(Receipt(5, 1))
            return done

    joining = Joining(asyncio.get_running_loop())
    assert (await completed(joining))["how"] == "none"
    joining.watching(Ledger()).submit("action.intent", {"action": 1})
    found = await completed(joining)
    assert (found["how"], found["intent"]) == ("window", 5)


async def test_first_page_is_no_action() -> None:
    joining = Joining(asyncio.get_running_loop())
    joining.saw("POST", URL, NetworkHow.CAUSAL, 0)
    assert (await completed(joining))["how"] == "none"
