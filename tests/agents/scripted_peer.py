"""deskcert's side of the JSON lines, scripted: starts a reference agent as a real process and answers its commands.

A script is a function from (command, args, how many commands came before) to an envelope without its id.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

type Script = Callable[[str, Mapping[str, Any]], Mapping[str, Any] | None]
"""None ends the session instead of answering."""


@dataclass
class Talk:
    """What the agent said, in order, and how it ended."""

    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    status: int | None = None
    stderr: str = ""

    @property
    def commands(self) -> list[str]:
        return [c for c, _ in self.sent]

    @property
    def claim(self) -> str | None:
        return next((a["outcome"] for c, a in self.sent if c == "finish"), None)

    def args(self, command: str) -> list[dict[str, Any]]:
        return [a for c, a in self.sent if c == command]


def talk(
    agent: str,
    plan: str,
    script: Script,
    folder: Path,
    *,
    budget: Mapping[str, int] = MappingProxyType({}),
    start_url: str = "http://app/orders",
) -> Talk:
    """One whole conversation. Fails the test if the agent is not done within 30 s."""
    file = folder / "scenario.plan.yaml"
    file.write_text(plan, "utf-8")
    command = [sys.executable, "-m", "deskcert.agents", agent, "--plan", str(file)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watchdog = threading.Timer(30, process.kill)
    watchdog.start()
    found = Talk()
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        task = {"type": "task", "version": 1, "task": "t", "budget": dict(budget), "start_url": start_url}
        _say(process.stdin, task)
        for line in process.stdout:
            message = json.loads(line)
            found.sent.append((message["command"], message["args"]))
            answer = script(message["command"], message["args"])
            if answer is None:
                _say(process.stdin, {"type": "end", "reason": "budget"})
            else:
                _say(process.stdin, {"id": message["id"], **answer})
        found.stderr = process.stderr.read().decode()
        found.status = process.wait()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    return found


def _say(stream: Any, message: Mapping[str, Any]) -> None:
    try:
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()
    except BrokenPipeError:
        pass  # the agent left, which the test reads from its commands


class OrdersPage:
    """A page of orders with a snapshot number, so that each look gives new refs."""

    def __init__(self, *orders: str, done: str = "") -> None:
        self.orders, self.done = orders, done
        self.looks = 0
        self.complete = True
        self.extra: list[dict[str, Any]] = []

    def snapshot(self) -> dict[str, Any]:
        self.looks += 1
        sid = f"s000{self.looks}"
        rows = [self._row(order, f"@{sid}:e{i}") for i, order in enumerate(self.orders, 1)]
        tree = {"role": "main", "children": [*rows, *self.extra]}
        data = {
            "snapshot_id": sid,
            "window": {"id": "w1", "title": "Orders", "url": "http://app/orders?tab=open"},
            "ref_count": len(rows),
            "complete": self.complete,
            "nodes_observed": 9,
            "tree": tree,
        }
        return ok("snapshot", data)

    def _row(self, order: str, ref: str) -> dict[str, Any]:
        button = {"role": "button", "name": "Approve", "ref_id": ref, "context": [["row", order]]}
        state = {"role": "cell", "name": "Approved" if order == self.done else "Open"}
        return {"role": "row", "children": [{"role": "cell", "name": order}, state, button]}


def ok(command: str, data: Mapping[str, Any], seq: int = 1) -> dict[str, Any]:
    return {"version": "2.5", "ok": True, "command": command, "data": dict(data), "ledger": {"seq": seq}}


def acted(command: str, delivery: str = "delivered_unverified", **data: Any) -> dict[str, Any]:
    return ok(command, {"disposition": {"delivery": delivery, "retry": "unsafe"}, "details": {}, **data})


RETRY = {"not_delivered": "safe", "delivered_unverified": "unsafe"}


def error(command: str, code: str, *, delivery: str = "not_delivered", **details: Any) -> dict[str, Any]:
    disposition = {"delivery": delivery, "retry": RETRY.get(delivery, "never_automatic")}
    body = {"code": code, "message": code.lower(), "details": details, "disposition": disposition}
    return {"version": "2.5", "ok": False, "command": command, "error": body, "ledger": {"seq": 7}}
