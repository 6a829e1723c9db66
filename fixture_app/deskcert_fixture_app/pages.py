"""The pages: server-rendered, complete without a script; the script only sends writes and applies perturbations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from deskcert_fixture_app.lab import ORDINARY, VARIANTS
from deskcert_fixture_app.office import Office
from deskcert_fixture_app.store import day, money

__all__ = ["compile_templates", "page_routes", "render", "templates"]

ORDER_STATES = ("waiting", "approved", "shipped", "cancelled")
VIRTUAL_FROM = 60
"""More customers than this are shown in a list that holds only the rows in view."""
VIRTUAL_ROWS = 20


@cache
def templates() -> Environment:
    env = Environment(
        loader=PackageLoader("deskcert_fixture_app"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {"money": money, "day": day}
    return env


def compile_templates() -> None:
    """All of them at once, so that a process forked from this one finds them compiled."""
    for name in templates().list_templates():
        templates().get_template(name)


def render(office: Office, template: str, *, section: str, status: int = 200, **values: Any) -> Response:
    store = office.store
    values |= {
        "section": section,
        "page_id": office.bus.serve_page(),
        "page_faults": office.faults.for_page(),
        "flash": office.take_flash(),
        "settings": store.settings(),
        "activity": store.activity(),
        "account": store.account_state(),
        "counts": {
            "orders": _count(office, "orders where status = 'waiting'"),
            "payouts": _count(office, "payouts where status != 'sent'"),
            "messages": _count(office, "messages where handled = 0"),
            "stock": _count(office, "stock where state = 'low'"),
            "dispatch": _count(office, "vans where state = 'ready'"),
        },
    }
    html = templates().get_template(template).render(**values)
    return HTMLResponse(html, status, {"cache-control": "no-store"})


def _count(office: Office, what: str) -> int:
    row = office.store.one(f"select count(*) n from {what}")  # noqa: S608 - called with the three texts above
    return int(row["n"]) if row else 0


def _found[T](row: T | None, what: str) -> T:
    if row is None:
        raise HTTPException(404, f"There is no such {what}.")
    return row


def page_routes(office: Office) -> list[Route]:
    store = office.store

    async def overview(_: Request) -> Response:
        waiting = store.orders("waiting")
        return render(office, "overview.html", section="overview", orders=waiting[:5], total=len(waiting),
                      value=sum(o["total_cents"] for o in waiting))  # fmt: skip

    async def orders(request: Request) -> Response:
        state = request.query_params.get("status")
        chosen = state if state in ORDER_STATES else None
        return render(office, "orders.html", section="orders", orders=store.orders(chosen), chosen=chosen,
                      states=ORDER_STATES)  # fmt: skip

    async def order(request: Request) -> Response:
        number = request.path_params["id"]
        found = _found(store.order(number), "order")
        return render(office, "order.html", section="orders", order=found, lines=store.lines(number),
                      notes=store.notes(number))  # fmt: skip

    async def customers(_: Request) -> Response:
        found = store.all("select * from customers order by id")
        virtual = len(found) > VIRTUAL_FROM
        return render(office, "customers.html", section="customers", size=len(found), virtual=virtual,
                      customers=found[:VIRTUAL_ROWS] if virtual else found)  # fmt: skip

    async def customer(request: Request) -> Response:
        found = _found(store.one("select * from customers where id = ?", request.path_params["id"]), "customer")
        bought = store.all("select * from orders where customer_id = ? order by id", found["id"])
        return render(office, "customer.html", section="customers", customer=found, orders=bought)

    async def payouts(_: Request) -> Response:
        return render(office, "payouts.html", section="payouts", payouts=store.all("select * from payouts order by id"))

    async def payout(request: Request) -> Response:
        found = _found(store.one("select * from payouts where id = ?", request.path_params["id"]), "payout")
        return render(office, "payout.html", section="payouts", payout=found)

    async def messages(_: Request) -> Response:
        return render(office, "messages.html", section="messages",
                      messages=store.all("select * from messages order by id"))  # fmt: skip

    async def message(request: Request) -> Response:
        number = request.path_params["id"]
        found = _found(store.one("select * from messages where id = ?", number), "message")
        sent = store.all("select * from replies where message_id = ? order by id", number)
        return render(office, "message.html", section="messages", message=found, replies=sent)

    async def notes(_: Request) -> Response:
        return render(office, "notes.html", section="notes", notes=store.notes(None))

    async def files(_: Request) -> Response:
        return render(office, "files.html", section="files", files=store.all("select * from files order by id"))

    async def settings(_: Request) -> Response:
        return render(office, "settings.html", section="settings")

    async def lab_names(_: Request) -> Response:
        return render(office, "lab_names.html", section="lab", variants=VARIANTS)

    async def lab_plain(_: Request) -> Response:
        return render(office, "lab_plain.html", section="lab", groups=ORDINARY)

    async def live(request: Request) -> Response:
        events = office.bus.events(request.query_params.get("page", ""))
        return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})

    async def answered(request: Request) -> Response:
        given = request.query_params
        office.bus.answered(given.get("ask", ""), applied=given.get("applied") == "1", why=given.get("why"))
        return Response(status_code=204, headers={"cache-control": "no-store"})

    async def root(_: Request) -> Response:
        return RedirectResponse("/overview", status_code=303)

    table: dict[str, Callable[[Request], Any]] = {
        "/": root, "/overview": overview, "/orders": orders, "/orders/{id:int}": order, "/customers": customers,
        "/customers/{id:int}": customer, "/payouts": payouts, "/payouts/{id:int}": payout, "/messages": messages,
        "/messages/{id:int}": message, "/notes": notes, "/files": files, "/settings": settings, "/lab/names": lab_names,
        "/lab/plain-names": lab_plain, "/live": live, "/live/answer": answered,
    }  # fmt: skip
    rest = [Route("/api/customers", _slice(office))]
    return [Route(path, endpoint) for path, endpoint in table.items()] + rest


def _slice(office: Office) -> Callable[[Request], Any]:
    """Rows for the list of customers that holds only those in view: `?from=<index>&count=<n>`, at most 60."""

    async def handle(request: Request) -> Response:
        try:
            first, count = (int(request.query_params.get(k, d)) for k, d in (("from", "0"), ("count", "20")))
        except ValueError:
            raise HTTPException(400, "from and count are whole numbers") from None
        found = office.store.all(
            "select * from customers order by id limit ? offset ?", min(max(count, 0), 60), max(first, 0)
        )
        html = templates().get_template("_customer_rows.html").render(customers=found, first=max(first, 0))
        return HTMLResponse(html)

    return handle
