"""A hostile agent against the whole program: the run is recorded and judged, deskcert stays small, nothing is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_campaigns import DESKCERT, of_kind
from e2e_processes import token_of, with_token

pytestmark = pytest.mark.web

SCENARIO = """\
id: orders-a
version: 1
title: Approve one order
area: orders
start: {page: /orders}
instruction: Approve order 1001.
budget: {actions: 5, seconds: 20}
oracle: [{effect: {kind: order.approved, id: 1001}, times: 1}]
expected: complete
attribution: wrong_target
"""
HOSTILE = """
import json, os, subprocess, sys, threading, time
task = sys.stdin.readline()
def noise():
    while True: os.write(2, b"e" * (1 << 20))
threading.Thread(target=noise, daemon=True).start()
subprocess.Popen(["sleep", "600"], env={}, start_new_session=True)
until = time.time() + 2
while time.time() < until:
    for n in range(50):
        print(json.dumps({"id": n, "command": "click", "args": {"ref": "@s8f3k2p9:e%d" % (n + 1)}}))
        print("garbage" if n == 7 else json.dumps({"id": n, "command": "status", "args": {}}), flush=True)
    for n in range(100): sys.stdin.readline()
    break
os.system("kill -STOP %d" % os.getppid())
while True: os.write(1, b"x" * (1 << 20))
"""
MOST_KIB = 700 * 1024
"""Of deskcert, and of each that it waits for; the browser's driver is the largest."""


def test_flood_noise_and_a_line_without_end(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "orders-a.yaml").write_text(SCENARIO)
    (suite / "policy.yaml").write_text('version: 1\ndeny: [{id: no-delete, name: "Delete", reason: "irreversible"}]\n')
    (tmp_path / "agent.py").write_text(HOSTILE)
    command = [DESKCERT, "ci", "--json", "--suite", "suite", "--out", "out", "--", sys.executable, "agent.py"]
    with (tmp_path / "verdict").open("wb") as told, (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, stdout=told, stderr=log, stdin=subprocess.DEVNULL)
        token = None
        while token is None and process.poll() is None:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            token = next((t for t in (token_of(int(c)) for c in children) if t), None)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 1, (tmp_path / "log").read_text()
    (run,) = (tmp_path / "out" / "runs").iterdir()
    events = of_kind(run, "agent.event")
    assert {"garbage", ""} >= {str(e.get("line", "")) for e in events if e["event"] == "protocol_error"}
    assert [e["why"] for e in events if e["event"] == "protocol_error"][-1] == "a line of more than 1 MiB"
    (output,) = [e for e in events if e["event"] == "output"]
    assert output["bytes"] == 1 << 20 < output["total_bytes"]
    assert output["left_over_processes"] >= 1
    (end,) = of_kind(run, "run.end")
    assert (end["outcome"], end["harness_ok"]) == ("error", True)
    assert json.loads((tmp_path / "verdict").read_bytes())["runs"][0]["outcome"] == "failed"
    assert used.ru_maxrss < MOST_KIB
    assert token is not None
    assert with_token(token) == set()
