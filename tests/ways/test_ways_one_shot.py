"""The session's daemon and the one-shot commands, as programs."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ways_world import DESKCERT, Application, ref_of, verified_word

from deskcert.ways.client import ask
from deskcert.ways.registry import Entry, choose, entries, read_all, remember, runtime_folder, started_at
from deskcert.ways.sockets import peer_uid, private_listener
from deskcert_schema.errors import UsageError


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("DESKCERT_SESSION", raising=False)
    return tmp_path / "run" / "deskcert"


def run(*arguments: str, cwd: Path, **environment: str) -> tuple[int, dict[str, Any]]:
    """Exit code, and the one envelope on standard output."""
    done = subprocess.run(
        [DESKCERT, *arguments],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout.count("\n") == 1, (done.stdout, done.stderr)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def session(app: Application, tmp_path: Path, policy: Path) -> Iterator[dict[str, Any]]:
    code, started = run("session", "start", "--url", app.start("/orders"), "--policy", str(policy), cwd=tmp_path)
    assert code == 0, started
    yield started["data"]
    run("session", "end", cwd=tmp_path)


@pytest.mark.web
def test_a_whole_session(session: dict[str, Any], app: Application, tmp_path: Path, runtime: Path) -> None:
    made = runtime / f"{session['session']}.sock"
    assert made.stat().st_mode & 0o777 == 0o600
    assert runtime.stat().st_mode & 0o777 == 0o700
    code, seen = run("snapshot", "--interactive-only", cwd=tmp_path)
    assert code == 0
    ref = ref_of(seen, "Approve", "Order 1001")
    assert run("get", ref, "name", cwd=tmp_path)[1]["data"]["value"] == "Approve"
    code, clicked = run("click", ref, cwd=tmp_path)
    assert (code, clicked["data"]["disposition"]["delivery"]) == (0, "delivered_unverified")
    # Its state outlives the commands: the retry gate remembers, and so do the snapshots.
    code, again = run("click", ref, cwd=tmp_path)
    assert (code, again["ok"]) == (1, False)
    code, unknown = run("launch", "--app", "calculator", cwd=tmp_path)
    assert (code, unknown["error"]["code"]) == (1, "PLATFORM_NOT_SUPPORTED")
    assert run("session", "list", cwd=tmp_path)[1]["data"]["sessions"][0]["alive"] is True
    asyncio.run(app.committed(1))
    gone = os.pidfd_open(session["pid"])
    assert run("finish", "--outcome", "done", "--message", "approved", cwd=tmp_path)[0] == 0
    assert select.select([gone], [], [], 30)[0], "the daemon did not end after the claim"
    os.close(gone)
    assert run("status", cwd=tmp_path)[0] == 2
    assert [e["id"] for e in app.effects()] == [1001]
    assert verified_word(Path(session["ledger"]), tmp_path) == "complete"
    assert list(runtime.glob("*.sock")) == []


@pytest.mark.web
def test_a_reply_that_is_lost_is_not_replayed_and_says_what_is_known(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    """The daemon is killed between the dispatch and its answer; the command must not claim anything, nor try again."""
    pause = {"DESKCERT_PAUSE_AT": "dispatched", "DESKCERT_PAUSE_FILE": str(tmp_path / "paused")}
    url = app.start("/orders")
    started = run("session", "start", "--url", url, "--policy", str(policy), cwd=tmp_path, **pause)[1]["data"]
    seen = run("snapshot", cwd=tmp_path)[1]
    click = subprocess.Popen(
        [DESKCERT, "click", ref_of(seen, "Approve", "Order 1001")], cwd=tmp_path, stdout=subprocess.PIPE
    )
    while not (tmp_path / "paused").exists():
        assert click.poll() is None
        os.sched_yield()
    os.kill(started["pid"], signal.SIGKILL)
    told, _ = click.communicate(timeout=30)
    envelope = json.loads(told)
    assert click.returncode == 1
    assert envelope["error"]["disposition"] == {"delivery": "delivery_uncertain", "retry": "never_automatic"}
    code, cleaned = run("session", "gc", cwd=tmp_path)
    assert (code, cleaned["data"]["sessions"][0]["outcome"]) == (0, "recovered")
    assert verified_word(Path(started["ledger"]), tmp_path) == "interrupted"  # recovered, nothing lost
    assert len(app.effects()) <= 1


class Deaf:
    """A daemon that takes one request and goes; it counts how often it was called."""

    def __init__(self, folder: Path) -> None:
        self.calls = 0
        self._listening = private_listener(folder / "deaf.sock")
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.calls += 1
            connection.recv(4096)
            connection.close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.mark.parametrize(("acting", "delivery"), [(True, "delivery_uncertain"), (False, "not_delivered")])
def test_what_a_lost_reply_says_depends_on_what_was_asked(acting: bool, delivery: str) -> None:
    deaf = Deaf(runtime_folder())
    entry = Entry("deaf", os.getpid(), started_at(os.getpid()), "", "", "")
    answer = ask(entry, "click" if acting else "get", {"ref": "@s8f3k2p9:e8"}, acting=acting)
    deaf.close()
    assert answer["error"]["disposition"]["delivery"] == delivery
    assert deaf.calls == 1


def test_no_daemon_at_all_is_certain(runtime: Path) -> None:
    entry = Entry("gone", os.getpid(), started_at(os.getpid()), "", "", "")
    answer = ask(entry, "click", {}, acting=True)
    assert answer["error"]["disposition"]["delivery"] == "not_delivered"


def test_the_kernel_says_whose_process_asks(tmp_path: Path) -> None:
    listening = private_listener(tmp_path / "s")
    ours = socket.socket(socket.AF_UNIX)
    ours.connect(str(tmp_path / "s"))
    theirs, _ = listening.accept()
    assert peer_uid(theirs) == os.getuid()
    for one in (ours, theirs, listening):
        one.close()


async def test_another_user_is_not_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ways_world import simulated

    from deskcert.ways import daemon as daemon_module

    monkeypatch.setattr(daemon_module, "peer_uid", lambda _: os.getuid() + 1)
    async with simulated(tmp_path / "w", "cli") as world:
        served = daemon_module.Daemon(world.opened, idle_s=60)
        server = await asyncio.start_unix_server(served.client, path=str(tmp_path / "s"))
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "s"))
        writer.write(b'{"id":1,"command":"status","args":{}}\n')
        try:
            answer = await asyncio.wait_for(reader.read(), 10)
        except ConnectionResetError:  # closed with the request unread
            answer = b""
        assert answer == b""
        writer.close()
        server.close()


async def test_an_idle_daemon_ends_and_a_busy_one_does_not(tmp_path: Path) -> None:
    from ways_world import simulated

    from deskcert.ways.daemon import Daemon

    async with simulated(tmp_path, "cli") as world:
        idle = Daemon(world.opened, idle_s=0.05)
        assert "nobody asked" in await asyncio.wait_for(idle.until_ended(), 10)
        busy = Daemon(world.opened, idle_s=0.05)
        busy._busy = 1
        waiting = asyncio.ensure_future(busy.until_ended())
        done, _ = await asyncio.wait({waiting}, timeout=0.3)
        assert not done
        busy.end("told to")
        assert await waiting == "told to"


def test_a_folder_that_others_can_write_is_refused(runtime: Path) -> None:
    runtime.mkdir(parents=True, mode=0o777)
    runtime.chmod(0o777)
    with pytest.raises(UsageError, match="private folder"):
        runtime_folder()


def test_which_session_is_meant() -> None:
    with pytest.raises(UsageError, match="session start"):
        choose(None)
    pid = os.getpid()
    for name in ("one", "two"):
        remember(Entry(name, pid, started_at(pid), "http://x/", "/nowhere", "/nowhere"))
    remember(Entry("dead", pid, "1", "http://x/", "/nowhere", "/nowhere"))
    with pytest.raises(UsageError, match="one, two"):
        choose(None)
    assert choose("two").name == "two"
    with pytest.raises(UsageError, match="dead"):
        choose("dead")
    assert [e.name for e in entries()] == ["one", "two"]
    assert len(read_all()) == 3


USAGE = {
    "no session": (("snapshot",), "session start"),
    "an argument missing": (("click",), "REF"),
    "an unknown option": (("snapshot", "--interactive"), "--interactive"),
    "a wrong word": (("is", "@s8f3k2p9:e8", "enabledd"), "enabled"),
    "a wrong number": (("click", "@s8f3k2p9:e8", "--timeout-ms", "soon"), "soon"),
    "no policy file": (("session", "start", "--url", "http://127.0.0.1/", "--policy", "none.yaml"), "none.yaml"),
    "a bad name": (("session", "start", "--url", "http://x/", "--policy", "p", "--name", "../x"), "small letters"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage_errors_are_envelopes_with_exit_code_2(case: str, tmp_path: Path) -> None:
    arguments, word = USAGE[case]
    code, envelope = run(*arguments, cwd=tmp_path)
    assert code == 2
    assert envelope["error"]["code"] == "INVALID_ARGS"
    assert word in envelope["error"]["message"]


def test_a_one_shot_command_imports_nothing_heavy(tmp_path: Path) -> None:
    """What its start costs: `python -c "import click"` and little more. The ratio is printed by the benchmark."""
    code = (
        "import sys\nfrom deskcert.cli.main import main\n"
        "try:\n    main(['status'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'asyncio', 'jsonschema', 'structlog', 'yaml', 'regex', 'cryptography', 'deskcert.guard', "
        "'deskcert.session', 'deskcert_ledger', 'playwright', 'mcp', 'subprocess'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("heavy: []\n")
