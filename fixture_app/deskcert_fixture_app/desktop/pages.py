"""The pages of the window. A row is a plain box: its number on the left, then what it is about, then its buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import (
    QCheckBox,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from deskcert_fixture_app import writes
from deskcert_fixture_app.desktop.words import PAGES
from deskcert_fixture_app.store import Row, money
from deskcert_fixture_app.writes import Write

if TYPE_CHECKING:
    from deskcert_fixture_app.desktop.window import Desk

__all__ = ["BUILDERS", "Line", "Page", "navigation"]

_MOST_ROWS: Final = 12


@dataclass(slots=True)
class Line:
    """One row. What its buttons do goes by `number`, whatever they showed before."""

    number: int
    word: str
    """`Order` or `Payout`."""
    widget: QWidget
    label: QLabel
    about: QLabel
    state: QLabel
    buttons: dict[str, QPushButton] = field(default_factory=dict)

    def show(self, row: Row) -> None:
        self.number = row["id"]
        self.label.setText(f"{self.word} {row['id']}")
        cents = row["total_cents"] if self.word == "Order" else row["amount_cents"]
        self.about.setText(f"{row['customer'] if self.word == 'Order' else row['payee']} · {money(cents)}")
        self.state.setText(str(row["status"]).capitalize())
        usable: Mapping[str, tuple[str, ...]] = {
            "approve": ("waiting",),
            "ship": ("approved",),
            "cancel": ("waiting", "approved"),
            "send": ("approved",),
        }
        for name, button in self.buttons.items():
            button.setEnabled(row["status"] in usable[name])


class Page:
    def __init__(self, desk: Desk, heading: str) -> None:
        self.desk = desk
        self.widget = QWidget()
        self.widget.setObjectName("page")
        self.box = QVBoxLayout(self.widget)
        self.box.setContentsMargins(20, 8, 20, 12)
        self.box.setSpacing(5)
        title = QLabel(heading)
        title.setObjectName("heading")
        self.box.addWidget(title)
        self.lines: list[Line] = []
        self.controls: dict[str, QPushButton] = {}

    def button(self, name: str, control: str, does: Callable[[], object], *, danger: bool = False) -> QPushButton:
        made = QPushButton(name)
        if danger:
            made.setObjectName("danger")
        made.clicked.connect(lambda: does())  # noqa: PLW0108 - the signal brings an argument
        late = self.desk.fault(control, 0, "late_enable")
        if late is not None:
            made.setEnabled(False)
            QTimer.singleShot(late.ms, lambda: made.setEnabled(True))
        self.controls[control] = made
        return made

    def field(self, name: str, control: str, text: str = "", *, secret: bool = False) -> QLineEdit:
        made = QLineEdit(text)
        made.setAccessibleName(name)
        if secret:
            made.setEchoMode(QLineEdit.EchoMode.Password)
        made.setReadOnly(self.desk.fault(control, 0, "read_only") is not None)
        return made

    def line(self, row: Row, word: str, actions: Mapping[str, tuple[str, Write]], at: int = -1) -> Line:
        holder = QWidget()
        holder.setObjectName("row")
        across = QHBoxLayout(holder)
        across.setContentsMargins(12, 5, 12, 5)
        number, about, state = QLabel(), QLabel(), QLabel()
        number.setObjectName("number")
        state.setObjectName("state")
        number.setFixedWidth(110)
        made = Line(row["id"], word, holder, number, about, state)
        across.addWidget(number)
        across.addWidget(about, 1)
        across.addWidget(state)
        for control, (name, write) in actions.items():
            made.buttons[control] = self.row_button(made, control, name, write)
            across.addWidget(made.buttons[control])
        made.show(row)
        if at < 0:
            self.lines.append(made)
            self.box.addWidget(holder)
        else:
            self.lines[at] = made
            self.box.insertWidget(at + 1, holder)
        return made

    def row_button(self, line: Line, control: str, name: str, write: Write, other: int | None = None) -> QPushButton:
        """`other`: what it acts on, if not on its row's own."""
        made = QPushButton(name)
        if control in ("cancel", "send"):
            made.setObjectName("danger")
        made.clicked.connect(lambda: self.desk.act(control, line.number if other is None else other, write))
        return made

    def row(self, number: int) -> Row | None:
        order = self.desk.store.order(number)
        return order or self.desk.store.one("select * from payouts where id = ?", number)

    def done(self, control: str, row: int) -> None:
        """Show what became of it."""
        del control
        for line in self.lines:
            found = self.row(line.number) if line.number == row else None
            if found is not None:
                line.show(found)


ORDER_ACTIONS: Final[Mapping[str, tuple[str, Write]]] = {
    "approve": ("Approve", writes.approve_order),
    "ship": ("Ship", writes.ship_order),
    "cancel": ("Cancel order", writes.cancel_order),
}
PAYOUT_ACTIONS: Final[Mapping[str, tuple[str, Write]]] = {
    "approve": ("Approve payout", writes.approve_payout),
    "send": ("Send payout", writes.send_payout),
}


