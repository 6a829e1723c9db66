"""Pipeline points: the hook's order, and the pause in which a test stops or kills a real process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from guarded_world import Guarded, orders

from deskcert.session import Pause, PauseAt, all_of, pause_from
from deskcert_ledger import read_records
from deskcert_schema.errors import UsageError
from deskcert_schema.vocabulary import PipelinePoint

CLICK = """
import asyncio, os, sys
from pathlib import Path
sys.path.insert(0, {here!r})
from guarded_world import Guarded
from deskcert.session import Pause, pause_from

async def main():
    guarded = Guarded(Path({folder!r}), at_point=Pause(pause_from(os.environ)))
    for name in ("Approve in Order 1001", "Approve in Order 1002"):
        refs = await guarded.refs()
        await guarded("click", ref=refs[name])
    print(len(guarded.world.delivered))
    guarded.ledger.seal()

asyncio.run(main())
"""


def _started(folder: Path, pause_at: str) -> subprocess.Popen:
    code = CLICK.format(here=str(Path(__file__).parent), folder=str(folder))
    environment = {**os.environ, "DESKCERT_PAUSE_AT": pause_at, "DESKCERT_PAUSE_FILE": str(folder / "paused")}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE)


@pytest.mark.parametrize(
    ("pause_at", "kinds"),
    [
        ("leased", ["observation"]),
        ("intent_recorded", ["observation", "action.intent"]),
        ("dispatched", ["observation", "action.intent"]),
        ("verified", ["observation", "action.intent"]),
        ("result_recorded", ["observation", "action.intent", "action.result"]),
        ("intent_recorded:2", ["observation", "action.intent", "action.result"] * 2),
    ],
)
def test_the_process_stops_itself_there_and_what_it_acknowledged_is_durable(tmp_path, pause_at, kinds) -> None:
    process = _started(tmp_path, pause_at)
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        assert os.WSTOPSIG(status) == signal.SIGSTOP
        assert (tmp_path / "paused").read_text() == pause_at.partition(":")[0]
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
    found = [r.kind for r in read_records(tmp_path / "run") if r.kind.startswith(("obs", "action"))]
    due = [k for k in kinds if k.startswith("action")]
    recorded = [k for k in found if k.startswith("action")]
    assert recorded == (due[:3] if pause_at.endswith(":2") else due)


def test_a_stopped_process_goes_on_where_it_stood(tmp_path) -> None:
    process = _started(tmp_path, "dispatched")
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, b"2\n")
    finally:
        process.kill()


async def test_hooks_are_called_in_their_order_and_with_the_actions_number(tmp_path) -> None:
    seen: list[tuple[str, str, int]] = []

    def named(name: str):
        async def at(point: PipelinePoint, action: int) -> None:
            seen.append((name, point.value, action))

        return at

    guarded = Guarded(tmp_path, orders(), at_point=all_of(named("first"), named("second")))
    for name in ("Approve in Order 1001", "Approve in Order 1002"):
        refs = await guarded.refs()
        await guarded("click", ref=refs[name])
    assert seen[::2] == [("first", p, a) for _, p, a in seen[1::2]]
    one = ["observed", "resolved", "actionable", "leased", "intent_recorded", "dispatched", "reached", "verified"]
    assert [(p, a) for n, p, a in seen if n == "first"] == [(p, a) for a in (1, 2) for p in (*one, "result_recorded")]


async def test_the_pause_counts_over_the_process_and_stops_once(tmp_path) -> None:
    stops: list[str] = []
    pause = Pause(PauseAt(PipelinePoint.LEASED, 2, tmp_path / "p"), stop=lambda: stops.append("stopped"))
    for _ in range(3):
        await pause(PipelinePoint.RESOLVED, 1)
        await pause(PipelinePoint.LEASED, 1)
    assert stops == ["stopped"]


def test_it_is_off_unless_set_and_a_wrong_setting_is_a_usage_error() -> None:
    assert pause_from({}) is None
    assert pause_from({"DESKCERT_PAUSE_FILE": "/x"}) is None
    found = pause_from({"DESKCERT_PAUSE_AT": "verified:3", "DESKCERT_PAUSE_FILE": "/x"})
    assert (str(found), found and found.file) == ("verified:3", Path("/x"))
    for text in ("nowhere", "leased:0", "leased:x", "leased:", "leased:-1", ":2"):
        with pytest.raises(UsageError, match="DESKCERT_PAUSE_AT"):
            pause_from({"DESKCERT_PAUSE_AT": text, "DESKCERT_PAUSE_FILE": "/x"})
    with pytest.raises(UsageError, match="DESKCERT_PAUSE_FILE"):
        pause_from({"DESKCERT_PAUSE_AT": "leased"})
