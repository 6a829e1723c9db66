"""Opens guarded sessions outside a campaign: a ledger, a browser context, a policy, and an orderly end.

Such a session has no oracle, so no verdict certifies it; its ledger is as good as any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.adapters.base import Adapter
from deskcert.certify.recorder import Recorder
from deskcert.session.budget import Budget
from deskcert.session.desk import Options
from deskcert.session.lease import Lease
from deskcert.session.points import Pause, nothing, pause_from
from deskcert.session.session import Session
from deskcert.ways.guarding import About
from deskcert.ways.start_record import start_payload
from deskcert_schema.errors import HarnessError, LedgerError, UsageError
from deskcert_schema.vocabulary import Mode, RecordKind

if TYPE_CHECKING:
    from deskcert.adapters.web.browser import WebBrowser
    from deskcert.certify.guarded import WarmBrowser
    from deskcert_ledger import Sealed

__all__ = ["Opened", "SessionHost", "Wanted", "load_policy", "offered", "open_on"]

_FIRST_PAGE_MS: Final = 15_000
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One session, as it is asked for."""

    url: str
    policy: Mapping[str, Any]
    way: str
    """`mcp-http | mcp-stdio | jsonl | cli | python`"""
    out: Path
    """Folder that the run's folder is made in."""
    base: Path
    """The project's folder: its key is there."""
    task: str = ""
    actions: int | None = None
    seconds: int | None = None
    timeout_ms: int = 5_000
    mode: Mode = Mode.HEADLESS
    """`headed` is a permission for physical input, `focus_fallback` for keys."""
    uploads: tuple[Path, ...] = ()
    """Folders whose files may be uploaded."""
    cdp: str | None = None
    """Debugging address of a browser that is running: then custody is shared."""


def load_policy(policy: str | Path | Mapping[str, Any]) -> Mapping[str, Any]:
    """A file's, or a document's that is given as it is. Raises `ConfigError` with what is wrong."""
    from deskcert.certify.documents import read_document
    from deskcert_schema.errors import ConfigError
    from deskcert_schema.validate import check

    if isinstance(policy, Mapping):
        problems = check("policy", dict(policy))
        if problems:
            raise ConfigError([f"policy: {p.path or '(top)'}: {p.message}" for p in problems])
        return policy
    document: Mapping[str, Any] = read_document(Path(policy), "policy").value
    return document


def offered(*, desktop: bool = False) -> dict[str, bool]:
    """Every command that a session has a use for: name → whether it acts. One that guards a page answers the desktop's
    commands with PLATFORM_NOT_SUPPORTED; to list them would only cost a model its attention."""
    from deskcert.session.commands import COMMANDS
    from deskcert.ways.desktop_arguments import DESKTOP_COMMANDS

    hidden = frozenset() if desktop else frozenset(DESKTOP_COMMANDS)
    return {name: handler.acting for name, handler in COMMANDS.items() if name not in hidden}


class Opened:
    """One open session. `close` ends it in order; again: no harm."""

    def __init__(self, session: Session, adapter: Adapter, recorder: Recorder, folder: Path, about: About) -> None:
        self._session, self._adapter, self._recorder = session, adapter, recorder
        self.folder, self.about = folder, about
        self._closing = asyncio.Lock()
        self.sealed: Sealed | None = None

    @property
    def claimed(self) -> bool:
        return self._session.claim is not None

    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return await self._session.handle(command, args)

    async def note(self, event: str, detail: Mapping[str, Any]) -> None:
        """Records what can be seen of a client's behaviour outside the commands."""
        with contextlib.suppress(LedgerError):
            await self._recorder.agent_event(event, detail)

    async def close(self, outcome: str = "finished", reason: str = "the session was ended") -> None:
        """Closes the page, writes `run.end`, seals. `outcome`: `finished | budget | error | interrupted`."""
        async with self._closing:
            if self.sealed is not None:
                return
            await self._adapter.close()
            told = {"outcome": outcome, "reason": reason, "effects_log": "disabled", "harness_ok": True}
            await self._recorder.write(RecordKind.RUN_END, told)
            self.sealed = await asyncio.to_thread(self._recorder.ledger.seal)


