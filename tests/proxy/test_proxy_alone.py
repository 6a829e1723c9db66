"""The proxy without a runner: `deskcert proxy`, `mitmdump -s`, and behind another proxy."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from proxy_rig import POLICY, Origin, request_bytes, send_raw

from deskcert_ledger import read_records, verify_run

JSON = [("Content-Type", "application/json")]


@contextmanager
def program(folder: Path, *command: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "DESKCERT_KEY_FILE": str(folder / "key"), **more}
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on "), (line, process.stderr.read() if process.stderr else "")
    return int(line.rstrip().rpartition(":")[2])


def write_policy(folder: Path) -> str:
    (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    return "policy.yaml"


def kinds(folder: Path) -> list[tuple[str, str | None]]:
    return [(r.kind, r.data.get("rule")) for r in read_records(folder) if r.kind in ("net.allowed", "net.blocked")]


def test_command_guards_any_client_and_seals_its_ledger(tmp_path: Path) -> None:
    origin = Origin()
    options = ["--policy", write_policy(tmp_path), "--ledger", "led", "--listen", "127.0.0.1:0"]
    with program(tmp_path, "-m", "deskcert.cli.main", "proxy", *options) as process:
        port = port_of(process)
        assert send_raw(port, request_bytes("POST", origin.url + "/api/x", b"{}", JSON)).status == 200
        assert send_raw(port, request_bytes("POST", origin.url + "/api/payouts", b"{}", JSON)).rule == "net-payout"
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert origin.writes() == ["POST /api/x"]
    assert kinds(tmp_path / "led") == [("net.allowed", None), ("net.blocked", "net-payout")]
    pin = json.loads((tmp_path / "led" / "ledger.jsonl").read_bytes().split(b"\n")[0])["key_intro"]
    assert pin
    assert verify_run(tmp_path / "led", pins=()).headline in ("unverifiable", "complete")
    origin.close()


def test_command_passes_on_to_an_upstream_proxy(tmp_path: Path) -> None:
    """Two of them in a row: both record the write."""
    origin = Origin()
    policy = write_policy(tmp_path)
    run = ["-m", "deskcert.cli.main", "proxy", "--policy", policy, "--listen", "127.0.0.1:0", "--ledger"]
    with program(tmp_path, *run, "outer") as outer:
        upstream = f"http://127.0.0.1:{port_of(outer)}"
        with program(tmp_path, *run, "inner", "--upstream", upstream) as inner:
            port = port_of(inner)
            assert send_raw(port, request_bytes("POST", origin.url + "/api/x", b"{}", JSON)).status == 200
            denied = send_raw(port, request_bytes("POST", origin.url + "/api/payouts", b"{}", JSON))
            assert denied.rule == "net-payout"
    assert origin.writes() == ["POST /api/x"]
    assert kinds(tmp_path / "inner") == [("net.allowed", None), ("net.blocked", "net-payout")]
    assert kinds(tmp_path / "outer") == [("net.allowed", None)]
    origin.close()


def test_policy_that_names_no_hosts_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("version: 1\ndefault: allow\ndeny:\n  - {id: a, name: B}\n")
    with program(tmp_path, "-m", "deskcert.cli.main", "proxy", "--policy", "p.yaml", "--ledger", "led") as process:
        assert process.wait(20) == 2
        assert process.stderr is not None
        assert "hosts" in process.stderr.read()
    assert not (tmp_path / "led").exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


SCRIPT = str(Path(__file__).parents[2] / "proxy" / "deskcert_proxy" / "script.py")


def dump_command(port: int, *options: str) -> list[str]:
    start = "from mitmproxy.tools.main import mitmdump; mitmdump()"
    fixed = ["--listen-host", "127.0.0.1", "-p", str(port), "--set", "confdir=ca", "-q", "-s", SCRIPT]
    return ["-c", start, *fixed, *options]


def wait_for(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(process.stderr.read() if process.stderr else "it did not start")


def test_addon_is_usable_with_mitmdump(tmp_path: Path) -> None:
    origin, port = Origin(), free_port()
    more = {"DESKCERT_POLICY": write_policy(tmp_path), "DESKCERT_LEDGER": "led"}
    with program(tmp_path, *dump_command(port), **more) as process:
        wait_for(port, process)
        assert send_raw(port, request_bytes("POST", origin.url + "/api/x", b"{}", JSON)).status == 200
        assert send_raw(port, request_bytes("POST", origin.url + "/api/payouts", b"{}", JSON)).rule == "net-payout"
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert origin.writes() == ["POST /api/x"]
    assert [r.kind for r in read_records(tmp_path / "led")][-1] == "run.end"
    origin.close()


@pytest.mark.parametrize(
    "option",
    ["stream_large_bodies=1k", "ignore_hosts=.*", "map_remote=|/a|http://b/", "rawtcp=true", "modify_body=/a/b"],
)
def test_option_that_opens_a_way_round_is_refused(tmp_path: Path, option: str) -> None:
    port = free_port()
    more = {"DESKCERT_POLICY": write_policy(tmp_path), "DESKCERT_LEDGER": "led"}
    with program(tmp_path, *dump_command(port, "--set", option), **more) as process:
        origin = Origin()
        try:
            wait_for(port, process)
        except AssertionError:
            assert process.wait(20) != 0
        else:
            reply = send_raw(port, request_bytes("POST", origin.url + "/api/payouts", b'{"op":"delete"}' * 900, JSON))
            assert reply.status != 200
        assert origin.hits == []
        origin.close()


def test_script_without_its_settings_ends_mitmdump(tmp_path: Path) -> None:
    port = free_port()
    with program(tmp_path, *dump_command(port)) as process:
        assert process.wait(20) != 0
