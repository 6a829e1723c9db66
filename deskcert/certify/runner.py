"""One run: a ledger, the application, a browser context, a guarded session, an agent, and at the end the oracle.

Whatever fails here is recorded and the run ends with `run.end` and a sealed ledger; only a ledger that cannot be
written, or the death of deskcert, leaves it open. Whether the run passed is not decided here: scoring reads the ledger.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import structlog

from deskcert.certify.agent_process import AgentEnd, Ended
from deskcert.certify.config import AgentSpec
from deskcert.certify.env_secrets import NOTHING_SECRET, EnvSecrets
from deskcert.certify.fixture import Perturbed
from deskcert.certify.forks import Forks
from deskcert.certify.oracle import OracleAnswers
from deskcert.certify.progress import LiveRun, Progress
from deskcert.certify.recorder import Recorder
from deskcert.certify.second_line import SecondLine
from deskcert.certify.suite import Planned
from deskcert.certify.under_test import UnderTest
from deskcert.session.jsonlines import Task
from deskcert.ways.agents import agent_run
from deskcert.ways.guarding import About
from deskcert.ways.isolation import Sandbox
from deskcert_schema.errors import AdapterError, DeskcertError, HarnessError, LedgerUnavailable
from deskcert_schema.vocabulary import PipelinePoint, RecordKind

if TYPE_CHECKING:
    from deskcert_ledger import Sealed

__all__ = ["Guarded", "Interrupted", "OpenGuarded", "PointCallback", "RunReport", "Runner"]

_LOG = structlog.get_logger(__name__)
_QUIET_S = 5.0
"""How long the application may take to finish the requests that it has begun, before the oracle looks."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """For the display and the exit; never evidence."""

    run: str
    folder: Path
    planned: Planned
    outcome: str
    """`run.end`'s: `finished | budget | error | interrupted`."""
    sentence: str
    sealed: Sealed | None
    """None when the ledger could not be sealed."""


@dataclass(slots=True)
class _State:
    end: AgentEnd | None = None
    claim: str | None = None
    trouble: list[tuple[str, str]] = field(default_factory=list)
    """(component, detail): trouble of the harness, which is not the agent's."""
    answers: OracleAnswers | None = None
    interrupted: bool = False
    ledger_lost: str | None = None
    applied: set[int] = field(default_factory=set)


class Guarded(Protocol):
    """The guarded way to the application in one run (`guarded.py`)."""

    desktop: bool
    """It is a program on a desktop, not a page."""

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]: ...

    async def lost(self) -> str | None:
        """Why the browser can no longer be used, if so."""
        ...

    async def close(self) -> None: ...


type PointCallback = Callable[[PipelinePoint, int], Awaitable[None]]
"""Told each pipeline point with the number of the acting command, 1 for the run's first."""
type OpenGuarded = Callable[[Recorder, Planned, str, PointCallback, SecondLine | None], Awaitable[Guarded]]
"""(recorder, planned, start URL, at, second line) → the way in. Raises `HarnessError` or `AdapterError`."""


type Judge = Callable[[RunReport], tuple[bool, str]]
"""Whether the run is as it should be, and its outcome in a word, for the display: scoring's answer."""


