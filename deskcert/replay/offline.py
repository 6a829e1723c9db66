"""A recorded run driven again with its network from the recording: no application, only what its tape holds.

The page loads from the tape, the guard is asked the same commands, and dispositions and denials are compared. What the
application did by itself (a push, a perturbation) is not on the tape, and no oracle can be asked: there are no effects.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from deskcert.agents.channel import Answer, Ended, Task
from deskcert.audit.story import read_whole
from deskcert.replay.live import Outcome, compare, nodes_of
from deskcert.replay.player import play
from deskcert.replay.script import Script, script_of
from deskcert_ledger import openings
from deskcert_schema.errors import HarnessError, UsageError
from deskcert_schema.vocabulary import Mode

__all__ = ["drive_offline", "tape_of"]

_READY_S: Final = 30
_PROGRAM: Final = "import sys; from deskcert.cli.main import main; sys.exit(main())"


def tape_of(folder: Path) -> Path:
    """Where `deskcert ci --tape` put the flows of this run. Raises `UsageError` where there are none."""
    tape = folder.resolve().parents[1] / "proxy" / folder.name / "tape"
    if not (tape / "flows.jsonl").is_file():
        raise UsageError(
            f"{folder.name} has no recorded network ({tape} is not there)."
            " Record it with: deskcert ci --proxy required --tape"
        )
    return tape


def drive_offline(folder: Path, out: Path, *, tape: Path) -> Outcome:
    """Raises `UsageError` for a run that cannot be driven so, `HarnessError` when none came about."""
    records = list(read_whole(folder))
    start = records[0].data
    script = script_of(records, openings(folder), lambda seen: nodes_of(folder, seen))
    first = next((r.data["window"]["url"] for r in records if r.kind == "observation"), "")
    if not str(first).startswith("http://"):
        raise UsageError(
            f"{folder.name}: only a run over http can be driven from its tape, this one began at {first!r}"
        )
    out.mkdir(parents=True, exist_ok=True)
    again = asyncio.run(_run(start, script, str(first), out, tape))
    # An oracle asks the application, and there is none.
    found = [d for d in compare(records, list(read_whole(again))) if not d.what.startswith("oracle")]
    notes = [*script.notes, "effects and oracle are not compared: there was no application"]
    return Outcome(folder, again, tuple(found), tuple(notes))


async def _run(start: Mapping[str, Any], script: Script, first: str, out: Path, tape: Path) -> Path:
    from deskcert.adapters.web.browser import ARGS
    from deskcert.certify.guarded import WarmBrowser
    from deskcert.ways.opening import Wanted, begin_at, open_on
    from deskcert_proxy.chromium import chromium_arguments, missing_arguments

    policy: Mapping[str, Any] = start["policy"]["content"]
    arguments = chromium_arguments()
    assert not missing_arguments([*ARGS, *arguments])
    async with _proxy(policy, out, tape) as server, WarmBrowser.started(_nothing, arguments) as browser:
        adapter = await (await browser.living()).open_tabs(proxy=server)
        try:
            await begin_at(adapter, first)
            budget = start.get("scenario", {}).get("budget", {})
            wanted = Wanted(
                url=first,
                policy=policy,
                way="python",
                out=out / "runs",
                base=Path.cwd(),
                actions=budget.get("actions"),
                seconds=budget.get("seconds"),
                mode=Mode(start.get("mode", Mode.HEADLESS)),
            )
            facts = {**(await browser.facts()).recorded()}
            opened = await open_on(adapter, wanted, lease=browser.lease, custody="owned", browser=facts)
        except BaseException:
            await adapter.close()
            raise
        try:
            await asyncio.to_thread(play, script.as_json(), _Direct(opened.handle, asyncio.get_running_loop(), first))
        except Ended:
            pass
        finally:
            await opened.close(reason="the recorded moves were made")
        return opened.folder


def _nothing(_: str) -> None:
    return None


@asynccontextmanager
async def _proxy(policy: Mapping[str, Any], out: Path, tape: Path) -> AsyncIterator[str]:
    """`deskcert proxy --replay` as a process of its own; its address."""
    path = out / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")
    words = ["proxy", "--policy", path, "--ledger", out / "proxy-ledger", "--listen", "127.0.0.1:0", "--replay", tape]
    with (out / "proxy.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _PROGRAM, *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=log
        )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _READY_S)
        if not line.startswith(b"listening on "):
            raise HarnessError(f"the replaying proxy did not start: see {out / 'proxy.log'}")
        yield line.decode().removeprefix("listening on ").strip()
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


class _Direct:
    """The player's channel, without a process between: it asks the session itself, from another thread."""

    def __init__(self, handle: Any, loop: asyncio.AbstractEventLoop, first: str) -> None:
        self._handle, self._loop, self._first = handle, loop, first

    def task(self) -> Task:
        return Task("", self._first, None, None)

    def ask(self, command: str, **args: Any) -> Answer:
        return Answer.read(asyncio.run_coroutine_threadsafe(self._handle(command, args), self._loop).result())
