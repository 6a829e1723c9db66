"""Pages built in ways that are hard to see through: web components, a frame of another origin, a page of its own tab, a
service worker that does the writing, a line that stays open.

| page | what is special |
| --- | --- |
| `/stock` | each item is a web component with an open shadow root; the held price has a closed one |
| `/courier` | the booking desk is a frame of another site (`localhost` where the office is `127.0.0.1`) |
| `/orders/<id>/slip` | is opened in a tab of its own |
| `/outbox` | a note is sent by the page's service worker, not by the page |
| `/dispatch` | vans are released over a WebSocket, and every open board is told |
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from deskcert_fixture_app import writes
from deskcert_fixture_app.effects import Cause
from deskcert_fixture_app.office import Office
from deskcert_fixture_app.pages import render, templates
from deskcert_fixture_app.writes import Refused

__all__ = ["yard_routes"]

LINE = "/dispatch/live"


def yard_routes(office: Office) -> list[BaseRoute]:
    store, board = office.store, _Board(office)

    async def stock(_: Request) -> Response:
        held = store.all("select * from held_prices where state = 'held' order by id")
        items = store.all("select * from stock order by id")
        low = sum(item["state"] == "low" for item in items)
        return render(office, "stock.html", section="stock", items=items, held=held, low=low)

    async def courier(_: Request) -> Response:
        ready = store.orders("approved")
        # Another site for a browser, and the same machine.
        origin = office.url.replace("//127.0.0.1", "//localhost")
        return render(office, "courier.html", section="courier", orders=ready, origin=origin)

    async def desk(request: Request) -> Response:
        number = request.path_params["id"]
        found = store.order(number)
        if found is None:
            raise HTTPException(404, "There is no such order.")
        booked = store.one("select id from collections where order_id = ?", number)
        html = templates().get_template("courier_desk.html")
        return HTMLResponse(
            html.render(order=found, booked=booked, flash=office.take_flash(), lines=store.lines(number))
        )

    async def slip(request: Request) -> Response:
        number = request.path_params["id"]
        found = store.order(number)
        if found is None:
            raise HTTPException(404, "There is no such order.")
        return HTMLResponse(templates().get_template("slip.html").render(order=found, lines=store.lines(number)))

    async def outbox(_: Request) -> Response:
        return render(office, "outbox.html", section="outbox", notes=store.notes(None))

    async def worker(_: Request) -> Response:
        source = files("deskcert_fixture_app").joinpath("static", "outbox-worker.js").read_text("utf-8")
        return Response(source, media_type="text/javascript", headers={"cache-control": "no-store"})

    async def dispatch(_: Request) -> Response:
        vans = store.all("select * from vans order by id")
        ready = sum(van["state"] == "ready" for van in vans)
        return render(office, "dispatch.html", section="dispatch", vans=vans, ready=ready)

    pages = {"/stock": stock, "/courier": courier, "/courier/desk/{id:int}": desk, "/orders/{id:int}/slip": slip,
             "/outbox": outbox, "/outbox-worker.js": worker, "/dispatch": dispatch}  # fmt: skip
    return [*(Route(path, page) for path, page in pages.items()), WebSocketRoute(LINE, board.line)]


class _Board:
    """Everybody who looks at the dispatch board now."""

    def __init__(self, office: Office) -> None:
        self._office = office
        self._open: set[WebSocket] = set()

    async def line(self, socket: WebSocket) -> None:
        await socket.accept()
        self._open.add(socket)
        via = "proxy" if "deskcert" in socket.headers.get("via", "").lower() else "direct"
        try:
            while True:
                await self._heard(socket, await socket.receive_text(), Cause(f"WS {LINE}", via))
        except WebSocketDisconnect:
            pass
        finally:
            self._open.discard(socket)

    async def _heard(self, socket: WebSocket, text: str, cause: Cause) -> None:
        """`{"release": <van>}`. What was done is told to all, what was refused to who asked."""
        try:
            number = int(json.loads(text)["release"])
        except (ValueError, KeyError, TypeError):
            await socket.send_json({"error": "That was not understood."})
            return
        try:
            done = await self._office.write(writes.release_van, number, {}, cause)
        except Refused as error:
            await socket.send_json({"error": str(error), "van": number})
            return
        await self._tell({"van": number, "state": done.state, "said": done.said})

    async def _tell(self, told: Mapping[str, Any]) -> None:
        await asyncio.gather(*(s.send_json(told) for s in tuple(self._open)), return_exceptions=True)
