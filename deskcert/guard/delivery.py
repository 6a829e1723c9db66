"""(9) From the facts of one dispatch to its disposition: one function, used by the pipeline and by replay.

| what is known | ok, code, kind | delivery |
| --- | --- | --- |
| E differed before the first event | ACTION_FAILED changed_at_dispatch | not_delivered |
| the call could not be made | APP_UNRESPONSIVE component_lost | not_delivered |
| … because the platform has no way to do it | ACTION_NOT_SUPPORTED | not_delivered |
| … because the document was there before the guard | ACTION_NOT_SUPPORTED interceptor_late | not_delivered |
| the whole sequence went out | ok | delivered_unverified |
| … and the read-back bears it out | ok | delivered_verified |
| … and the read-back contradicts | ACTION_FAILED post_action_verification | delivered_unverified |
| E differed after the first event | ACTION_FAILED stopped_midway | delivered_unverified |
| no answer, a dialog is open, target reached | ok, pending_dialog | delivered_unverified |
| no answer, target reached | TIMEOUT dispatch_timeout | delivered_unverified |
| no answer, target not seen to be reached | TIMEOUT dispatch_timeout | delivery_uncertain |

Source: contract.md, "Disposition"; reference 1.4. Evidence of delivery is kept whatever fails later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from deskcert.adapters.base import Dispatch, DispatchEnd, Navigation
from deskcert.guard.verification import Verification
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.vocabulary import Code, DetailKind

__all__ = ["Judgement", "judge_dispatch", "judge_navigation", "nothing_sent"]


@dataclass(frozen=True, slots=True)
class Judgement:
    ok: bool
    code: Code | None
    kind: DetailKind | None
    delivery: Delivery

    @property
    def disposition(self) -> Disposition:
        return Disposition(self.delivery)


_CHANGED = Judgement(False, Code.ACTION_FAILED, DetailKind.CHANGED_AT_DISPATCH, Delivery.NOT_DELIVERED)
_NOT_SENT = Judgement(False, Code.APP_UNRESPONSIVE, DetailKind.COMPONENT_LOST, Delivery.NOT_DELIVERED)
_LATE = Judgement(False, Code.ACTION_NOT_SUPPORTED, DetailKind.INTERCEPTOR_LATE, Delivery.NOT_DELIVERED)
_UNSUPPORTED = Judgement(False, Code.ACTION_NOT_SUPPORTED, None, Delivery.NOT_DELIVERED)
_STOPPED = Judgement(False, Code.ACTION_FAILED, DetailKind.STOPPED_MIDWAY, Delivery.DELIVERED_UNVERIFIED)
_CONTRADICTED = Judgement(False, Code.ACTION_FAILED, DetailKind.POST_ACTION_VERIFICATION, Delivery.DELIVERED_UNVERIFIED)


def judge_dispatch(dispatch: Dispatch, verification: Verification) -> Judgement:
    """Facts only; nothing here looks at the wording of an error."""
    match dispatch.end:
        case DispatchEnd.CHANGED | DispatchEnd.NOT_SENT if dispatch.reached or dispatch.events_sent:
            # An adapter that says both is not believed in the comfortable half.
            return _STOPPED
        case DispatchEnd.CHANGED:
            return _CHANGED
        case DispatchEnd.NOT_SENT:
            return _LATE if dispatch.late else _UNSUPPORTED if dispatch.unsupported else _NOT_SENT
        case DispatchEnd.STOPPED:
            return _STOPPED
        case DispatchEnd.NO_ANSWER:
            return _no_answer(reached=dispatch.reached, dialog=dispatch.dialog is not None)
        case DispatchEnd.COMPLETED:
            return _completed(verification, dialog=dispatch.dialog is not None)
        case _:
            assert_never(dispatch.end)


def _completed(verification: Verification, *, dialog: bool) -> Judgement:
    if verification.satisfied is False:
        return _CONTRADICTED
    kind = DetailKind.PENDING_DIALOG if dialog else None
    verified = verification.satisfied is True
    return Judgement(True, None, kind, Delivery.DELIVERED_VERIFIED if verified else Delivery.DELIVERED_UNVERIFIED)


def _no_answer(*, reached: bool, dialog: bool) -> Judgement:
    if reached and dialog:
        return Judgement(True, None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED)
    delivery = Delivery.DELIVERED_UNVERIFIED if reached else Delivery.DELIVERY_UNCERTAIN
    return Judgement(False, Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, delivery)


def judge_navigation(navigation: Navigation, verification: Verification) -> Judgement:
    """A committed document is proof, whatever the call said; without one only a call that was never made is safe."""
    failed = DetailKind.NAVIGATION_FAILED
    if verification.satisfied is True:
        return Judgement(True, None, None, Delivery.DELIVERED_VERIFIED)
    match navigation.end:
        case DispatchEnd.NOT_SENT | DispatchEnd.CHANGED:
            return Judgement(False, Code.ACTION_FAILED, failed, Delivery.NOT_DELIVERED)
        case DispatchEnd.NO_ANSWER if navigation.dialog is not None:
            return Judgement(True, None, DetailKind.PENDING_DIALOG, Delivery.DELIVERED_UNVERIFIED)
        case DispatchEnd.NO_ANSWER:
            return Judgement(False, Code.TIMEOUT, DetailKind.DISPATCH_TIMEOUT, Delivery.DELIVERY_UNCERTAIN)
        case DispatchEnd.COMPLETED | DispatchEnd.STOPPED:
            return Judgement(False, Code.ACTION_FAILED, failed, Delivery.DELIVERED_UNVERIFIED)
        case _:
            assert_never(navigation.end)


def nothing_sent() -> Judgement:
    """The asked state already held: a success that delivered nothing."""
    return Judgement(True, None, None, Delivery.NOT_DELIVERED)
