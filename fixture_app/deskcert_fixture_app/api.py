"""The addresses that change data: JSON for the pages' scripts, classic form posts for notes and settings."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from deskcert_fixture_app import writes
from deskcert_fixture_app.effects import Cause
from deskcert_fixture_app.office import Office
from deskcert_fixture_app.writes import Refused, Write

__all__ = ["api_routes"]

JSON_WRITES: Mapping[str, Write] = {
    "/api/orders/{id:int}/approve": writes.approve_order,
    "/api/orders/{id:int}/cancel": writes.cancel_order,
    "/api/orders/{id:int}/ship": writes.ship_order,
    "/api/payouts/{id:int}/approve": writes.approve_payout,
    "/api/payouts/{id:int}/send": writes.send_payout,
    "/api/payouts/{id:int}/reference": writes.save_reference,
    "/api/messages/{id:int}/reply": writes.send_message,
    "/api/messages/{id:int}/handled": writes.handle_message,
    "/api/files/{id:int}/archive": writes.archive_file,
    "/api/stock/{id:int}/reorder": writes.reorder_item,
    "/api/stock/{id:int}/price": writes.release_price,
    "/api/outbox": writes.save_note,
    "/api/exports/customers": writes.export_customers,
    "/api/account/delete": writes.delete_account,
    "/api/lab/delete-account": writes.delete_account,
    "/api/lab/confirm-payment": writes.confirm_payment,
    "/api/lab/press": writes.press_ordinary,
}
FORM_WRITES: Mapping[str, tuple[Write, str]] = {
    "/notes": (writes.save_note, "/notes"),
    "/orders/{id:int}/notes": (writes.save_note, "/orders/{id}"),
    "/courier/desk/{id:int}": (writes.book_collection, "/courier/desk/{id}"),
    "/settings": (writes.save_settings, "/settings"),
    "/lab/delete-account": (writes.delete_account, "/lab/names"),
}
"""Path to what it does and where the browser is sent afterwards."""

MAX_BODY = 100_000


def cause_of(request: Request) -> Cause:
    """The second line names itself in the `Via` header; everything else came directly."""
    via = "proxy" if "deskcert" in request.headers.get("via", "").lower() else "direct"
    return Cause(f"{request.method} {request.url.path}", via)


async def _text(request: Request) -> str:
    body = await request.body()
    if len(body) > MAX_BODY:
        raise Refused(413, "That is too long.")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise Refused(400, "The text is not UTF-8.") from None


async def _json(request: Request) -> Mapping[str, str]:
    try:
        found = json.loads(await _text(request) or "{}")
    except ValueError:
        raise Refused(400, "The body is not JSON.") from None
    if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
        raise Refused(400, "The body must be an object of texts.")
    return found


def api_routes(office: Office) -> list[Route]:
    json_routes = [Route(path, _json_write(office, write), methods=["POST"]) for path, write in JSON_WRITES.items()]
    form_routes = [
        Route(path, _form_write(office, write, back), methods=["POST"]) for path, (write, back) in FORM_WRITES.items()
    ]
    return json_routes + form_routes


def _json_write(office: Office, write: Write) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        try:
            done = await office.write(write, request.path_params.get("id", 0), await _json(request), cause_of(request))
        except Refused as error:
            return JSONResponse({"error": str(error)}, status_code=error.status)
        return JSONResponse({"said": done.said, "state": done.state, "id": done.id})

    return handle


def _form_write(office: Office, write: Write, back: str) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        identity = request.path_params.get("id", 0)
        where = back.format(id=identity)
        try:
            body = dict(parse_qsl(await _text(request), keep_blank_values=True))
            done = await office.write(write, identity, body, cause_of(request))
        except Refused as error:
            office.flash = ("bad", str(error))
        else:
            office.flash = ("good", done.said)
        return RedirectResponse(where, status_code=303)

    return handle
