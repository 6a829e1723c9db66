"""The guarded way to the application: one warm browser for the campaign, a fresh context and a session for each run."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import structlog

from deskcert.adapters.base import Adapter, DispatchEnd
from deskcert.certify.recorder import Recorder
from deskcert.certify.runner import Guarded, OpenGuarded, PointCallback
from deskcert.certify.second_line import SecondLine
from deskcert.certify.start_record import BrowserFacts
from deskcert.certify.suite import Planned, Suite, policy_for
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.lease import Lease
from deskcert.session.pictures import Take
from deskcert.session.points import AtPoint, all_of
from deskcert.session.session import Session
from deskcert_ledger import SystemClock
from deskcert_schema.errors import HarnessError

if TYPE_CHECKING:
    from deskcert.adapters.web.browser import WebBrowser

__all__ = ["WarmBrowser", "opener"]

_LOG = structlog.get_logger(__name__)
_FIRST_PAGE_MS = 15_000


class WarmBrowser:
    """Starting a browser takes longer than a short run, so one serves them all; a dead one is replaced."""

    def __init__(
        self, browser: WebBrowser, note: Callable[[str], None], arguments: Sequence[str], *, headed: bool = False
    ) -> None:
        self._browser, self._note, self._arguments, self._headed = browser, note, arguments, headed
        self._facts = _facts(browser)
        self._replacing = asyncio.Lock()
        self.lease = Lease()
        """One input lease a browser."""

    @classmethod
    @asynccontextmanager
    async def started(
        cls, note: Callable[[str], None], arguments: Sequence[str] = (), *, headed: bool = False
    ) -> AsyncIterator[Self]:
        """`arguments`: further ones for the browser. Raises `HarnessError` when there is none to start."""
        from deskcert.adapters.web.browser import WebBrowser

        warm = cls(await WebBrowser.launch(arguments=arguments, headed=headed), note, arguments, headed=headed)
        if not warm._facts.sandbox:
            note("running as root: the browser's own sandbox is off (--no-sandbox); every run records it")
        try:
            yield warm
        finally:
            await asyncio.shield(warm._browser.close())

    async def facts(self) -> BrowserFacts:
        """Of the browser that the next run will get. A replacement that fails is told when it is opened."""
        try:
            await self.living()
        except HarnessError as exc:
            _LOG.warning("the browser could not be started again", why=str(exc))
        return self._facts

    async def living(self) -> WebBrowser:
        """Raises `HarnessError` when a dead one cannot be replaced."""
        from deskcert.adapters.web.browser import WebBrowser

        async with self._replacing:
            if self._browser.lost is not None:
                self._note(f"starting the browser again: {self._browser.lost}")
                await self._browser.close()
                self._browser = await WebBrowser.launch(arguments=self._arguments, headed=self._headed)
                self._facts = _facts(self._browser)
        return self._browser


def _facts(browser: WebBrowser) -> BrowserFacts:
    return BrowserFacts(browser.name, browser.version, browser.sandbox)


class _Guarded:
    desktop = False

    def __init__(self, browser: WebBrowser, adapter: Adapter, session: Session) -> None:
        self._browser, self._adapter, self._session = browser, adapter, session

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._session.handle(command, args)

    async def lost(self) -> str | None:
        return await self._browser.ask()

    async def close(self) -> None:
        await self._adapter.close()


def opener(browser: WarmBrowser, suite: Suite, pause: AtPoint, *, screenshots: str = "off") -> OpenGuarded:
    async def open_guarded(
        recorder: Recorder, planned: Planned, url: str, at: PointCallback, line: SecondLine | None
    ) -> Guarded:
        from deskcert.guard.policy import compile_policy

        scenario = planned.scenario
        document, digest = policy_for(suite, scenario)
        living = await browser.living()
        adapter = await living.open_tabs(proxy=None if line is None else line.server)
        try:
            ledger = recorder.ledger if line is None else line.watch(adapter, recorder.ledger)
            await _begin_at(adapter, url, "" if line is None else f" through the proxy {line.server}")
        except BaseException:
            await adapter.close()
            raise
        session = Session(
            adapter,
            ledger,
            compile_policy(document, digest=digest),
            clock=SystemClock(),
            rng=secrets.token_bytes,
            options=Options(
                budget=Budget(scenario.actions, scenario.seconds),
                mode=suite.mode,
                bait=tuple(str(b) for b in scenario.bait),
                pictures=Take(screenshots),
                downloads=recorder.ledger.folder / "downloads",
            ),
            at_point=all_of(at, pause),
            lease=browser.lease,
        )
        return _Guarded(living, adapter, session)

    return open_guarded


async def _begin_at(adapter: Adapter, url: str, how: str) -> None:
    """The page that the task begins on. Raises `HarnessError`: it is no action of the agent's."""

    async def nowhere(point: str) -> None:
        _LOG.debug("first page", point=point)

    opened = await adapter.navigate(url, number=0, budget_ms=_FIRST_PAGE_MS, at=nowhere)
    if opened.end is not DispatchEnd.COMPLETED or opened.committed is None:
        raise HarnessError(f"the first page {url}{how} could not be opened: {opened.error or opened.end}")