class SessionHost:
    """One warm browser for several sessions, and one input lease for all of them."""

    def __init__(self, browser: WarmBrowser | WebBrowser) -> None:
        """`WebBrowser`: somebody else's, attached to."""
        self._browser = browser
        self._lease = Lease()
        self._open: list[Opened] = []

    @classmethod
    @asynccontextmanager
    async def for_wanted(cls, wanted: Wanted, note: Any = lambda _: None) -> AsyncIterator[SessionHost]:
        """A browser of our own, which can be seen where the session is headed and there is a screen; or the one that is
        running at `wanted.cdp`."""
        if wanted.cdp is None:
            headed = wanted.mode is Mode.HEADED and bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
            async with cls.started(note, headed=headed) as host:
                yield host
            return
        from deskcert.adapters.web.browser import WebBrowser

        browser = await WebBrowser.connect(wanted.cdp)
        note(f"attached to the browser at {wanted.cdp}: it is shared, so no verdict certifies this session")
        host = cls(browser)
        try:
            yield host
        finally:
            await asyncio.shield(host.close("interrupted", "deskcert was ended"))
            await browser.close()

    @classmethod
    @asynccontextmanager
    async def started(cls, note: Any = lambda _: None, *, headed: bool = False) -> AsyncIterator[SessionHost]:
        """Ends every session in order when it is left. Raises `HarnessError` when there is no browser to start."""
        from deskcert.certify.guarded import WarmBrowser
        from deskcert.certify.reaper import TOKEN_VARIABLE, Reaper

        token = secrets.token_hex(8)
        reaper = Reaper(token)
        outer = os.environ.get(TOKEN_VARIABLE)
        os.environ[TOKEN_VARIABLE] = token  # the browser inherits it: that is how the reaper finds it
        try:
            async with WarmBrowser.started(note, headed=headed) as browser:
                host = cls(browser)
                try:
                    yield host
                finally:
                    await asyncio.shield(host.close("interrupted", "deskcert was ended"))
        finally:
            os.environ.pop(TOKEN_VARIABLE, None)
            if outer is not None:
                os.environ[TOKEN_VARIABLE] = outer
            await asyncio.to_thread(reaper.close)

    async def open(self, wanted: Wanted) -> Opened:
        """Raises `HarnessError` or `AdapterError` when the page cannot be opened: then there is no ledger either."""
        from deskcert.certify.guarded import WarmBrowser

        browser: Mapping[str, Any] | None = None
        custody, lease, there = "shared", self._lease, False
        if isinstance(self._browser, WarmBrowser):
            adapter = await (await self._browser.living()).open_tabs()
            custody, lease = "owned", self._browser.lease
            browser = {**(await self._browser.facts()).recorded()}
        else:
            adapter, there = await self._browser.attach(wanted.url)
        try:
            if not there:
                await begin_at(adapter, wanted.url)
            opened = await open_on(adapter, wanted, lease=lease, custody=custody, browser=browser)
        except BaseException:
            await adapter.close()
            raise
        self._open.append(opened)
        return opened

    async def close(self, outcome: str, reason: str) -> None:
        for opened in self._open:
            with contextlib.suppress(LedgerError):
                await opened.close(outcome, reason)
        self._open.clear()


async def begin_at(adapter: Adapter, url: str) -> None:
    """The page that a session begins on. Raises `UsageError` or `HarnessError`: it is no action of the agent's."""
    from deskcert.adapters.base import DispatchEnd

    if not url.startswith(("http://", "https://")):
        raise UsageError(f"the address must begin with http:// or https://, not {url[:80]!r}")

    async def nowhere(point: str) -> None:  # noqa: ARG001 - the hook's own name
        return None

    opened = await adapter.navigate(url, number=0, budget_ms=_FIRST_PAGE_MS, at=nowhere)
    if opened.end is not DispatchEnd.COMPLETED or opened.committed is None:
        raise HarnessError(f"the page {url} could not be opened: {opened.error or opened.end}")


async def open_on(
    adapter: Adapter,
    wanted: Wanted,
    *,
    lease: Lease,
    custody: str,
    browser: Mapping[str, Any] | None,
) -> Opened:
    """A session on an adapter that shows its first page already."""
    from deskcert.guard.policy import compile_policy
    from deskcert_ledger import ProjectKey, RunLedger, SystemClock, default_key_path
    from deskcert_ledger.keys import project_of

    run = f"session-{''.join(secrets.choice(_DIGITS) for _ in range(6))}"
    folder = wanted.out / run
    start = start_payload(wanted, run, custody=custody, browser=browser)
    policy = compile_policy(dict(wanted.policy), digest=start["policy"]["digest"])
    clock = SystemClock()
    pause = pause_from(os.environ)
    if pause is not None:
        start["pause_at"] = str(pause)
    ledger = RunLedger.create(
        folder,
        origin=f"deskcert/{project_of(wanted.base)}/{run}",
        start=start,
        project_key=ProjectKey.load_or_create(default_key_path(wanted.base)),
        clock=clock,
        rng=secrets.token_bytes,
    )
    session = Session(
        adapter,
        ledger,
        policy,
        clock=clock,
        rng=secrets.token_bytes,
        options=Options(
            budget=Budget(wanted.actions, wanted.seconds),
            mode=wanted.mode,
            timeout_ms=wanted.timeout_ms,
            upload_folders=wanted.uploads,
            downloads=folder / "downloads",
        ),
        at_point=nothing if pause is None else Pause(pause),
        lease=lease,
    )
    facts = {key: start[key] for key in ("isolation", "proxy", "custody")} | {"start_url": wanted.url}
    about = About(run, wanted.task, wanted.url, wanted.policy, facts)
    return Opened(session, adapter, Recorder(ledger), folder, about)