class Runner:
    def __init__(
        self,
        planned: Planned,
        live: LiveRun,
        *,
        folder: Path,
        recorder: Recorder,
        application: Awaitable[UnderTest],
        open_guarded: OpenGuarded,
        agent: AgentSpec,
        cwd: Path,
        token: str,
        judge: Judge,
        progress: Progress,
        sandbox: Sandbox | None = None,
        policy: Mapping[str, Any] | None = None,
        second_line: Awaitable[SecondLine] | None = None,
        secrets: EnvSecrets = NOTHING_SECRET,
        forks: Forks | None = None,
        own: bool = False,
    ) -> None:
        """`own`: the application is the user's, which has no effect log."""
        self._own = own
        self._secrets, self._forks = secrets, forks
        self._sandbox = sandbox if sandbox is not None else Sandbox("none", cwd)
        self._policy = policy or {}
        self._planned, self._live, self._folder, self._recorder = planned, live, folder, recorder
        self._application, self._open_guarded = application, open_guarded
        self._agent, self._cwd, self._token, self._progress = agent, cwd, token, progress
        self._judge, self._second_line = judge, second_line
        self._state = _State()

    async def run(self) -> RunReport:
        """Never raises but for cancellation's sake, and then only after the ledger is sealed."""
        started = time.monotonic()
        self._progress.started(self._live)
        cancelled: asyncio.CancelledError | None = None
        try:
            await self._inside()
        except asyncio.CancelledError as exc:
            self._state.interrupted, cancelled = True, exc
        except LedgerUnavailable as exc:
            self._state.ledger_lost = str(exc)
        except _Recorded:
            pass
        except Exception as exc:
            # Whatever it is, it is not the agent's: the ledger is closed in order, and the run decides nothing.
            _LOG.exception("run failed", run=self._live.run)
            self._state.trouble.append(("deskcert", self._secrets.scrub(f"{type(exc).__name__}: {exc}")))
        report = await asyncio.shield(self._seal())
        good, word = await asyncio.to_thread(self._judge, report)
        self._progress.ended(self._live, f"{word}: {report.sentence}", good=good, seconds=time.monotonic() - started)
        if cancelled is not None:
            raise Interrupted(report) from cancelled
        return report

    async def _inside(self) -> None:
        state = self._state
        application = await self._part("application", self._application)
        line = None
        try:
            line = None if self._second_line is None else await self._part("proxy", self._second_line)
            if line is not None:
                line.bind(self._recorder.ledger)
            start = self._planned.scenario.start
            url = await self._part("application", application.prepare(start, seed=self._planned.seed))
            at = self._perturber(application)
            guarded = await self._part("browser", self._open_guarded(self._recorder, self._planned, url, at, line))
            try:
                state.end = await self._in_line(line, application, self._lead_agent(guarded, url))
                if (why := await guarded.lost()) is not None:
                    state.trouble.append(("browser", why))
            finally:
                # The page must be gone before the oracle looks: it could go on writing.
                await asyncio.shield(_quietly(guarded.close()))
            await self._ask_oracle(application)
        finally:
            if line is not None:
                await asyncio.shield(line.stop())
            await asyncio.shield(application.close())

    async def _in_line(
        self, line: SecondLine | None, application: UnderTest, leading: Coroutine[Any, Any, AgentEnd]
    ) -> AgentEnd:
        """Leads the agent between two proofs that what the page writes comes to the proxy. A proxy that dies meanwhile
        ends the run: the browser has no network any more."""
        if line is None:
            return await leading
        try:
            await self._part("proxy", line.prove([application.url], "start"))
        except BaseException:
            leading.close()
            raise
        led, gone = asyncio.ensure_future(leading), asyncio.ensure_future(line.gone())
        try:
            await asyncio.wait({led, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not led.done():
                led.cancel()
                await asyncio.gather(led, return_exceptions=True)
        if line.lost is not None:
            self._state.trouble.append(("proxy", line.lost))
            raise _Recorded
        await self._part("proxy", line.prove([application.url], "end"))
        return led.result()

    async def _part[T](self, component: str, work: Awaitable[T]) -> T:
        """What fails here is the harness's fault. Raises `HarnessError`."""
        try:
            return await work
        except (HarnessError, AdapterError) as exc:
            self._state.trouble.append((component, self._secrets.scrub(str(exc))))
            raise _Recorded from exc

    async def _lead_agent(self, guarded: Guarded, url: str) -> AgentEnd:
        scenario = self._planned.scenario

        async def handle(command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
            envelope = await guarded.handle(command, args)
            ok = envelope.get("ok") is True
            if command == "finish" and ok:
                self._state.claim = str(args.get("outcome"))
            self._progress.acted(self._live, command, ok)
            return envelope

        agent = agent_run(
            self._agent.transport,
            self._agent.command_for(scenario.plan),
            sandbox=self._sandbox,
            about=About(
                self._live.run,
                policy=self._policy,
                facts={"isolation": self._sandbox.kind},
                desktop=guarded.desktop,
            ),
            folder=self._folder,
            token=self._token,
            handle=handle,
            note=self._recorder.agent_event,
            keep_environment=(*self._agent.environment, *(scenario.plan_secrets if self._agent.builtin else ())),
            cwd=self._cwd,
            secrets=self._secrets,
            forks=self._forks if self._agent.builtin else None,
        )
        task = self._secrets.fill(scenario.instruction)
        return await agent.run(Task(task, url, scenario.actions, scenario.seconds))

    def _perturber(self, application: UnderTest) -> PointCallback:
        """Changes the application where the scenario says so, once each, and records what came of it."""

        async def at(point: PipelinePoint, action: int) -> None:
            for index, wanted in enumerate(self._planned.scenario.perturb):
                if wanted.at != point or wanted.action != action or index in self._state.applied:
                    continue
                self._state.applied.add(index)
                try:
                    done = await application.perturb(wanted.do, wanted.args)
                except HarnessError as exc:
                    done = Perturbed(False, str(exc))
                told: dict[str, Any] = {"at": str(point), "action": action, "do": wanted.do, "args": dict(wanted.args)}
                told["applied"] = done.applied
                if done.why is not None:
                    told["why"] = done.why
                await self._recorder.write(RecordKind.PERTURBATION, told)

        return at

    async def _ask_oracle(self, application: UnderTest) -> None:
        await self._part("application", application.quiet(_QUIET_S))
        items = self._planned.scenario.oracle
        answers = await application.ask(items, token=self._token)
        self._state.answers = answers
        for index, (item, answer) in enumerate(zip(items, answers.answers, strict=True)):
            told = {"item": dict(item), "index": index, "holds": answer.holds, "observed": answer.observed}
            await self._recorder.write(RecordKind.ORACLE, told)

    async def _seal(self) -> RunReport:
        """`run.end`, seal. Says what happened even where the ledger no longer can."""
        state = self._state
        outcome, reason = _outcome(state)
        sealed = None
        try:
            for component, detail in state.trouble:
                await self._recorder.lost(component, detail)
            unasked = "none" if self._own else "disabled"
            log = unasked if state.answers is None else state.answers.effects_log
            told: dict[str, Any] = {"outcome": outcome, "reason": reason, "effects_log": log}
            told["harness_ok"] = not state.trouble
            if state.answers is not None:
                told["effects_via"] = dict(state.answers.via)
            await self._recorder.write(RecordKind.RUN_END, told)
            sealed = await asyncio.to_thread(self._recorder.ledger.seal)
        except LedgerUnavailable as exc:
            state.ledger_lost = state.ledger_lost or str(exc)
            outcome, reason = "error", f"the ledger could not be written: {state.ledger_lost}"
        holds = state.answers is not None and all(a.holds is True for a in state.answers.answers)
        return RunReport(
            run=self._live.run,
            folder=self._folder,
            planned=self._planned,
            outcome=outcome,
            sentence=_sentence(state, reason, holds),
            sealed=sealed,
        )


class Interrupted(Exception):
    """The run was cut short from outside; its ledger is sealed and says so."""

    def __init__(self, report: RunReport) -> None:
        self.report = report
        super().__init__(report.sentence)


class _Recorded(DeskcertError):
    """The trouble is in the state already."""


def _outcome(state: _State) -> tuple[str, str]:
    if state.interrupted:
        return "interrupted", "the user or the system ended deskcert"
    if state.trouble or state.ledger_lost is not None:
        return "error", state.trouble[0][1] if state.trouble else str(state.ledger_lost)
    assert state.end is not None
    match state.end.how:
        case Ended.FINISHED | Ended.EXITED:
            return "finished", state.end.sentence
        case Ended.BUDGET:
            return "budget", state.end.sentence
        case Ended.CRASHED | Ended.PROTOCOL | Ended.NOT_STARTED:
            return "error", state.end.sentence
        case never:
            assert_never(never)


def _sentence(state: _State, reason: str, holds: bool) -> str:
    if state.claim is None or state.answers is None:
        return reason
    if any(a.holds is None for a in state.answers.answers):
        return f"claimed {state.claim}; the outcome could not be established"
    return f"claimed {state.claim}; the oracle {'holds' if holds else 'does not hold'}"


async def _quietly(work: Awaitable[None]) -> None:
    """A browser that cannot even be closed is found and replaced before the next run."""
    with contextlib.suppress(DeskcertError, OSError):
        await work
