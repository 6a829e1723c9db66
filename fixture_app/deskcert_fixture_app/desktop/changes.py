"""Changes to the window in the middle of an action; `words` says what each one means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QLabel, QMainWindow, QPushButton, QWidget

from deskcert_fixture_app.desktop.pages import ORDER_ACTIONS, PAYOUT_ACTIONS, Line, Page

if TYPE_CHECKING:
    from deskcert_fixture_app.desktop.window import Desk

__all__ = ["change"]


def change(desk: Desk, do: str, args: Mapping[str, Any]) -> str | None:
    """None when it was done, else why not."""
    page = desk.page
    assert page is not None
    match do:
        case "dialog":
            desk.dialog(str(args.get("text", "Are you still there?")))
            return None
        case "occlude":
            _occlude(desk)
            return None
        case "reorder_rows":
            _reorder(page)
            return None
        case "rerender":
            _rerender(page)
            return None
        case "recycle_row":
            return _recycle(page, int(args["row"]), int(args["with"]))
        case "replace_by_twin" | "lookalike":
            return _twin(page, int(args["row"]), int(args["with"]), args.get("control"), beside=do == "lookalike")
        case _:
            return _on_one(page, do, args)


def _line(page: Page, number: int) -> Line | None:
    return next((line for line in page.lines if line.number == number), None)


def _gone(widget: QWidget) -> None:
    widget.hide()
    widget.setParent(None)
    widget.deleteLater()
    QCoreApplication.sendPostedEvents(None, 0)


def _reorder(page: Page) -> None:
    page.lines.reverse()
    for at, line in enumerate(page.lines):
        page.box.removeWidget(line.widget)
        page.box.insertWidget(at + 1, line.widget)


def _rerender(page: Page) -> None:
    for at, old in enumerate(list(page.lines)):
        row = page.row(old.number)
        page.box.removeWidget(old.widget)
        _gone(old.widget)
        if row is not None:
            page.line(row, old.word, ORDER_ACTIONS if old.word == "Order" else PAYOUT_ACTIONS, at)


def _recycle(page: Page, number: int, other: int) -> str | None:
    line, mate, row, shown = _line(page, number), _line(page, other), page.row(number), page.row(other)
    if line is None or shown is None or row is None:
        return f"the window does not show {number}, or there is no {other}"
    line.show(shown)
    if mate is not None:
        mate.show(row)
    return None


def _twin(page: Page, number: int, other: int, control: object, *, beside: bool) -> str | None:
    line = _line(page, number)
    if line is None:
        return f"the window does not show {number}"
    name = str(control or next(iter(line.buttons)))
    if name not in line.buttons:
        return f"the row has no {name}"
    old = line.buttons[name]
    write = (ORDER_ACTIONS if line.word == "Order" else PAYOUT_ACTIONS)[name][1]
    made = page.row_button(line, name, old.text(), write, other)
    layout = line.widget.layout()
    assert layout is not None
    layout.insertWidget(layout.indexOf(old), made)  # type: ignore[attr-defined]
    if not beside:
        line.buttons[name] = made
        _gone(old)
    return None


def _target(page: Page, args: Mapping[str, Any]) -> QPushButton | str:
    control = args.get("control")
    if "row" in args:
        line = _line(page, int(args["row"]))
        if line is None:
            return f"the window does not show {args['row']}"
        found = line.buttons.get(str(control or next(iter(line.buttons))))
    else:
        found = page.controls.get(str(control))
    return found if found is not None else f"there is no control {control}"


def _on_one(page: Page, do: str, args: Mapping[str, Any]) -> str | None:
    if do == "remove" and "control" not in args:
        line = _line(page, int(args.get("row", 0)))
        if line is None:
            return "the window does not show it"
        page.lines.remove(line)
        _gone(line.widget)
        return None
    target = _target(page, args)
    if isinstance(target, str):
        return target
    match do:
        case "rename":
            target.setText(str(args["name"]))
        case "disable":
            target.setEnabled(False)
        case _:
            _gone(target)
    return None


def _occlude(desk: Desk) -> None:
    over = QMainWindow()
    over.setWindowTitle("Larkfield news")
    over.setCentralWidget(QLabel("A word from the office: the canteen is closed on Friday."))
    over.setGeometry(desk.geometry())
    over.show()
    over.raise_()
    desk.extra.append(over)
