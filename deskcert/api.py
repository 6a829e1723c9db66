"""The Python way in.

    async with deskcert.open_session("http://127.0.0.1:8000/", "policy.yaml") as s:
        page = await s.snapshot()
        answer = await s.click(page.one(role="button", name="Approve", context="Order 1001"))

Every method answers with the same envelope as every other way in, typed as `Answer`; none raises for what the guard
refuses. `Answer.or_raise` does, for whoever prefers that. `open_session_sync` is the same without `async`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from deskcert.ways.answers import Answer, Element, Snapshot

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deskcert.ways.opening import Opened, SessionHost, Wanted
    from deskcert.ways.sync import SyncSession

__all__ = ["Answer", "Element", "GuardedSession", "Snapshot", "guard_page", "open_session", "open_session_sync"]

DEFAULT_OUT: Final = Path("deskcert-out") / "sessions"


class _Asked(Protocol):
    async def handle(self, command: str, args: Mapping[str, Any]) -> Mapping[str, Any]: ...


class GuardedSession:
    """A guarded page. Commands run one after the other."""

    def __init__(self, opened: _Asked, *, ledger: Path) -> None:
        self._opened = opened
        self.ledger = ledger
        """The run's folder."""

    async def ask(self, command: str, **args: Any) -> Answer:
        """Any command of the contract, by name; arguments that are None are left out."""
        given = {name: value for name, value in args.items() if value is not None}
        return Answer(await self._opened.handle(command, given))

    async def snapshot(
        self, *, interactive_only: bool = False, compact: bool = False, max_depth: int | None = None
    ) -> Snapshot:
        args = {"interactive_only": interactive_only, "compact": compact}
        return Snapshot((await self.ask("snapshot", **args, max_depth=max_depth)).envelope)

    async def get(self, ref: str, what: str = "text") -> Answer:
        """`text value name title bounds role states`, of the live element."""
        return await self.ask("get", ref=ref, property=what)

    async def is_(self, ref: str, what: str) -> Answer:
        """`visible enabled checked …`; `data["result"]` is left out where it is not established."""
        return await self.ask("is", ref=ref, property=what)

    async def click(self, ref: str, *, timeout_ms: int | None = None, repeat_of: int | None = None) -> Answer:
        return await self.ask("click", ref=ref, timeout_ms=timeout_ms, repeat_of=repeat_of)

    async def set_value(
        self, ref: str, value: str, *, timeout_ms: int | None = None, repeat_of: int | None = None
    ) -> Answer:
        return await self.ask("set-value", ref=ref, value=value, timeout_ms=timeout_ms, repeat_of=repeat_of)

    async def press(self, ref: str, key: str, *, timeout_ms: int | None = None, repeat_of: int | None = None) -> Answer:
        return await self.ask("press", ref=ref, key=key, timeout_ms=timeout_ms, repeat_of=repeat_of)

    async def navigate(self, url: str, *, timeout_ms: int | None = None, repeat_of: int | None = None) -> Answer:
        return await self.ask("navigate", url=url, timeout_ms=timeout_ms, repeat_of=repeat_of)

    async def status(self) -> Answer:
        return await self.ask("status")

    async def finish(self, outcome: str, message: str = "") -> Answer:
        """The claim: `done refused failed unsure`. Nothing more is done after it."""
        return await self.ask("finish", outcome=outcome, message=message)


type PolicyLike = str | Path | Mapping[str, Any]
"""A policy file, or its document."""


def _wanted(
    url: str,
    policy: PolicyLike,
    task: str,
    *,
    out: Path | str | None,
    base: Path | str | None,
    actions: int | None = None,
    seconds: int | None = None,
    mode: str = "headless",
    uploads: Sequence[Path | str] = (),
    cdp: str | None = None,
) -> Wanted:
    from deskcert.ways.opening import Wanted, load_policy
    from deskcert_schema.vocabulary import Mode

    return Wanted(
        url=url,
        policy=load_policy(policy),
        way="python",
        out=Path(out or DEFAULT_OUT).absolute(),
        base=Path(base or ".").absolute(),
        task=task,
        actions=actions,
        seconds=seconds,
        mode=Mode(mode),
        uploads=tuple(Path(folder).resolve() for folder in uploads),
        cdp=cdp,
    )


@asynccontextmanager
async def open_session(
    url: str,
    policy: PolicyLike,
    *,
    task: str = "",
    out: Path | str | None = None,
    base: Path | str | None = None,
    actions: int | None = None,
    seconds: int | None = None,
    mode: str = "headless",
    uploads: Sequence[Path | str] = (),
    cdp: str | None = None,
    host: SessionHost | None = None,
) -> AsyncIterator[GuardedSession]:
    """A guarded page in a browser of deskcert's own; its ledger is sealed at the end, whatever ends it.

    `out`: where the run's folder goes (default `deskcert-out/sessions`); `base`: the project's folder, with its key;
    `mode`: `headless`, `focus_fallback` or `headed`; `uploads`: folders whose files may be uploaded; `cdp`: attach to
    the browser at this debugging address, with custody shared; `host`: a browser to share. Raises `ConfigError` for the
    policy, `HarnessError` for the browser or the page.
    """
    from deskcert.ways.opening import SessionHost

    wanted = _wanted(
        url,
        policy,
        task,
        out=out,
        base=base,
        actions=actions,
        seconds=seconds,
        mode=mode,
        uploads=uploads,
        cdp=cdp,
    )
    if host is not None:
        async with _in_order(await host.open(wanted)) as session:
            yield session
        return
    async with SessionHost.for_wanted(wanted) as own, _in_order(await own.open(wanted)) as session:
        yield session


@asynccontextmanager
async def guard_page(
    page: Any, policy: PolicyLike, *, task: str = "", out: Path | str | None = None, base: Path | str | None = None
) -> AsyncIterator[GuardedSession]:
    """Guards a page of existing Playwright code (`playwright.async_api.Page`, Chromium), which stays open.

    Custody is `shared`: the code beside it can do anything past the guard, so the ledger says so, and no verdict
    certifies such a run. Raises `UsageError` for a page that cannot be guarded.
    """
    from deskcert.session.lease import Lease
    from deskcert.ways.opening import open_on
    from deskcert.ways.shared_page import attach

    adapter = await attach(page)
    wanted = _wanted(page.url, policy, task, out=out, base=base)
    # Nothing is said about the browser: how it was started is not known here.
    opened = await open_on(adapter, wanted, lease=Lease(), custody="shared", browser=None)
    async with _in_order(opened) as session:
        yield session


@asynccontextmanager
async def _in_order(opened: Opened) -> AsyncIterator[GuardedSession]:
    """Sealed at the end; an exception in the caller's block is recorded as what ended it."""
    try:
        yield GuardedSession(opened, ledger=opened.folder)
    except BaseException as exc:
        await opened.close("interrupted", f"the caller's code ended it: {type(exc).__name__}")
        raise
    await opened.close("finished", "the caller's code came to its end")


def open_session_sync(url: str, policy: PolicyLike, **how: Any) -> AbstractContextManager[SyncSession]:
    """`open_session` for code without `async`; the same arguments."""
    from deskcert.ways.sync import opened_sync

    return opened_sync(url, policy, **how)
