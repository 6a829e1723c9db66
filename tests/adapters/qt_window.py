"""A small Qt window for the adapter's tests. It prints each effect that it has, and takes orders on its standard input:

`rename|disable|enable|hide|remove NAME [TO]` (`TO` with Python's escapes), `recycle`, `modal`, `unmodal`, `many N`,
`long NAME N`, `second`, `pad`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from PySide6.QtCore import QSocketNotifier, Qt
from PySide6.QtGui import QEnterEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFormLayout,
    QGridLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QListWidget,
    QMainWindow,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSlider,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

HANGS_S = 6


def effect(what: str) -> None:
    print(f"effect {what}", flush=True)


class Window(QMainWindow):
    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Orders")
        body = QWidget()
        self.box = QVBoxLayout(body)
        self.setCentralWidget(body)
        self.named: dict[str, QWidget] = {}
        self.rows: list[tuple[QLabel, QPushButton]] = []
        self.modal: QMessageBox | None = None
        menu = self.menuBar().addMenu("&File")
        menu.addAction("&Save", lambda: effect("save"))
        self.button("Buy")
        self.button("Hang", lambda: (effect("hang"), time.sleep(HANGS_S)))
        self.button("Closed").setEnabled(False)
        for number in (1001, 1002):
            self.row(number)
        self.fields()
        self.choices()
        self.resize(420, 640)

    def button(self, name: str, does: Callable[[], object] | None = None) -> QPushButton:
        made = QPushButton(name)
        made.clicked.connect(lambda: does() if does is not None else effect(name.lower()))
        self.box.addWidget(made)
        self.named[name] = made
        return made

    def row(self, number: int) -> None:
        line, label, approve = QHBoxLayout(), QLabel(f"Order {number}"), QPushButton("Approve")
        approve.clicked.connect(lambda: effect(f"approve {label.text().removeprefix('Order ')}"))
        line.addWidget(label)
        line.addWidget(approve)
        self.box.addLayout(line)
        self.rows.append((label, approve))

    def fields(self) -> None:
        group = QGroupBox("Customer")
        form, note, password, long = QFormLayout(group), QLineEdit(), QLineEdit(), QPlainTextEdit()
        note.textChanged.connect(lambda text: effect(f"note {text}"))
        password.setEchoMode(QLineEdit.EchoMode.Password)
        password.setText("hunter2")
        password.textChanged.connect(lambda text: effect(f"password {len(text)}"))
        long.setAccessibleName("Letter")
        long.setMaximumHeight(50)
        form.addRow("Note", note)
        form.addRow("Password", password)
        form.addRow(long)
        self.box.addWidget(group)
        self.named |= {"Note": note, "Password": password}

    def choices(self) -> None:
        express = QCheckBox("Express")
        express.toggled.connect(lambda on: effect(f"express {on}"))
        colour = QComboBox()
        colour.setAccessibleName("Colour")
        colour.addItems(["red", "green", "blue"])
        colour.currentTextChanged.connect(lambda text: effect(f"colour {text}"))
        volume = QSlider(Qt.Orientation.Horizontal)
        volume.setAccessibleName("Volume")
        volume.valueChanged.connect(lambda value: effect(f"volume {value}"))
        entries = QListWidget()
        entries.setAccessibleName("Entries")
        entries.addItems([f"entry {i}" for i in range(20)])
        entries.setMaximumHeight(60)
        entries.itemSelectionChanged.connect(
            lambda: effect("entries " + ",".join(sorted(i.text() for i in entries.selectedItems())))
        )
        for widget in (express, colour, volume, entries):
            self.box.addWidget(widget)
        self.named |= {"Express": express, "Colour": colour}

    def many(self, count: int) -> None:
        """A grid that is far larger than the window, in a place of its own."""
        inner, place = QWidget(), QScrollArea()
        grid = QGridLayout(inner)
        for i in range(count):
            grid.addWidget(QPushButton(f"Button {i}"), i // 20, i % 20)
        place.setWidget(inner)
        self.box.addWidget(place)

    def obey(self, order: str) -> None:
        do, _, rest = order.partition(" ")
        name, _, to = rest.partition(" ")
        widget = self.named.get(name)
        match do:
            case "rename" if isinstance(widget, QPushButton):
                widget.setText(to.encode("ascii", "backslashreplace").decode("unicode_escape"))
            case "long" if isinstance(widget, QPushButton):
                widget.setAccessibleName("W" * int(to))
            case "pad":
                self.opened = PadWindow()
                self.opened.show()
            case "second":
                self.opened = Second()
                self.opened.show()
            case "disable" | "enable" if widget is not None:
                widget.setEnabled(do == "enable")
            case "hide" if widget is not None:
                widget.hide()
            case "remove" if widget is not None:
                widget.setParent(None)
                widget.deleteLater()
                QApplication.sendPostedEvents(None, 0)
            case "recycle":
                texts = [label.text() for label, _ in self.rows]
                for (label, _), text in zip(self.rows, reversed(texts), strict=True):
                    label.setText(text)
            case "modal":
                self.modal = QMessageBox(self)
                self.modal.setWindowTitle("Sure?")
                self.modal.setText("Delete everything?")
                self.modal.setModal(True)
                self.modal.show()
            case "unmodal" if self.modal is not None:
                self.modal.hide()
            case "many":
                self.many(int(name))


class Second(QMainWindow):
    """A window whose button closes it while it is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Second")
        button = QPushButton("Send and close")
        button.pressed.connect(lambda: (effect("sent"), self.close(), self.deleteLater()))
        self.setCentralWidget(button)


class Pad(QPushButton):
    """Tells what a pointer does to it."""

    def mousePressEvent(self, event: QMouseEvent) -> None:
        effect(f"pad down {event.button().name}")

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        effect(f"pad double {event.button().name}")

    def enterEvent(self, event: QEnterEvent) -> None:
        effect("pad over")

    def wheelEvent(self, event: QWheelEvent) -> None:
        effect("pad wheel " + ("down" if event.angleDelta().y() < 0 else "up"))


class PadWindow(QMainWindow):
    """What opens and closes, what is scrolled, and what is pointed at."""

    def __init__(self) -> None:
        super().__init__()
        self.setWindowTitle("Pad")
        body = QWidget()
        box = QVBoxLayout(body)
        tree = QTreeWidget()
        tree.setAccessibleName("Folders")
        tree.setHeaderHidden(True)
        mail = QTreeWidgetItem(tree, ["Mail"])
        QTreeWidgetItem(mail, ["Drafts"])
        tree.itemExpanded.connect(lambda item: effect(f"expanded {item.text(0)}"))
        tree.itemCollapsed.connect(lambda item: effect(f"collapsed {item.text(0)}"))
        for widget in (Pad("Pad"), tree):
            box.addWidget(widget)
        self.setCentralWidget(body)
        self.setGeometry(500, 40, 300, 300)


def main() -> None:
    app = QApplication(sys.argv[:1])
    app.setApplicationName(sys.argv[1] if len(sys.argv) > 1 else "qt-window")
    window = Window()
    window.show()
    orders = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read)

    def told() -> None:
        line = sys.stdin.readline()
        if not line:
            app.quit()
            return
        window.obey(line.strip())
        app.processEvents()
        print(f"done {line.strip()}", flush=True)

    orders.activated.connect(told)
    print("ready", flush=True)
    sys.exit(app.exec())


if __name__ == "__main__":
    main()
