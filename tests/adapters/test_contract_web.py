"""The adapter contract on a real page. The server's log is the account of its effects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import unquote

import pytest
import pytest_asyncio
from contract import AdapterContract
from web_pages import Witness, nowhere, script

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser

PAGE = """<!doctype html><title>Orders</title>
<script>
const tell = what => fetch('/hit?' + encodeURIComponent(what), {method: 'POST', keepalive: true});
const hang = ms => { const end = Date.now() + ms; while (Date.now() < end); };
</script>
<button id=Buy onclick="tell('buy')">Buy</button>
<button id=Hang onclick="tell('hang'); hang(4000)">Hang</button>
<button id=Closed disabled>Closed</button>
<table><tr><th scope=row>Order 1001</th><td><button onclick="approve(this)">Approve</button></td></tr>
<tr><th scope=row>Order 1002</th><td><button onclick="approve(this)">Approve</button></td></tr></table>
<label>Note <input oninput="tell('note ' + value)"></label>
<label>Password <input type=password value=hunter2></label>
<script>const approve = b => tell('approve ' + b.closest('tr').cells[0].textContent.split(' ')[1]);</script>"""

ORDERS = {
    "rename": "document.getElementById(%(name)s).textContent = %(to)s",
    "enable": "document.getElementById(%(name)s).disabled = false",
    "disable": "document.getElementById(%(name)s).disabled = true",
    "remove": "document.getElementById(%(name)s).remove()",
    "recycle": "{const [a, b] = document.querySelectorAll('th'); [a.textContent, b.textContent] = "
    "[b.textContent, a.textContent]}",
    "freeze": "setTimeout(hang, 0, 2500)",
}


class WebStage:
    def __init__(self, adapter: WebAdapter, witness: Witness) -> None:
        self.adapter, self.witness = adapter, witness

    async def show(self) -> None:
        self.witness.pages["/page"] = PAGE
        await self.adapter.navigate(self.witness.url + "/page", number=0, budget_ms=15_000, at=nowhere)

    async def effects(self) -> list[str]:
        return [unquote(path.partition("?")[2]) for method, path, _ in self.witness.wrote()]

    async def until(self, effect: str) -> bool:
        def there(log: list[tuple[str, str, str]]) -> bool:
            return any(unquote(path.partition("?")[2]) == effect for _, path, _ in log)

        return await asyncio.to_thread(self.witness.wait_for, there)

    async def do(self, what: str, name: str = "", to: str = "") -> None:
        if what == "restart":
            await self.show()
        elif what == "thaw":
            await script(self.adapter, "0")
        else:
            await script(self.adapter, ORDERS[what] % {"name": json.dumps(name), "to": json.dumps(to)} + ";0")


@pytest.mark.web
@pytest.mark.asyncio(loop_scope="module")
class TestWeb(AdapterContract):
    @pytest_asyncio.fixture(loop_scope="module")
    async def stage(self, browser: WebBrowser, witness: Witness) -> AsyncIterator[WebStage]:
        adapter = await browser.open()
        opened = WebStage(adapter, witness)
        await opened.show()
        yield opened
        await adapter.close()
