"""The Python way in.

    async with deskcert.open_session("http://127.0.0.1:8000/", "policy.yaml") as s:
        page = await s.snapshot()
        answer = await s.click(page.one(role="button", name="Approve", context="Order 1001"))

Every method answers with the same envelope as every other way in, typed as `Answer`; none raises for what the guard
refuses. `Answer.or_raise` does, for whoever prefers that. `open_session_sync` is the same without `async`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from deskcert_schema.errors import AdapterError, ContractError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from deskcert.ways.opening import Opened, SessionHost, Wanted
    from deskcert.ways.sync import SyncSession

__all__ = ["Answer", "Element", "GuardedSession", "Snapshot", "guard_page", "open_session", "open_session_sync"]

DEFAULT_OUT: Final = Path("deskcert-out") / "sessions"


@dataclass(frozen=True, slots=True)
class Answer:
    """One envelope."""

    envelope: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        return self.envelope.get("ok") is True

    @property
    def data(self) -> Mapping[str, Any]:
        """Empty for an error."""
        found: Mapping[str, Any] = self.envelope.get("data", {})
        return found

    @property
    def error(self) -> Mapping[str, Any]:
        """Empty for a success."""
        found: Mapping[str, Any] = self.envelope.get("error", {})
        return found

    @property
    def code(self) -> str | None:
        return self.error.get("code")

    @property
    def kind(self) -> str | None:
        """The stable sub-code."""
        found: str | None = (self.error or self.data).get("details", {}).get("kind")
        return found

    @property
    def delivery(self) -> str | None:
        """What is known about this attempt; None for a command that only reads."""
        found: str | None = (self.error or self.data).get("disposition", {}).get("delivery")
        return found

    @property
    def retry(self) -> str | None:
        """`safe`, `unsafe` or `never_automatic`."""
        found: str | None = (self.error or self.data).get("disposition", {}).get("retry")
        return found

    @property
    def seq(self) -> int | None:
        """Where its record stands in the ledger: what `repeat_of` names."""
        found: int | None = self.envelope.get("ledger", {}).get("seq")
        return found

    def or_raise(self) -> Answer:
        """Itself, or `AdapterError` with the sentence, the sub-code and what is known about the delivery."""
        if self.ok:
            return self
        message = f"{self.code}: {self.error.get('message')}"
        raise AdapterError(message, delivery=self.delivery or "unknown", kind=self.kind)


@dataclass(frozen=True, slots=True)
class Element:
    """One node of a snapshot, as it was seen."""

    ref: str | None
    role: str
    name: str
    value: str | None
    states: tuple[str, ...]
    context: tuple[tuple[str, str], ...]
    """Kind and label of what it stands in: `("row", "Order 1001")`."""


@dataclass(frozen=True, slots=True)
class Snapshot(Answer):
    @property
    def text(self) -> str:
        return str(self.data.get("text", ""))

    @property
    def complete(self) -> bool:
        """Without it, what is not here may still be there."""
        return self.data.get("complete") is True

    def elements(self) -> Iterator[Element]:
        """Every node shown, in the page's order."""
        yield from _elements(self.data.get("tree", []))

    def find(
        self, *, role: str | None = None, name: str | None = None, context: str | None = None
    ) -> tuple[Element, ...]:
        """Those with a ref that match exactly in everything that is given; `context` is the label of any level."""
        return tuple(
            e
            for e in self.elements()
            if e.ref is not None
            and (role is None or e.role == role)
            and (name is None or e.name == name)
            and (context is None or any(label == context for _, label in e.context))
        )

    def one(self, *, role: str | None = None, name: str | None = None, context: str | None = None) -> str:
        """The ref of the only match. Raises `ContractError` for none and for several."""
        found = self.find(role=role, name=name, context=context)
        if len(found) == 1:
            assert found[0].ref is not None
            return found[0].ref
        asked = ", ".join(f"{k} {v!r}" for k, v in (("role", role), ("name", name), ("context", context)) if v)
        if not found:
            unsure = "" if self.complete else "; the snapshot is incomplete, so that it is missing is not established"
            raise ContractError(f"no element with {asked}{unsure}")
        raise ContractError(f"{len(found)} elements with {asked}; say more, such as the context of one")


def _elements(node: Any) -> Iterator[Element]:
    for one in node if isinstance(node, list) else [node]:
        yield Element(
            one.get("ref_id"),
            one.get("role", "unknown"),
            one.get("name", ""),
            one.get("value"),
            tuple(one.get("states", ())),
            tuple((kind, label) for kind, label in one.get("context", ())),
        )
        yield from _elements(one.get("children", []))


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
) -> Wanted:
    from deskcert.ways.opening import Wanted, load_policy

    return Wanted(
        url=url,
        policy=load_policy(policy),
        way="python",
        out=Path(out or DEFAULT_OUT).absolute(),
        base=Path(base or ".").absolute(),
        task=task,
        actions=actions,
        seconds=seconds,
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
    host: SessionHost | None = None,
) -> AsyncIterator[GuardedSession]:
    """A guarded page in a browser of deskcert's own; its ledger is sealed at the end, whatever ends it.

    `out`: where the run's folder goes (default `deskcert-out/sessions`); `base`: the project's folder, with its key;
    `host`: a browser to share. Raises `ConfigError` for the policy, `HarnessError` for the browser or the page.
    """
    from deskcert.ways.opening import SessionHost

    wanted = _wanted(url, policy, task, out=out, base=base, actions=actions, seconds=seconds)
    if host is not None:
        async with _in_order(await host.open(wanted)) as session:
            yield session
        return
    async with SessionHost.started() as own, _in_order(await own.open(wanted)) as session:
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