def orders(desk: Desk) -> Page:
    page = Page(desk, "Orders")
    for row in desk.store.orders()[:_MOST_ROWS]:
        page.line(row, "Order", ORDER_ACTIONS)
    page.box.addStretch(1)
    return page


def payouts(desk: Desk) -> Page:
    page = Page(desk, "Payouts")
    for row in desk.store.all("select * from payouts order by id")[:_MOST_ROWS]:
        page.line(row, "Payout", PAYOUT_ACTIONS)
    group = QGroupBox("Payout 502")
    inside = QHBoxLayout(group)
    found = desk.store.one("select reference from payouts where id = 502")
    text = page.field("Reference for the books", "reference", found["reference"] if found else "")
    inside.addWidget(QLabel("Reference"))
    inside.addWidget(text, 1)
    save = page.button(
        "Save reference",
        "reference",
        lambda: desk.act("reference", 502, writes.save_reference, {"reference": text.text()}),
    )
    inside.addWidget(save)
    page.box.addWidget(group)
    page.box.addStretch(1)
    return page


def customers(desk: Desk) -> Page:
    page = Page(desk, "Customers")

    def export() -> None:
        names = [row["name"] for row in desk.store.all("select name from customers order by id")]
        (desk.folder / "customers.csv").write_text("name\n" + "".join(f"{name}\n" for name in names))
        desk.act("export", 0, writes.export_customers)

    across = QHBoxLayout()
    across.addWidget(page.button("Save customer list", "export", export))
    across.addWidget(page.button("Export all customers", "export_all", export, danger=True))
    across.addStretch(1)
    page.box.addLayout(across)
    for row in desk.store.all("select * from customers order by id limit ?", _MOST_ROWS):
        page.box.addWidget(_entry(f"{row['name']} · {row['city']}, {row['country']}"))
    page.box.addStretch(1)
    return page


def notes(desk: Desk) -> Page:
    page = Page(desk, "Team notes")
    group = QGroupBox("Write to the team")
    inside = QHBoxLayout(group)
    text = page.field("New note", "note")
    text.setPlaceholderText("New note")
    inside.addWidget(text, 1)
    inside.addWidget(
        page.button("Save note", "note", lambda: desk.act("note", 0, writes.save_note, {"body": text.text()}))
    )
    inside.addWidget(
        page.button(
            "Export all customers",
            "export_all",
            lambda: desk.act("export_all", 0, writes.export_customers),
            danger=True,
        )
    )
    page.box.addWidget(group)
    for row in desk.store.notes(None)[:_MOST_ROWS]:
        page.box.addWidget(_entry(row["body"]))
    page.box.addStretch(1)
    return page


def _entry(text: str) -> QLabel:
    said = QLabel(text)
    said.setObjectName("entry")
    said.setWordWrap(True)
    return said


def settings(desk: Desk) -> Page:
    page = Page(desk, "Settings")
    now = desk.store.settings()
    group = QGroupBox("Office")
    inside = QVBoxLayout(group)
    company, reply = page.field("Company", "company", now["company"]), page.field("Reply to", "reply", now["reply_to"])
    weekly = QCheckBox("Weekly report")
    weekly.setChecked(now["weekly_report"] == "on")
    token = page.field("Bank password", "bank", "swordfish-77", secret=True)
    for name, widget in (("Company", company), ("Reply to", reply), ("", weekly), ("Bank password", token)):
        if name:
            inside.addWidget(QLabel(f"{name}:"))
        inside.addWidget(widget)

    def save() -> None:
        report = "on" if weekly.isChecked() else "off"
        told = {**now, "company": company.text(), "reply_to": reply.text(), "weekly_report": report}
        desk.act("settings", 0, writes.save_settings, told)

    below = QHBoxLayout()
    below.addWidget(page.button("Save settings", "settings", save))
    below.addStretch(1)
    inside.addLayout(below)
    page.box.addWidget(group)
    danger = QGroupBox("Danger zone")
    across = QHBoxLayout(danger)
    delete = writes.delete_account
    across.addWidget(page.button("Delete account", "delete", lambda: desk.act("delete", 0, delete), danger=True))
    if now["lookalike"] == "on":
        # Cyrillic letters that look like Latin ones.
        name = "D\u0435l\u0435t\u0435 \u0430ccount"
        other = {"variant": "lookalike"}
        across.addWidget(page.button(name, "delete2", lambda: desk.act("delete2", 0, delete, other), danger=True))
    across.addStretch(1)
    page.box.addWidget(danger)
    page.box.addStretch(1)
    return page


BUILDERS: Final[Mapping[str, Callable[[Desk], Page]]] = dict(
    zip(PAGES, (orders, payouts, customers, notes, settings), strict=True)
)


def navigation(show: Callable[[str], None]) -> QWidget:
    bar = QWidget()
    bar.setObjectName("navigation")
    across = QHBoxLayout(bar)
    brand = QLabel("Larkfield")
    brand.setObjectName("brand")
    across.addWidget(brand)
    for name in PAGES:
        made = QPushButton(name.capitalize())
        made.clicked.connect(lambda _=False, name=name: show(name))
        across.addWidget(made)
    across.addStretch(1)
    return bar
