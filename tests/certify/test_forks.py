"""A forked program is the process that `python -m` would have been: its own, with its own streams and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from deskcert.certify.fixture import Application
from deskcert.certify.forks import Forked, Forks, start_program
from deskcert.certify.kept import Kept
from deskcert.certify.processes import child_environment

PIPE = asyncio.subprocess.PIPE
TOKEN = f"forks{os.getpid()}"


@pytest.fixture
async def forks(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Forks]:
    monkeypatch.setenv("CI_JOB_TOKEN", "not for anybody below")
    async with Forks.started(TOKEN) as started:
        assert started is not None
        yield started


def server_of(process: Forked) -> int:
    return int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])


async def ask_oracle(forks: Forks | None, folder: Path) -> tuple[object, object]:
    """What it says about an empty log, and which process said so."""
    (folder / "effects.jsonl").write_text("")
    question = {
        "items": [{"no_effect": {"kind": "order.approved"}}],
        "ground": {"database": None, "files": str(folder)},
    }
    from deskcert.certify.questions import Ground

    question["ground"] = Ground(folder / "app.sqlite", folder).as_json()
    question["effects"] = str(folder / "effects.jsonl")  # type: ignore[assignment]
    process = await start_program(
        forks, "deskcert.certify.oracle", stdin=PIPE, stdout=PIPE, stderr=PIPE, env=child_environment(TOKEN), cwd=None
    )
    out, err = await process.communicate(json.dumps(question).encode())
    assert err == b""
    return json.loads(out), process


async def test_a_forked_program_answers_as_a_started_one(forks: Forks, tmp_path: Path) -> None:
    forked, one = await ask_oracle(forks, tmp_path)
    started, other = await ask_oracle(None, tmp_path)
    assert forked == started
    assert isinstance(one, Forked)
    assert not isinstance(other, Forked)
    assert one.returncode == 0


async def test_a_forked_application_has_a_session_streams_and_environment_of_its_own(
    forks: Forks, tmp_path: Path
) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        folder.mkdir()
    one = await Application.start(first, token=TOKEN, forks=forks)
    two = await Application.start(second, token=TOKEN, forks=forks)
    try:
        processes = [app._process for app in (one, two)]
        assert all(isinstance(p, Forked) for p in processes)
        for app, process in zip((one, two), processes, strict=True):
            place = Path(f"/proc/{process.pid}")
            assert os.getsid(process.pid) == process.pid
            assert (place / "cwd").resolve() == app.folder.resolve()
            assert b"not for anybody" not in (place / "environ").read_bytes()
            held = {str((place / "fd" / name).readlink()) for name in os.listdir(place / "fd")}
            other = (two if app is one else one).folder
            assert not any(h.startswith(str(other)) for h in held)
            # Its two ports, the pair that wakes its event loop, and nothing of the server that forked it.
            assert sum(h.startswith("socket:") for h in held) == 4
        assert len({p.pid for p in processes}) == 2
    finally:
        await one.close()
        await two.close()
    assert [p.returncode for p in processes] == [0, 0]


async def test_what_kills_a_forked_program_is_told(forks: Forks, tmp_path: Path) -> None:
    app = await Application.start(tmp_path, token=TOKEN, forks=forks)
    assert app.alive
    app._process.kill()
    assert await app._process.wait() == -9
    assert not app.alive
    await app.close()


async def test_a_kept_agent_is_forked_below_its_own_keeper(forks: Forks, tmp_path: Path) -> None:
    words = (sys.executable, "-m", "deskcert.agents", "silent")
    kept = await Kept.start(
        words, env=child_environment(TOKEN), cwd=tmp_path, stdin=PIPE, stdout=PIPE, stderr=PIPE, forks=forks
    )
    assert kept.forked
    assert kept.stdin is not None
    assert kept.stderr is not None
    kept.stdin.write(b'{"type": "task", "task": "t", "start_url": "u", "budget": {}}\n')
    assert await kept.exited() == 0
    assert await kept.stderr.read() == b""
    ended, left = await kept.end(polite_s=2.0)
    assert ended
    assert left == 0
    assert kept.gone


async def test_an_agent_that_deskcert_does_not_know_is_started_as_ever(forks: Forks, tmp_path: Path) -> None:
    for words in (
        (sys.executable, "-c", "print(1)"),
        (sys.executable, "-m", "this"),
        ("python3", "-m", "deskcert.agents", "silent"),
        ("bwrap", sys.executable, "-m", "deskcert.agents", "silent"),
        (sys.executable, "-m"),
    ):
        assert not forks.can(words)


async def test_without_its_server_nothing_forked_lives_on_and_programs_start_as_ever(
    forks: Forks, tmp_path: Path
) -> None:
    app = await Application.start(tmp_path, token=TOKEN, forks=forks)
    assert isinstance(app._process, Forked)
    os.kill(server_of(app._process), 9)
    assert await app._process.wait() == -9
    answers, process = await ask_oracle(forks, tmp_path)
    assert not isinstance(process, Forked)
    assert answers["answers"][0]["holds"] is True  # type: ignore[index]
    await app.close()
