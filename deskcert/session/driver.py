"""Drives a guard pipeline: for each `Step` it does the I/O and sends the `Answer` back.

What it owes, whatever happens: a lease that was taken is given back; an intent that was recorded gets its result, also
when the caller is cancelled, the adapter raises, or the pipeline itself fails; nothing is dispatched after a
cancellation. Between an intent and its result nothing can interrupt it: every step there has a deadline of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, assert_never

from deskcert.adapters.base import (
    Adapter,
    Dispatch,
    DispatchEnd,
    Navigation,
    PageAdapter,
    Probed,
    RequestSeen,
    Unreadable,
)
from deskcert.adapters.desktop import DesktopAdapter, Operated
from deskcert.guard.outcome import Interrupted
from deskcert.guard.steps import (
    Announce,
    Answer,
    Done,
    Leased,
    Look,
    Looked,
    Navigate,
    Navigated,
    Operate,
    OperationDone,
    Perform,
    Performed,
    Record,
    Recorded,
    Release,
    Requests,
    RequestsSeen,
    Sleep,
    Step,
    TakeLease,
)
from deskcert.session.closing import result_of_failure
from deskcert.session.lease import Lease
from deskcert.session.points import AtPoint
from deskcert.session.records import Records
from deskcert_schema.disposition import Delivery
from deskcert_schema.errors import AdapterError, DeskcertError, LedgerUnavailable
from deskcert_schema.vocabulary import PipelinePoint, RecordKind

__all__ = ["Driver", "PipelineBroken"]

GRACE_MS: Final = 2_000
"""An adapter keeps its budget; this is for one that does not."""


class PipelineBroken(Exception):
    """The pipeline raised. `delivery` is what is known, and the open intent (if any) has its result."""

    def __init__(self, delivery: Delivery, intent: int | None) -> None:
        self.delivery, self.intent = delivery, intent
        super().__init__("the guard's pipeline failed")


@dataclass(slots=True)
class _Progress:
    """Of one pipeline: what must still be written, and what is known about its dispatch."""

    cancelled: bool = False
    interrupted: bool = False
    """The pipeline was told."""
    waiting: bool = False
    """In a step that may be cut short: nothing is half done there."""
    intent: int | None = None
    """Its record is durable, its result is not."""
    called: bool = False
    """`perform`, `navigate` or `operate` was called for this intent."""
    sent: bool = False
    reached: bool = False
    leased: bool = False


class Driver:
    """One for each session; drives one pipeline at a time."""

    def __init__(
        self,
        adapter: Adapter,
        records: Records,
        lease: Lease,
        at_point: AtPoint,
        now_us: Callable[[], int],
    ) -> None:
        self._adapter, self._records, self._lease = adapter, records, lease
        self._at_point, self._now_us = at_point, now_us

    async def drive[T](
        self, pipeline: Generator[Step, Answer, T], *, action: int, keep: Callable[[T], None] = lambda _: None
    ) -> T:
        """The pipeline's outcome, which `keep` is told even when the caller is gone by then.

        Raises `PipelineBroken`, and `CancelledError` after everything that was open has been closed.
        """
        progress = _Progress()
        work = asyncio.ensure_future(self._run(pipeline, action, progress, keep))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            progress.cancelled = True
            if progress.waiting:
                work.cancel()
            await _to_the_end(work)
            raise

    async def _run[T](
        self, pipeline: Generator[Step, Answer, T], action: int, progress: _Progress, keep: Callable[[T], None]
    ) -> T:
        try:
            step = next(pipeline)
            while True:
                step = await self._advance(pipeline, step, action, progress)
        except (StopIteration, _Over) as over:
            outcome: T = over.value
            keep(outcome)
            return outcome
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            delivery = await self._close_intent(progress, exc)
            raise PipelineBroken(delivery, progress.intent) from exc
        finally:
            pipeline.close()
            if progress.leased:
                self._lease.release()

    async def _advance[T](
        self, pipeline: Generator[Step, Answer, T], step: Step, action: int, progress: _Progress
    ) -> Step:
        """Carry out one step; the next one. A coroutine cannot let `StopIteration` out, so `_Over` says it."""
        try:
            if _may_stop_at(step, progress):
                return _interrupt(pipeline, progress)
            try:
                answer = await self._answer(step, action, progress)
            except asyncio.CancelledError:
                if not progress.cancelled:
                    raise
                return _interrupt(pipeline, progress)
            finally:
                progress.waiting = False
            return pipeline.send(answer)
        except StopIteration as stop:
            raise _Over(stop.value) from None

    async def _answer(self, step: Step, action: int, progress: _Progress) -> Answer:
        progress.waiting = isinstance(step, Look | Sleep | TakeLease) and not progress.called
        match step:
            case Look():
                return Looked(await self._look(step), self._now_us())
            case Sleep(ms):
                await asyncio.sleep(ms / 1000)
                return Done(self._now_us())
            case TakeLease(budget_ms):
                held, contention = await self._lease.take(budget_ms)
                progress.leased = held
                return Leased(held, contention, self._now_us())
            case Release():
                if progress.leased:
                    progress.leased = False
                    self._lease.release()
                return Done(self._now_us())
            case Record():
                return await self._record(step, progress)
            case Announce(point):
                await self._at_point(point, action)
                return Done(self._now_us())
            case Perform():
                return Performed(await self._perform(step, action, progress), self._now_us())
            case Navigate():
                return Navigated(await self._navigate(step, action, progress), self._now_us())
            case Operate():
                return OperationDone(await self._operate(step, action, progress), self._now_us())
            case Requests(number):
                return RequestsSeen(self._requests(number), self._now_us())
            case _:
                assert_never(step)

    async def _look(self, step: Look) -> Probed:
        try:
            async with asyncio.timeout((step.budget_ms + GRACE_MS) / 1000):
                return await self._adapter.probe(step.handle, step.action, budget_ms=step.budget_ms)
        except AdapterError as exc:
            return Unreadable(str(exc))
        except TimeoutError:
            return Unreadable("the adapter did not answer in time")

    async def _record(self, step: Record, progress: _Progress) -> Recorded:
        try:
            receipt = await self._records.write(step.kind, step.payload, durable=step.durable)
        except LedgerUnavailable as exc:
            return Recorded(None, 0, self._now_us(), str(exc))
        match step.kind:
            case RecordKind.ACTION_INTENT:
                progress.intent = receipt.seq
                progress.called = progress.sent = progress.reached = False
            case RecordKind.ACTION_RESULT:
                progress.intent, progress.called = None, False
            case _:
                pass
        return Recorded(receipt.seq, receipt.commit_us, self._now_us())

    async def _perform(self, step: Perform, action: int, progress: _Progress) -> Dispatch:
        if progress.cancelled:
            return Dispatch(DispatchEnd.NOT_SENT, reached=False, error="the caller withdrew before the dispatch")
        progress.called = True
        try:
            async with asyncio.timeout((step.budget_ms + GRACE_MS) / 1000):
                return await self._adapter.perform(
                    step.handle,
                    step.action,
                    step.expected,
                    number=step.number,
                    budget_ms=step.budget_ms,
                    at=self._announcer(action, progress),
                )
        except (AdapterError, TimeoutError) as exc:
            end, why = _end_of(exc, progress), _why(exc)
            return Dispatch(end, reached=progress.reached, dialog=self._adapter.dialog(), error=why)

    async def _navigate(self, step: Navigate, action: int, progress: _Progress) -> Navigation:
        if progress.cancelled:
            return Navigation(DispatchEnd.NOT_SENT, error="the caller withdrew before the dispatch")
        progress.called = True
        try:
            async with asyncio.timeout((step.budget_ms + GRACE_MS) / 1000):
                at = self._announcer(action, progress)
                if step.action is None:
                    return await self._adapter.navigate(step.url, number=step.number, budget_ms=step.budget_ms, at=at)
                if not isinstance(self._adapter, PageAdapter):
                    return Navigation(DispatchEnd.NOT_SENT, error="there are no pages here")
                return await self._adapter.page(step.action, number=step.number, budget_ms=step.budget_ms, at=at)
        except (AdapterError, TimeoutError) as exc:
            return Navigation(_end_of(exc, progress), dialog=self._adapter.dialog(), error=_why(exc))

    async def _operate(self, step: Operate, action: int, progress: _Progress) -> Operated:
        if progress.cancelled:
            error = "the caller withdrew before the dispatch"
            return Operated(Dispatch(DispatchEnd.NOT_SENT, reached=False, error=error))
        if not isinstance(self._adapter, DesktopAdapter):
            error = "there is no desktop here"
            return Operated(Dispatch(DispatchEnd.NOT_SENT, reached=False, error=error, unsupported=True))
        progress.called = True
        try:
            async with asyncio.timeout((step.budget_ms + GRACE_MS) / 1000):
                at = self._announcer(action, progress)
                return await self._adapter.desktop.operate(step.operation, budget_ms=step.budget_ms, at=at)
        except (AdapterError, TimeoutError) as exc:
            return Operated(Dispatch(_end_of(exc, progress), reached=progress.reached, error=_why(exc)))

    def _announcer(self, action: int, progress: _Progress) -> Any:
        async def at(point: str) -> None:
            progress.sent = True
            progress.reached = progress.reached or point == PipelinePoint.REACHED
            await self._at_point(PipelinePoint(point), action)

        return at

    def _requests(self, number: int) -> tuple[RequestSeen, ...]:
        try:
            return self._adapter.requests(number)
        except AdapterError:
            return ()

    async def _close_intent(self, progress: _Progress, exc: Exception) -> Delivery:
        """The pipeline failed: say what is known about delivery, as the result of its open intent."""
        if progress.intent is None:
            return Delivery.NOT_DELIVERED
        delivery, payload = result_of_failure(progress.intent, progress.called, progress.reached, exc)
        with contextlib.suppress(DeskcertError):
            await self._records.write(RecordKind.ACTION_RESULT, payload)
        return delivery


class _Over(Exception):
    """The pipeline returned."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__()


