"""All runs of one `deskcert ci`: the plan, one warm browser, the workers, and an orderly end whatever happens.

    <out>/runs/<run>/    the evidence: ledger, blobs, agent.stderr
    <out>/app/<run>/     the application's database and its own log of effects, which the oracle reads
    <out>/proxy/<run>/   the proxy's authority and its own messages, no evidence
    <out>/run.log        application log, no evidence

The design refuses a ledger folder that the agent can write. With `isolation: none` the agent runs as the same user, so
every folder is one and there is nothing to choose: `run.start` records the isolation, and the gate can require another.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from deskcert.certify.config import Settings
from deskcert.certify.desktop import DesktopApplication, desktop_opener, no_browser
from deskcert.certify.fixture import Application
from deskcert.certify.forks import Forks
from deskcert.certify.guarded import WarmBrowser, opener
from deskcert.certify.https import Trust
from deskcert.certify.out_folder import only_one, recover
from deskcert.certify.own_app import OwnApplication
from deskcert.certify.own_desktop import OwnDesktop
from deskcert.certify.preflight import preflight
from deskcert.certify.progress import LiveRun, Progress
from deskcert.certify.reaper import TOKEN_VARIABLE, Reaper
from deskcert.certify.recorder import Recorder
from deskcert.certify.resume import NOTHING_EARLIER, Earlier, earlier_runs, left_over
from deskcert.certify.runner import Interrupted, OpenGuarded, Runner, RunReport
from deskcert.certify.scrubbed import without_secrets
from deskcert.certify.second_line import SecondLine, browser_arguments, settled
from deskcert.certify.start_record import BrowserFacts, start_payload
from deskcert.certify.suite import Planned, Suite, make_plan, policy_for
from deskcert.certify.under_test import UnderTest
from deskcert.certify.vouching import log_of, witness_of
from deskcert.scoring.plan import Charter
from deskcert.session.points import Pause, PauseAt, nothing
from deskcert.ways.isolation import Sandbox
from deskcert_schema.errors import ConfigError, HarnessError, LedgerUnavailable

if TYPE_CHECKING:
    from deskcert_ledger import ProjectKey
    from deskcert_ledger.witness import WitnessProcess

__all__ = ["CampaignResult", "only_one", "run_campaign"]

_LOG = structlog.get_logger(__name__)
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class CampaignResult:
    reports: tuple[RunReport, ...]
    """Every run that was started, in the order of the plan."""
    not_run: tuple[Planned, ...]
    interrupted: bool
    earlier: tuple[Path, ...]
    """Run folders of the same certification from before it was interrupted."""
    recovered: tuple[Path, ...]
    """Run folders of an earlier campaign that it left open; closed now, and no part of this verdict."""


async def run_campaign(
    settings: Settings,
    suite: Suite,
    *,
    out: Path,
    key: ProjectKey,
    pause: PauseAt | None,
    progress: Progress,
    tried: bool = False,
    weighing: bool = False,
    resume: bool = False,
) -> CampaignResult:
    """`out` is this process's alone (`only_one`). Trouble of single runs is in their ledgers. `tried`: the suite has
    been asked about already (`preflight`). `weighing`: it is run to find out what its scenarios are worth.
    `resume`: go on with the one that was interrupted in `out`.

    Raises `UsageError` where `out` holds other runs than those, `ConfigError` for words that the application does not
    know, `HarnessError` when there is no browser."""
    settings = settled(settings, suite, progress.note)
    whole = make_plan(suite, trials=settings.trials, seed=settings.seed)
    plan = settings.shard.share(whole)
    if suite.app is not None and suite.app.shared and settings.workers > 1:
        raise ConfigError(
            f"{suite.app.where}: app: its url has no {{port}}, so all runs share one application and come one after the"
            f" other, but there are {settings.workers} workers; write {{port}} into command and url, or workers: 1"
        )
    if not tried:
        await preflight(suite, token=secrets.token_hex(8), weighing=weighing)
    recovered = recover(out / "runs", key, progress)
    campaign = _Campaign(settings, suite, plan, whole, out=out, key=key, pause=pause, progress=progress)
    if resume:
        campaign.go_on(earlier_runs(out, plan, campaign.charter, key, progress.note))
    await campaign.run()
    done = {id(r.planned) for r in campaign.reports}
    return CampaignResult(
        reports=tuple(sorted(campaign.reports, key=lambda r: plan.index(r.planned))),
        not_run=tuple(p for _, p in left_over(campaign.earlier.done, plan) if id(p) not in done),
        interrupted=campaign.interrupted,
        earlier=campaign.earlier.folders,
        recovered=recovered,
    )


class _Campaign:
    def __init__(
        self,
        settings: Settings,
        suite: Suite,
        plan: Sequence[Planned],
        whole: Sequence[Planned],
        *,
        out: Path,
        key: ProjectKey,
        pause: PauseAt | None,
        progress: Progress,
    ) -> None:
        self._settings, self._suite, self._plan, self._out = settings, suite, plan, out
        self._whole = whole
        self._key, self._progress = key, progress
        self._pause_at = None if pause is None else str(pause)
        self._at_point = nothing if pause is None else Pause(pause)
        self._token = secrets.token_hex(8)
        self._log = log_of(settings.base, key, progress)
        self._certification = settings.shard.certification()
        self._trust = Trust(len(plan), proxied=settings.proxy != "off", https=suite.https)
        self._todo = list(enumerate(plan, start=1))
        self._failures = 0
        self.earlier = NOTHING_EARLIER
        self._forks: Forks | None = None
        self._witness: WitnessProcess | None = None
        self.reports: list[RunReport] = []
        self.interrupted = False

    def go_on(self, earlier: Earlier) -> None:
        """Leave out what is done."""
        self.earlier = earlier
        self._certification = earlier.certification or self._certification
        self._todo = left_over(earlier.done, self._plan)

    def charter(self, certification: str) -> Charter:
        """What this campaign's runs would have in common, were it this certification."""
        return Charter.read(self._start(self._plan[0], run="", certification=certification, browser=None))

    def _start(self, planned: Planned, *, run: str, certification: str, browser: BrowserFacts | None) -> dict[str, Any]:
        return start_payload(
            planned,
            run=run,
            certification=certification,
            settings=self._settings,
            suite=self._suite,
            plan=self._whole,
            browser=browser,
            pause_at=self._pause_at,
            set_aside=self.earlier.set_aside,
        )

    async def run(self) -> None:
        if not self._todo:
            return
        reaper = Reaper(self._token)
        # Playwright starts its driver with our environment, and the browser inherits it: that is how they are found.
        outer = os.environ.get(TOKEN_VARIABLE)
        os.environ[TOKEN_VARIABLE] = self._token
        self._witness = witness_of(progress=self._progress)
        try:
            arguments = browser_arguments(self._settings, self._trust.hashes)
            async with (
                Forks.started(self._token) as self._forks,
                self._browser(arguments) as browser,
            ):
                workers = [asyncio.create_task(self._work(browser)) for _ in range(self._workers())]
                with self._ended_by_signal(workers):
                    results = await asyncio.gather(*workers, return_exceptions=True)
        finally:
            os.environ.pop(TOKEN_VARIABLE)
            if outer is not None:
                os.environ[TOKEN_VARIABLE] = outer
            await asyncio.to_thread(reaper.close)
            self._leave_log()
            if self._witness is not None:
                self._witness.close()
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result

    def _browser(self, arguments: Sequence[str]) -> AbstractAsyncContextManager[WarmBrowser | None]:
        if self._suite.desktop:
            return no_browser()
        return WarmBrowser.started(self._progress.note, arguments, headed=self._settings.headed)

    def _leave_log(self) -> None:
        from deskcert_ledger.project_log import COPY

        try:
            if self._log is not None:
                self._log.copy(self._out / COPY)
        except LedgerUnavailable as exc:
            self._progress.note(str(exc))

    def _workers(self) -> int:
        return min(self._settings.workers, len(self._todo))

    @contextmanager
    def _ended_by_signal(self, workers: Sequence[asyncio.Task[None]]) -> Iterator[None]:
        """Ctrl-C and SIGTERM cut the open runs short; their ledgers are sealed, the rest is not run. A second Ctrl-C
        is Python's own."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            self.interrupted = True
            self._todo.clear()
            self._progress.note("interrupted: sealing the open ledger; the rest is not run")
            for worker in workers:
                worker.cancel()
            loop.remove_signal_handler(signal.SIGINT)

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def _work(self, browser: WarmBrowser | None) -> None:
        """One worker: run after run. The next run's application starts while this one goes on."""
        ahead: _Ahead | None = self._next()
        now: _Ahead | None = None
        try:
            while ahead is not None and not self._enough():
                now, ahead = ahead, self._next()
                self.reports.append(await self._one(now, browser))
        except Interrupted as exc:
            self.reports.append(exc.report)
        except LedgerUnavailable as exc:
            # What cannot be recorded is not run; what was recorded is still judged.
            self._todo.clear()
            self._progress.note(f"no further run: {exc}")
        finally:
            for left in (now, ahead):
                if left is not None:
                    await asyncio.shield(left.drop())

    def _next(self) -> _Ahead | None:
        if not self._todo:
            return None
        number, planned = self._todo.pop(0)
        run = f"{planned.scenario.id}-t{planned.trial}-{_random_word(6)}"
        folder = self._out / "app" / run
        folder.mkdir(parents=True)
        certificate = self._trust.certificate(number)
        tls = None if certificate is None else certificate.write(folder)
        application: asyncio.Task[UnderTest] = asyncio.create_task(self._started(folder, tls))
        line = None
        if self._settings.proxy != "off":
            policy, _ = policy_for(self._suite, planned.scenario)
            line = asyncio.create_task(
                SecondLine.start(
                    policy,
                    self._out / "proxy" / run,
                    token=self._token,
                    authority=self._trust.authority(number),
                    trust=None if tls is None else tls[0],
                    tape=self._settings.tape,
                )
            )
        return _Ahead(number, planned, run, application, line)

    async def _started(self, folder: Path, tls: tuple[Path, Path] | None) -> UnderTest:
        if (app := self._suite.app) is not None and app.desktop is not None:
            return await OwnDesktop.start(app, folder, token=self._token, secrets=self._suite.secrets)
        if app is not None:
            return await OwnApplication.start(app, folder, token=self._token, secrets=self._suite.secrets)
        if self._suite.desktop:
            return await DesktopApplication.start(folder, token=self._token)
        return await Application.start(folder, token=self._token, tls=tls, forks=self._forks)

    async def _one(self, now: _Ahead, browser: WarmBrowser | None) -> RunReport:
        from deskcert_ledger import RunLedger, SystemClock
        from deskcert_ledger.keys import project_of

        facts = None if browser is None else await browser.facts()
        folder = self._out / "runs" / now.run
        start = self._start(now.planned, run=now.run, certification=self._certification, browser=facts)
        # A few milliseconds in the event loop: nothing may come between a ledger's first record and its run.
        ledger = RunLedger.create(
            folder,
            origin=f"deskcert/{project_of(self._settings.base)}/{now.run}",
            start=start,
            project_key=self._key,
            clock=SystemClock(),
            rng=secrets.token_bytes,
            register=None if self._log is None else self._log.begin(now.run),
            witness=self._witness,
        )
        scenario = now.planned.scenario
        _LOG.info("run started", run=now.run, seed=now.planned.seed)
        runner = Runner(
            now.planned,
            LiveRun(now.run, scenario.id, scenario.title, now.planned.trial, now.number),
            folder=folder,
            recorder=Recorder(without_secrets(ledger, self._suite.secrets)),
            application=now.application,
            open_guarded=self._opener(now, browser),
            agent=self._settings.agent,
            cwd=self._settings.base,
            token=f"{self._token}.{now.run}",
            judge=self._judge,
            progress=self._progress,
            sandbox=Sandbox(self._settings.isolation, self._settings.base, hidden=self._hidden()),
            policy=start["policy"]["content"],
            second_line=now.line,
            secrets=self._suite.secrets,
            own=self._suite.app is not None,
            forks=self._forks,
        )
        report = await runner.run()
        _LOG.info("run ended", run=now.run, outcome=report.outcome, reason=report.sentence)
        return report

    def _enough(self) -> bool:
        """Whether so many runs failed that no other is wanted; said once."""
        most = self._settings.max_failures
        if most is None or self._failures < most:
            return False
        if self._todo:
            self._todo.clear()
            self._progress.note(f"no further run: {self._failures} failed, and --max-failures is {most}")
        return True

    def _opener(self, now: _Ahead, browser: WarmBrowser | None) -> OpenGuarded:
        screenshots, headed = self._settings.screenshots, self._settings.headed
        if browser is not None:
            return opener(browser, self._suite, self._at_point, screenshots=screenshots)
        return desktop_opener(now.application, self._suite, self._at_point, headed=headed, screenshots=screenshots)

    def _hidden(self) -> tuple[Path, ...]:
        """What an isolated agent sees nothing of: every ledger, the applications' data, the key."""
        from deskcert_ledger import default_key_path

        base = self._settings.base
        told = (self._out.resolve(), base / "deskcert-out", base / ".deskcert", default_key_path(base).resolve())
        return (*told, *(() if self._suite.app is None else self._suite.app.data()))

    def _judge(self, report: RunReport) -> tuple[bool, str]:
        """The same judge as the verdict's, on this run's ledger alone."""
        from deskcert.scoring.evidence import read_run
        from deskcert_schema.vocabulary import RunOutcome

        if report.sealed is None:
            self._failures += 1
            return False, "not sealed"
        judgement = read_run(report.folder, (self._key.verifier,))[0].judgement
        outcome = judgement.outcome
        good = outcome in (RunOutcome.PASSED, RunOutcome.REFUSED_CORRECTLY) and not judgement.findings
        self._failures += not good
        rules = ", ".join(dict.fromkeys(f.about.id for f in judgement.findings))
        return good, outcome.value.replace("_", " ") + (f" ({rules})" if rules else "")


@dataclass(frozen=True, slots=True)
class _Ahead:
    """A run whose application, and proxy if any, is starting."""

    number: int
    planned: Planned
    run: str
    application: asyncio.Task[UnderTest]
    line: asyncio.Task[SecondLine] | None

    async def drop(self) -> None:
        """End what is still there. Again: no harm."""
        with contextlib.suppress(HarnessError, asyncio.CancelledError):
            await (await self.application).close()
        with contextlib.suppress(HarnessError, asyncio.CancelledError):
            if self.line is not None:
                await (await self.line).stop()


def _random_word(length: int) -> str:
    return "".join(secrets.choice(_DIGITS) for _ in range(length))
