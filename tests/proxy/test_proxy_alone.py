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
from h2_rig import H2Origin, ask_h2
from proxy_rig import POLICY, Origin, request_bytes, send_raw

from deskcert_ledger import ProjectKey, read_records, verify_run
from deskcert_schema.validate import check

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
    origin.close()
    pin = ProjectKey.load_or_create(tmp_path / "key").vkey
    assert verify_run(tmp_path / "led", pins=(pin,)).headline == "complete"
    # Every reader of ledgers takes it, and none certifies it.
    lines = [json.loads(line) for line in (tmp_path / "led" / "ledger.jsonl").read_bytes().splitlines()]
    assert [problem for line in lines for problem in check("record", line)] == []
    environment = os.environ | {"DESKCERT_KEY_FILE": str(tmp_path / "key")}
    timeline, query, score = (
        subprocess.run(
            [sys.executable, "-m", "deskcert.cli.main", *command], cwd=tmp_path, env=environment,
            capture_output=True, text=True, timeout=60, check=False,
        )
        for command in (
            ("ledger", "timeline", "led"),
            ("ledger", "query", "led", "select count(*) from records where kind = 'net.blocked'"),
            ("score", "led", "--json", "--key", pin),
        )
    )  # fmt: skip
    assert (timeline.returncode, query.returncode, score.returncode) == (0, 0, 3), score.stderr
    assert "net-payout" in timeline.stdout
    assert "1" in query.stdout.split()
    verdict = json.loads(score.stdout)
    assert check("verdict", verdict) == []
    assert [run["outcome"] for run in verdict["runs"]] == ["contaminated"]


PLAIN = "from mitmproxy.tools.main import mitmdump; mitmdump()"


def test_command_works_behind_a_proxy_that_is_not_ours(tmp_path: Path) -> None:
    """A plain mitmproxy as the upstream, which marks what it passes on; over HTTPS its authority has to be trusted."""
    origin, secure, port = Origin(), H2Origin(tmp_path), free_port()
    marked = ["--set", "modify_headers=/~q/x-upstream/passed", "--set", "ssl_insecure=true", "--set", "confdir=theirs"]
    upstream = ["-c", PLAIN, "-q", "--listen-host", "127.0.0.1", "-p", str(port), *marked]
    with program(tmp_path, *upstream) as theirs:
        wait_for(port, theirs)
        options = ["--policy", write_policy(tmp_path), "--ledger", "led", "--listen", "127.0.0.1:0"]
        behind = ["--upstream", f"http://127.0.0.1:{port}", "--trust", "theirs/mitmproxy-ca-cert.pem"]
        with program(tmp_path, "-m", "deskcert.cli.main", "proxy", *options, *behind) as ours:
            mine = port_of(ours)
            assert send_raw(mine, request_bytes("POST", origin.url + "/api/x", b"{}", JSON)).status == 200
            assert send_raw(mine, request_bytes("POST", origin.url + "/api/payouts", b"{}", JSON)).rule == "net-payout"
            target = f"127.0.0.1:{secure.port}"
            head = [(":method", "POST"), (":scheme", "https"), (":authority", target)]
            assert ask_h2(mine, target, [*head, (":path", "/api/x")], b"{}").status == 200
            assert ask_h2(mine, target, [*head, (":path", "/api/payouts")], b"{}").status == 403
    assert origin.writes() == secure.writes() == ["POST /api/x"]
    assert {hit.headers.get("x-upstream") for hit in (*origin.hits, *secure.hits)} == {"passed"}
    assert kinds(tmp_path / "led") == [("net.allowed", None), ("net.blocked", "net-payout")] * 2
    origin.close()
    secure.close()


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