def _may_stop_at(step: Step, progress: _Progress) -> bool:
    """The caller is gone, and this step would begin something new: a wait, or an intent that nobody asked for any
    more. What follows a dispatch is always carried out, and a `Perform` that was not called is answered so."""
    if not progress.cancelled or progress.interrupted or progress.called:
        return False
    return isinstance(step, Look | Sleep | TakeLease) or (
        isinstance(step, Record) and step.kind is RecordKind.ACTION_INTENT
    )


def _interrupt(pipeline: Generator[Step, Answer, Any], progress: _Progress) -> Step:
    progress.interrupted = True
    return pipeline.throw(Interrupted("the caller withdrew", reached=progress.reached))


def _end_of(exc: Exception, progress: _Progress) -> DispatchEnd:
    """An adapter that raised: only its own word that nothing went out, against no sign that something did."""
    said_not = isinstance(exc, AdapterError) and exc.delivery == Delivery.NOT_DELIVERED
    return DispatchEnd.NOT_SENT if said_not and not progress.sent else DispatchEnd.NO_ANSWER


def _why(exc: Exception) -> str:
    return str(exc) if isinstance(exc, AdapterError) else "the adapter did not answer in time"


async def _to_the_end(work: asyncio.Future[Any]) -> None:
    """Wait until it is done, however often the caller is cancelled meanwhile."""
    while not work.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([work])
    if not work.cancelled():
        work.exception()
