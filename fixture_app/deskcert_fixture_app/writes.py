"""Everything that changes data, one function a kind of effect: the rules of the business, inside one transaction.

A function returns `Done` (what the effect log, the activity list and the answer say) or raises `Refused`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deskcert_fixture_app.seed import TODAY
from deskcert_fixture_app.store import Row, Store, money

__all__ = ["Done", "Refused", "Write", "commit"]


@dataclass(frozen=True, slots=True)
class Done:
    kind: str
    id: int | str
    said: str
    """One sentence for the activity list and the toast."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None
    """The new state of the thing, where it has one."""


class Refused(Exception):
    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        """HTTP status: 404 no such thing, 409 not in this state, 422 a field is wrong."""


type Write = Callable[[Store, int, Mapping[str, str]], Done]


def commit(store: Store, write: Write, identity: int, body: Mapping[str, str]) -> Done:
    with store.transaction():
        done = write(store, identity, body)
        store.run("insert into activity (at, text) values (?, ?)", f"{TODAY.isoformat()} 09:41", done.said)
    return done


def _order(store: Store, number: int, allowed: tuple[str, ...], verb: str) -> Row:
    found = store.order(number)
    if found is None:
        raise Refused(404, f"There is no order {number}.")
    if found["status"] not in allowed:
        raise Refused(409, f"Order {number} is {found['status']} and cannot be {verb}.")
    return found


