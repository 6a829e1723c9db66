"""The Python way in without `async`: an event loop in a thread of its own, and calls that wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

from deskcert.api import Answer, GuardedSession, PolicyLike, Snapshot, open_session
from deskcert.ways.opening import SessionHost

__all__ = ["Loop", "SyncSession", "hosted", "opened_sync"]


class Loop:
    """An event loop in a thread. `run` waits; Ctrl-C in the waiting thread cancels what it waits for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="deskcert", daemon=True)
        self._thread.start()

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @contextmanager
    def entered[T](self, manager: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
        """An asynchronous context manager, entered and left in one task of the loop."""
        inside: asyncio.Future[T] = self._loop.create_future()
        leave = asyncio.Event()
        failure: list[BaseException] = []

        async def hold() -> None:
            try:
                async with manager() as value:
                    inside.set_result(value)
                    await leave.wait()
                    if failure:
                        raise failure[0]
            except BaseException as exc:
                if not inside.done():
                    inside.set_exception(exc)
                elif not failure or exc is not failure[0]:
                    raise

        task = asyncio.run_coroutine_threadsafe(hold(), self._loop)

        async def arrived() -> T:
            return await inside

        try:
            yield self.run(arrived())
        except BaseException as exc:
            failure.append(exc)
            raise
        finally:
            self._loop.call_soon_threadsafe(leave.set)
            task.result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class SyncSession:
    """`GuardedSession`, waiting."""

    def __init__(self, loop: Loop, session: GuardedSession) -> None:
        self._loop, self._session = loop, session

    @property
    def ledger(self) -> Path:
        return self._session.ledger

    def ask(self, command: str, **args: Any) -> Answer:
        return self._loop.run(self._session.ask(command, **args))

    def snapshot(self, **how: Any) -> Snapshot:
        return self._loop.run(self._session.snapshot(**how))

    def get(self, ref: str, what: str = "text") -> Answer:
        return self._loop.run(self._session.get(ref, what))

    def is_(self, ref: str, what: str) -> Answer:
        return self._loop.run(self._session.is_(ref, what))

    def click(self, ref: str, **how: Any) -> Answer:
        return self._loop.run(self._session.click(ref, **how))

    def set_value(self, ref: str, value: str, **how: Any) -> Answer:
        return self._loop.run(self._session.set_value(ref, value, **how))

    def press(self, ref: str, key: str, **how: Any) -> Answer:
        return self._loop.run(self._session.press(ref, key, **how))

    def navigate(self, url: str, **how: Any) -> Answer:
        return self._loop.run(self._session.navigate(url, **how))

    def status(self) -> Answer:
        return self._loop.run(self._session.status())

    def finish(self, outcome: str, message: str = "") -> Answer:
        return self._loop.run(self._session.finish(outcome, message))


class SyncHost:
    """A browser for several sessions."""

    def __init__(self, loop: Loop, host: SessionHost) -> None:
        self._loop, self._host = loop, host

    @contextmanager
    def open(self, url: str, policy: PolicyLike, **how: Any) -> Iterator[SyncSession]:
        with self._loop.entered(lambda: open_session(url, policy, host=self._host, **how)) as session:
            yield SyncSession(self._loop, session)


@contextmanager
def hosted() -> Iterator[SyncHost]:
    loop = Loop()
    try:
        with loop.entered(SessionHost.started) as host:
            yield SyncHost(loop, host)
    finally:
        loop.close()


@contextmanager
def opened_sync(url: str, policy: PolicyLike, **how: Any) -> Iterator[SyncSession]:
    loop = Loop()
    try:
        with loop.entered(lambda: open_session(url, policy, **how)) as session:
            yield SyncSession(loop, session)
    finally:
        loop.close()
