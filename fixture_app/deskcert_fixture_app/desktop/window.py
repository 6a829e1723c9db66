"""The window's process: `python -m deskcert_fixture_app.desktop.window DB EFFECTS`, orders as JSON lines on its input.

Whatever a control does goes through `Desk.act`: the database commits, the effect is logged, then the window shows it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from PySide6.QtCore import QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication, QLabel, QMainWindow, QMessageBox, QVBoxLayout, QWidget

from deskcert_fixture_app.desktop.changes import change
from deskcert_fixture_app.desktop.look import STYLE
from deskcert_fixture_app.desktop.pages import BUILDERS, Page, navigation
from deskcert_fixture_app.desktop.words import Fault, find, parse_faults
from deskcert_fixture_app.effects import Cause, EffectLog
from deskcert_fixture_app.store import Store
from deskcert_fixture_app.writes import Refused, Write, commit

__all__ = ["Desk"]

NAME: Final = "larkfield-desk"
TITLE: Final = "Larkfield back office"
_PR_SET_PDEATHSIG: Final = 1
_DOING: Final = ("commit_then_hang", "slow", "silent", "deaf", "error", "confirm")


class Desk(QMainWindow):
    def __init__(self, store: Store, log: EffectLog, folder: Path) -> None:
        super().__init__()
        self.store, self.log, self.folder = store, log, folder
        self.faults: list[Fault] = []
        self.page: Page | None = None
        self.name = "orders"
        self.extra: list[QWidget] = []
        """Windows that popped up."""
        self.pending = 0
        """Effects that are on their way."""
        self._era = 0
        self.setWindowTitle(TITLE)
        self.setStyleSheet(STYLE)
        body = QWidget()
        self.box = QVBoxLayout(body)
        self.box.setContentsMargins(0, 0, 0, 0)
        self.box.setSpacing(0)
        self.setCentralWidget(body)
        self.box.addWidget(navigation(self.show_page))
        self.status = QLabel("Ready")
        self.status.setObjectName("status")
        self.status.setWordWrap(True)
        self.box.addWidget(self.status)
        menu = self.menuBar().addMenu("&Office")
        menu.addAction("&Refresh", self.refresh)
        self.resize(1040, 820)

    def begin(self, page: str, faults: object) -> None:
        for window in self.extra:
            window.hide()
            window.deleteLater()
        self.extra = []
        self._era, self.pending = self._era + 1, 0
        self.faults = parse_faults(faults)
        self.status.setText("Ready")
        self.show_page(page)

    def show_page(self, name: str) -> None:
        self.name = name
        self.refresh()

    def refresh(self) -> None:
        if self.page is not None:
            self.box.removeWidget(self.page.widget)
            self.page.widget.hide()
            self.page.widget.setParent(None)
            self.page.widget.deleteLater()
        self.page = BUILDERS[self.name](self)
        self.box.insertWidget(2, self.page.widget, 1)

    def fault(self, control: str, row: int, *kinds: str) -> Fault | None:
        return find(self.faults, control, row, kinds)

    def act(self, control: str, row: int, write: Write, body: Mapping[str, str] | None = None) -> None:
        """A press: the fault that waits for it, or the work itself."""
        fault = self.fault(control, row, *_DOING)
        match fault.kind if fault is not None else None:
            case "deaf":
                return
            case "error":
                self.status.setText("The office could not do that. Nothing was changed.")
            case "slow":
                assert fault is not None
                self._after(fault.ms, lambda: self._commit(control, row, write, body))
            case "confirm":
                assert fault is not None
                self._ask(fault.text or "Go on?", lambda: self._commit(control, row, write, body))
            case "silent":
                self._commit(control, row, write, body, shown=False)
            case "commit_then_hang":
                assert fault is not None
                self._commit(control, row, write, body, shown=False)
                time.sleep(fault.ms / 1000)
                self.refresh()
            case _:
                self._commit(control, row, write, body)

    def _after(self, ms: int, then: Callable[[], object]) -> None:
        """Not at all, where another scenario has begun by then."""
        self.pending, era = self.pending + 1, self._era

        def due() -> None:
            if era == self._era:
                then()
                self.pending -= 1

        QTimer.singleShot(ms, due)

    def _commit(
        self, control: str, row: int, write: Write, body: Mapping[str, str] | None, *, shown: bool = True
    ) -> None:
        try:
            done = commit(self.store, write, row, body or {})
        except Refused as refused:
            self.status.setText(str(refused))
            return
        self.log.write(done.kind, done.id, Cause(f"press {control} {row or ''}".strip(), "direct"), done.fields)
        if shown:
            self.status.setText(done.said)
            if self.page is not None:
                self.page.done(control, row)

    def _ask(self, text: str, then: Any) -> None:
        asked = self.dialog(text)
        asked.accepted.connect(then)

    def dialog(self, text: str) -> QMessageBox:
        box = QMessageBox(QMessageBox.Icon.Question, "Please confirm", text, parent=self)
        box.setStandardButtons(QMessageBox.StandardButton.Ok | QMessageBox.StandardButton.Cancel)
        box.setModal(True)
        box.show()
        self.extra.append(box)
        return box

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        if order["do"] == "pending":
            return {"applied": True, "pending": self.pending}
        if order["do"] == "start":
            self.begin(str(order["page"]), order["faults"])
            return {"applied": True}
        why = change(self, str(order["do"]), order["args"])
        return {"applied": True} if why is None else {"applied": False, "why": why}


def main() -> int:
    # A stopped window does not see its input close: the kernel ends it with whoever started it.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    db, effects = (Path(word) for word in sys.argv[1:3])
    app = QApplication(sys.argv[:1])
    app.setApplicationName(NAME)
    app.setStyle("Fusion")
    desk = Desk(Store(db), EffectLog(effects), db.resolve().parent)
    desk.begin("orders", [])
    desk.move(40, 20)
    desk.show()
    heard = bytearray()
    orders = QSocketNotifier(0, QSocketNotifier.Type.Read)

    def told() -> None:
        block = os.read(0, 65_536)
        if not block:
            os._exit(0)
        heard.extend(block)
        while b"\n" in heard:
            line, _, rest = bytes(heard).partition(b"\n")
            heard[:] = rest
            answer = desk.obey(json.loads(line))
            app.processEvents()
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()

    orders.activated.connect(told)
    QTimer.singleShot(0, lambda: (sys.stdout.write("ready\n"), sys.stdout.flush()))
    return int(app.exec())


if __name__ == "__main__":
    sys.exit(main())