def approve_order(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = _order(store, number, ("waiting",), "approved")
    store.run("update orders set status = 'approved' where id = ?", number)
    fields = {"total_cents": found["total_cents"]}
    return Done("order.approved", number, f"Order {number} was approved", fields, "approved")


def cancel_order(store: Store, number: int, _: Mapping[str, str]) -> Done:
    _order(store, number, ("waiting", "approved"), "cancelled")
    store.run("update orders set status = 'cancelled' where id = ?", number)
    return Done("order.cancelled", number, f"Order {number} was cancelled", state="cancelled")


def ship_order(store: Store, number: int, _: Mapping[str, str]) -> Done:
    _order(store, number, ("approved",), "shipped")
    store.run("update orders set status = 'shipped' where id = ?", number)
    return Done("order.shipped", number, f"Order {number} was shipped", state="shipped")


def _payout(store: Store, number: int, allowed: tuple[str, ...], verb: str) -> Row:
    found = store.one("select * from payouts where id = ?", number)
    if found is None:
        raise Refused(404, f"There is no payout {number}.")
    if found["status"] not in allowed:
        raise Refused(409, f"Payout {number} is {found['status']} and cannot be {verb}.")
    return found


def approve_payout(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = _payout(store, number, ("waiting",), "approved")
    store.run("update payouts set status = 'approved' where id = ?", number)
    fields = {"amount_cents": found["amount_cents"]}
    return Done("payout.approved", number, f"Payout {number} was approved", fields, "approved")


def send_payout(store: Store, number: int, body: Mapping[str, str]) -> Done:
    found = _payout(store, number, ("approved",), "sent")
    reference = body.get("reference", found["reference"])
    store.run("update payouts set status = 'sent', reference = ? where id = ?", reference, number)
    fields = {"amount_cents": found["amount_cents"], "reference": reference}
    return Done("payout.sent", number, f"Payout {number} over {money(found['amount_cents'])} was sent", fields, "sent")


def save_reference(store: Store, number: int, body: Mapping[str, str]) -> Done:
    _payout(store, number, ("waiting", "approved"), "changed")
    reference = body.get("reference", "").strip()
    store.run("update payouts set reference = ? where id = ?", reference, number)
    said = f"The reference of payout {number} was saved"
    return Done("payout.reference_saved", number, said, {"reference": reference})


def send_message(store: Store, number: int, body: Mapping[str, str]) -> Done:
    found = store.one("select * from messages where id = ?", number)
    text = body.get("body", "").strip()
    if found is None:
        raise Refused(404, f"There is no message {number}.")
    if not text:
        raise Refused(422, "Write something before you send the reply.")
    reply = store.run("insert into replies (message_id, body) values (?, ?)", number, text)
    fields = {"message": number, "to": found["email"], "body": text, "reply": reply}
    return Done("message.sent", number, f"A reply to {found['sender']} was sent", fields)


def handle_message(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = store.one("select * from messages where id = ?", number)
    if found is None:
        raise Refused(404, f"There is no message {number}.")
    if found["handled"]:
        raise Refused(409, f"Message {number} is already handled.")
    store.run("update messages set handled = 1 where id = ?", number)
    return Done("message.handled", number, f"Message {number} was marked as handled", state="handled")


def save_note(store: Store, order: int, body: Mapping[str, str]) -> Done:
    text = body.get("body", "").strip()
    if not text:
        raise Refused(422, "Write something before you save the note.")
    if order and store.order(order) is None:
        raise Refused(404, f"There is no order {order}.")
    insert = "insert into notes (order_id, author, body, written) values (?, 'You', ?, ?)"
    number = store.run(insert, order or None, text, TODAY.isoformat())
    about = f"A note on order {order} was saved" if order else "A team note was saved"
    return Done("note.saved", number, about, {"order": order or None, "body": text})


SETTINGS = ("company", "reply_to", "theme", "approval_limit", "weekly_report")


def save_settings(store: Store, _: int, body: Mapping[str, str]) -> Done:
    given = {key: body.get(key, "off" if key == "weekly_report" else "").strip() for key in SETTINGS}
    if not given["company"] or "@" not in given["reply_to"] or not given["approval_limit"].isdecimal():
        raise Refused(422, "Company, a reply address with an @ and a whole approval limit are needed.")
    if given["theme"] not in ("system", "light", "dark"):
        raise Refused(422, "The theme is system, light or dark.")
    for key, value in given.items():
        store.run("insert or replace into settings values (?, ?)", key, value)
    return Done("settings.saved", "settings", "The settings were saved", given)


def export_customers(store: Store, _: int, __: Mapping[str, str]) -> Done:
    number = store.run("insert into exports (what) values ('customers')")
    return Done("export.created", number, "An export of all customers was created", {"what": "customers"})


def archive_file(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = store.one("select * from files where id = ?", number)
    if found is None:
        raise Refused(404, f"There is no file {number}.")
    if found["state"] != "kept":
        raise Refused(409, f"File {number} is already archived.")
    store.run("update files set state = 'archived' where id = ?", number)
    return Done("file.archived", number, f"File {number} was archived", {"name": found["name"]}, "archived")


def reorder_item(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = store.one("select * from stock where id = ?", number)
    if found is None:
        raise Refused(404, f"There is no item {number}.")
    if found["state"] != "low":
        raise Refused(409, f"Item {number} does not need to be reordered.")
    store.run("update stock set state = 'reordered' where id = ?", number)
    return Done("stock.reordered", number, f"Item {number} was reordered", {"sku": found["sku"]}, "reordered")


def release_price(store: Store, number: int, _: Mapping[str, str]) -> Done:
    if store.one("select * from held_prices where id = ? and state = 'held'", number) is None:
        raise Refused(409, f"No price of item {number} is held.")
    store.run("update held_prices set state = 'released' where id = ?", number)
    return Done("price.released", number, f"The price of item {number} was released", state="released")


def release_van(store: Store, number: int, _: Mapping[str, str]) -> Done:
    found = store.one("select * from vans where id = ?", number)
    if found is None:
        raise Refused(404, f"There is no van {number}.")
    if found["state"] != "ready":
        raise Refused(409, f"Van {number} is {found['state']} and cannot be released.")
    store.run("update vans set state = 'released' where id = ?", number)
    return Done("van.released", number, f"Van {number} was released", {"route": found["route"]}, "released")


def book_collection(store: Store, number: int, _: Mapping[str, str]) -> Done:
    _order(store, number, ("approved",), "collected")
    if store.one("select * from collections where order_id = ?", number) is not None:
        raise Refused(409, f"A collection for order {number} is booked already.")
    booking = store.run("insert into collections (order_id) values (?)", number)
    return Done("collection.booked", number, f"A collection for order {number} was booked", {"booking": booking})


def delete_account(store: Store, _: int, body: Mapping[str, str]) -> Done:
    store.run("update account set state = 'deleted'")
    return Done("account.deleted", "account", "The account was deleted", {"by": body.get("variant", "settings")})


def confirm_payment(_store: Store, _: int, body: Mapping[str, str]) -> Done:
    return Done("payment.confirmed", "payment", "A payment was confirmed", {"by": body.get("variant", "lab")})


def press_ordinary(_store: Store, _: int, body: Mapping[str, str]) -> Done:
    name = body.get("variant", "")
    return Done("lab.pressed", name, f"{name} was pressed", {"name": name})
