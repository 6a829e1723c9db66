"""The second line in a run: whether there is one, its proxy, its proof at start and end, and its end.

The proxy takes longer to start than the application, so it is started ahead of its run; what it records until then is
kept, and written when the run has its ledger.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert.certify.config import Settings
from deskcert.certify.https import trusting
from deskcert.certify.processes import child_environment
from deskcert.certify.suite import Suite, policy_for
from deskcert_schema.errors import ConfigError, HarnessError

if TYPE_CHECKING:
    from deskcert.adapters.web.tabs import WebTabs
    from deskcert_ledger import Ack, Receipt, RunLedger
    from deskcert_proxy.authority import Authority
    from deskcert_proxy.joining import Joining
    from deskcert_proxy.supervisor import ProxyRun

__all__ = ["SecondLine", "browser_arguments", "settled"]

_PATIENCE_S = 1.0
"""How long the page's own canary may take before a fresh page sends one more: a dialog, or a content policy, can keep
the first one from leaving."""


def settled(settings: Settings, suite: Suite, note: Callable[[str], None]) -> Settings:
    """The settings with what is really used: `optional` becomes `off` where the policy names no hosts. Raises
    `ConfigError` where a proxy is required and a policy has no usable network section."""
    if settings.proxy == "off":
        return settings
    if suite.desktop:
        if settings.proxy == "required":
            raise ConfigError("a desktop application has no browser whose network a proxy could watch; take proxy: off")
        return replace(settings, proxy="off")
    from deskcert_proxy.rules import compile_network

    try:
        for scenario in suite.scenarios:
            compile_network(policy_for(suite, scenario)[0])
    except ConfigError as exc:
        if settings.proxy == "required":
            raise ConfigError([f"{suite.policy_name}:1: {problem}" for problem in exc.problems]) from exc
        note(f"no proxy is used: {exc}")
        return replace(settings, proxy="off")
    return settings


def browser_arguments(settings: Settings, trusted: Sequence[str] = ()) -> tuple[str, ...]:
    """What the browser is started with so that nothing goes round the proxy. `trusted`: hashes of keys, the only ones
    beside the system's that it takes for HTTPS. Raises `HarnessError` where something would go round."""
    if settings.proxy == "off":
        return trusting(trusted)
    from deskcert.adapters.web.browser import ARGS
    from deskcert_proxy.chromium import chromium_arguments, missing_arguments

    arguments = (*chromium_arguments(), *trusting(trusted))
    missing = missing_arguments([*ARGS, *arguments])
    if missing:
        raise HarnessError(f"the browser would have a way round the proxy: {'; '.join(missing)}")
    return arguments


class SecondLine:
    """Of one run. `start` it ahead; `bind` it to the run's ledger; `watch` the page; `prove`; `stop`."""

    def __init__(self, proxy: ProxyRun, joining: Joining, later: _Later) -> None:
        self._proxy, self._joining, self._later = proxy, joining, later
        self._gone = asyncio.Event()
        self._adapter: WebTabs | None = None
        proxy.on_lost = lambda _: self._gone.set()

    @classmethod
    async def start(
        cls,
        policy: Mapping[str, Any],
        folder: Path,
        *,
        token: str,
        authority: Authority | None = None,
        trust: Path | None = None,
        tape: bool = False,
    ) -> SecondLine:
        """`authority`: the one that the browser trusts; `trust`: a file with the application's certificate; `tape`:
        keep the flows in a folder of that name. Raises `ConfigError`, `HarnessError`."""
        from deskcert_proxy.joining import Joining
        from deskcert_proxy.supervisor import ProxyRun

        later, joining = _Later(), Joining(asyncio.get_running_loop())
        proxy = await ProxyRun.start(
            later,
            policy,
            folder=folder,
            environment=child_environment(token),
            complete=joining.complete,
            authority=authority,
            trust=trust,
            tape=folder / "tape" if tape else None,
        )
        return cls(proxy, joining, later)

    @property
    def server(self) -> str:
        return self._proxy.server

    @property
    def lost(self) -> str | None:
        return self._proxy.lost

    async def gone(self) -> None:
        """Returns when the proxy has ended by itself."""
        if self.lost is None:
            await self._gone.wait()

    def bind(self, ledger: RunLedger) -> None:
        self._later.bind(ledger)

    def watch(self, adapter: WebTabs, ledger: RunLedger) -> Any:
        """The ledger for the session on this page: with it, each write is put down to the action that caused it."""
        self._adapter = adapter
        adapter.watch_requests(self._joining.saw)
        return self._joining.watching(ledger)

    async def prove(self, origins: Sequence[str], phase: str) -> None:
        """Raises `HarnessError` when a write of the page does not come to the proxy."""
        assert self._adapter is not None
        adapter = self._adapter

        async def write(url: str) -> None:
            await adapter.post(url)
            await asyncio.sleep(_PATIENCE_S)
            await adapter.post(url, afresh=True)

        await self._proxy.prove(write, origins, phase)

    async def stop(self) -> None:
        """After this the proxy records nothing more. Again: nothing."""
        self._joining.flush()
        await self._proxy.stop()
        self._joining.flush()


class _Later:
    """A ledger that does not exist yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ledger: RunLedger | None = None
        self._kept: list[Callable[[RunLedger], None]] = []

    def submit(self, kind: str, payload: Mapping[str, Any], *, w: str = "", ack: Ack | None = None) -> Future[Receipt]:
        from deskcert_ledger import Ack

        wanted = Ack.DURABLE if ack is None else ack
        with self._lock:
            if self._ledger is not None:
                return self._ledger.submit(kind, payload, w=w, ack=wanted)
            future: Future[Receipt] = Future()
            self._kept.append(lambda ledger: _pass_on(ledger.submit(kind, payload, w=w, ack=wanted), future))
            return future

    def bind(self, ledger: RunLedger) -> None:
        with self._lock:
            for keep in self._kept:
                keep(ledger)
            self._kept.clear()
            self._ledger = ledger


def _pass_on(done: Future[Receipt], to: Future[Receipt]) -> None:
    def give(finished: Future[Receipt]) -> None:
        error = finished.exception()
        if error is not None:
            to.set_exception(error)
        else:
            to.set_result(finished.result())

    done.add_done_callback(give)
