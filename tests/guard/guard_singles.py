"""Conversations of the pipelines that have no element: pages, dialogs, tabs, the desktop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from guard_grid import WINDOW, denying
from spelled_before import plain

from deskcert.adapters.base import (
    Dialog,
    Dispatch,
    DispatchEnd,
    Navigation,
    RequestSeen,
    WindowState,
)
from deskcert.adapters.desktop import DesktopApp, DesktopWindow, Operated, Operation, ReadBack
from deskcert.contract.evidence import (
    Hit,
)
from deskcert.guard import delivery, retry_gate
from deskcert.guard.desktop import DesktopRequest, operate
from deskcert.guard.desktop_subject import (
    app_target,
    clipboard_target,
    desktop_fingerprint,
    desktop_subject,
    program_target,
    window_target,
)
from deskcert.guard.outcome import Interrupted, NavigateRequest
from deskcert.guard.page import navigate
from deskcert.guard.retry_gate import GateState
from deskcert.guard.steps import (
    Announce,
    Done,
    Leased,
    Navigate,
    Navigated,
    Operate,
    OperationDone,
    Record,
    Recorded,
    Release,
    Requests,
    RequestsSeen,
    TakeLease,
)


def _driven(
    steps: Any, came: Any, *, stop: type | None = None, ledger: bool = True, lease: bool = True, requests: Any = ()
) -> list[Any]:
    """The whole conversation of one pipeline, and its outcome. `stop` is a step before which it is interrupted."""
    said: list[Any] = []
    now, answer = 1_000, None
    try:
        step = next(steps)
        while True:
            if stop is not None and isinstance(step, stop):
                stop = None
                step = steps.throw(Interrupted("the run was stopped", reached=True))
                continue
            now += 100
            match step:
                case TakeLease(budget):
                    said.append(f"lease {budget}")
                    answer = Leased(lease, 2, now)
                case Record(kind, payload):
                    said.append({"record": kind.value, **plain(payload)})
                    answer = Recorded(40 + len(said), 7, now) if ledger else Recorded(None, 0, now, "the disk is full")
                case Announce(point):
                    said.append(point.value)
                    answer = Done(now)
                case Navigate(url, seq, budget, action):
                    said.append([url, seq, budget, plain(action)])
                    answer = Navigated(came, now)
                case Operate(operation, seq, budget):
                    said.append([plain(operation), seq, budget])
                    answer = OperationDone(came, now)
                case Requests(number):
                    said.append(f"requests {number}")
                    answer = RequestsSeen(requests, now)
                case _:
                    said.append(type(step).__name__)
                    answer = Done(now)
            step = steps.send(answer)
    except StopIteration as done:
        return [plain([done.value]), said]


NEW = WindowState("w1", "t", "http://h/new", "d2")
DIALOG = Dialog("d7", "confirm", "Really?")
CAME: dict[str, Navigation] = {
    "committed": Navigation(DispatchEnd.COMPLETED, NEW, 200),
    "failed page": Navigation(DispatchEnd.COMPLETED, NEW, 500),
    "same document": Navigation(DispatchEnd.COMPLETED, replace(WINDOW, url="http://h/new")),
    "stayed": Navigation(DispatchEnd.COMPLETED, WINDOW),
    "nothing": Navigation(DispatchEnd.COMPLETED, None, error="net::ERR"),
    "not sent": Navigation(DispatchEnd.NOT_SENT, error="no page"),
    "no answer": Navigation(DispatchEnd.NO_ANSWER, error="late"),
    "dialog": Navigation(DispatchEnd.NO_ANSWER, dialog=DIALOG),
}
OPENED: dict[str, Any] = {
    "id": "d7",
    "type": "prompt",
    "text": "How much?",
    "opener": {"role": "button", "name": "Pay"},
}
BAD: dict[str, Any] = OPENED | {"text": "Delete account", "opener": {"role": "button", "name": "Delete account"}}


def secret(value: str, openable: bool) -> dict[str, Any]:
    return {"hidden": True, "openable": openable, "characters": len(value)}


def _paged(command: str, url: str, **how: Any) -> NavigateRequest:
    return NavigateRequest(
        **{
            "action_no": 3,
            "url": url,
            "window": WINDOW,
            "newest_snapshot_seq": 9,
            "policy": denying(),
            "gate": GateState(),
            "now_us": 500,
            "prev_commit_us": 11,
            "command": command,
            "secret": secret,
            **how,
        }
    )


def pages() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    def driven(request: NavigateRequest, came: Any = CAME["committed"], **how: Any) -> Callable[[], list[Any]]:
        return lambda: _driven(navigate(request), came, **how)

    for command in ("navigate", "back", "forward", "reload"):
        for name, came in CAME.items():
            yield f"{command}: {name}", driven(_paged(command, "http://h/new"), came)
        yield f"{command}: denied", driven(_paged(command, "http://h/admin/x"))
    yield "navigate without a lease", driven(_paged("navigate", "http://h/new"), lease=False)
    yield "navigate without a ledger", driven(_paged("navigate", "http://h/new"), ledger=False)
    for step in (TakeLease, Navigate, Release, Record):
        yield f"navigate interrupted before {step.__name__}", driven(_paged("navigate", "http://h/new"), stop=step)
    for command in ("dialog-accept", "dialog-dismiss"):
        for name, dialog in (("prompt", OPENED), ("bad", BAD), ("plain", {"id": "d8", "type": "alert", "text": ""})):
            for text in (None, "my answer"):
                request = _paged(command, WINDOW.url, dialog=dialog, text=text)
                yield f"{command}: {name}, {text}", driven(request, Navigation(DispatchEnd.COMPLETED))
        yield f"{command}: no answer", driven(_paged(command, WINDOW.url, dialog=OPENED), CAME["no answer"])
    tab = {"id": "t2", "title": "Second"}
    for command in ("tab-focus", "tab-close"):
        for name, came in CAME.items():
            yield f"{command}: {name}", driven(_paged(command, "http://h/new", tab=tab), came)
        yield f"{command}: denied", driven(_paged(command, "http://h/admin/x", tab=tab))
    for command in ("navigate", "back", "reload"):
        urls = ("http://h/a#b#c", "http://h/a#c", "http://h/a", "http://h/b", "about:blank#", "http://[h/a#b")
        target = [{"url": url} for url in urls]
        yield f"{command}: marks", lambda c=command, t=target: [retry_gate.page_fingerprint(c, one) for one in t]
    yield "navigate twice", _twice


def _twice() -> list[Any]:
    """The same address again: with and without a newer look, a request that is open, the name of what is repeated."""
    said: list[Any] = []
    pending = (RequestSeen("POST", "u", "causal", "pending"),)
    asked = ((9, None, ()), (99, None, ()), (99, None, pending), (99, 3, pending), (99, 3, ()))
    mark = retry_gate.page_fingerprint("navigate", {"url": "http://h/new"})
    for ok in (True, False):
        kind = delivery.Delivery.DELIVERED_UNVERIFIED if ok else delivery.Delivery.DELIVERY_UNCERTAIN
        gate = GateState().after(mark, retry_gate.Attempt(3, 20, kind, ok=ok))
        for seq, repeat_of, requests in asked:
            request = _paged("navigate", "http://h/new", gate=gate, newest_snapshot_seq=seq, repeat_of=repeat_of)
            said.append(_driven(navigate(request), CAME["committed"], requests=requests))
    return said


APP = DesktopApp("Mail", 77, "g1", True, "desktop://Mail/")
OTHER = DesktopApp(None, 78, "g2", True, "desktop://pid-78/")
FRAME = DesktopWindow("w5", "Inbox", APP, (1, 2, 30, 40), frozenset({"shown", "modal"}))


def operations() -> dict[str, tuple[Operation, dict[str, Any]]]:
    """Made anew for each history."""
    return {
        "launch": (Operation("launch", program="Mail"), program_target("Mail", "/usr/bin/mail")),
        "launch forbidden": (Operation("launch", program="x"), program_target("Delete account", "/usr/bin/x")),
        "close-app": (Operation("close-app", app=APP, force=True), app_target(APP, (FRAME,))),
        "close-app nameless": (Operation("close-app", app=OTHER), app_target(OTHER, (FRAME,))),
        **{
            name: (Operation(name, window=FRAME, box=(1, 1, 2, 2)), window_target(FRAME))
            for name in ("focus-window", "move-window", "resize-window", "minimize", "maximize", "restore")
        },
        "clipboard-set": (Operation("clipboard-set", text="words"), clipboard_target()),
        "clipboard-set secret": (Operation("clipboard-set", text="my secret word"), clipboard_target()),
    }


OPERATED: dict[str, Operated] = {
    "done": Operated(
        Dispatch(DispatchEnd.COMPLETED, True, hit=Hit("window", "Inbox", True)), ReadBack(True, "there", None, 4, "px")
    ),
    "not done": Operated(Dispatch(DispatchEnd.COMPLETED, True), ReadBack(False, "elsewhere")),
    "not known": Operated(Dispatch(DispatchEnd.COMPLETED, True), ReadBack(None, reason="no answer")),
    "changed": Operated(Dispatch(DispatchEnd.CHANGED, False, differences=("title",), error="it changed")),
    "unsupported": Operated(Dispatch(DispatchEnd.NOT_SENT, False, error="no manager", unsupported=True)),
    "no answer": Operated(Dispatch(DispatchEnd.NO_ANSWER, False, error="late")),
}


def desktops() -> Iterator[tuple[str, Callable[[], list[Any]]]]:
    def driven(name: str, came: Operated = OPERATED["done"], **how: Any) -> Callable[[], list[Any]]:
        asked = {k: how.pop(k) for k in ("gate", "repeat_of", "timeout_ms", "newest_snapshot_seq") if k in how}
        return lambda: _driven(operate(requested(name, asked)), came, **how)

    def requested(name: str, asked: dict[str, Any]) -> DesktopRequest:
        operation, target = operations()[name]
        return DesktopRequest(
            **{
                "action_no": 4,
                "operation": operation,
                "target": target,
                "args": {"window": "w5"},
                "newest_snapshot_seq": 9,
                "policy": denying(),
                "gate": GateState(),
                "run_key": b"k",
                "now_us": 500,
                "secret": secret,
                "prev_commit_us": 5,
                **asked,
            }
        )

    for name in operations():
        yield f"desktop {name}", driven(name)
    for name, came in OPERATED.items():
        yield f"desktop launch: {name}", driven("launch", came)
        yield f"desktop move-window: {name}", driven("move-window", came, timeout_ms=100, repeat_of=3)
    for step in (TakeLease, Operate, Release, Record):
        yield f"desktop interrupted before {step.__name__}", driven("clipboard-set", stop=step)
    operation, target = operations()["launch"]
    mark = desktop_fingerprint(operation.command, target, None)
    gate = GateState().after(mark, retry_gate.Attempt(3, 4, delivery.Delivery.DELIVERED_UNVERIFIED, ok=True))
    yield "desktop launched twice", driven("launch", gate=gate, newest_snapshot_seq=4)
    yield "desktop launched again after a look", driven("launch", gate=gate)
    yield "desktop subjects", lambda: [plain(desktop_subject(o.command, t)) for o, t in operations().values()]
