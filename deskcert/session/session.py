"""One agent's connection to one guarded application: a command and arguments in, an envelope out.

(1) is parsed here, (2) to (9) are the guard's. Commands run one after the other, whoever sends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from deskcert.adapters.base import Adapter
from deskcert.contract.envelope import Failure, LedgerPlace, failure
from deskcert.session.answers import Refused, not_delivered
from deskcert.session.args import clean, parse_args, recordable
from deskcert.session.commands import COMMANDS, NOT_YET, RESERVED
from deskcert.session.desk import Call, Desk, Handler, Options, State
from deskcert.session.driver import Driver, PipelineBroken
from deskcert.session.happenings import Happenings
from deskcert.session.lease import Lease
from deskcert.session.pictures import PicturedRecords, Take
from deskcert.session.points import AtPoint, nothing
from deskcert.session.records import Ledger, Records
from deskcert.session.snapshots import SnapshotStore
from deskcert_schema.disposition import Delivery, Disposition
from deskcert_schema.errors import ContractError, DeskcertError, LedgerError
from deskcert_schema.vocabulary import ClaimOutcome, Code, DetailKind, RecordKind

if TYPE_CHECKING:
    from deskcert.guard.policy import Policy
    from deskcert_ledger.clock import Clock

__all__ = ["Session"]

_LOG = logging.getLogger(__name__)
_KEY_BYTES = 32


class Session:
    """`handle` is all that a transport needs. It never raises for what an agent sends.

    `clock` gives monotonic microseconds, `rng(n)` n random bytes; `lease` is shared by all sessions of one browser;
    `at_point` is called at every pipeline point and awaited there.
    """

    def __init__(
        self,
        adapter: Adapter,
        ledger: Ledger,
        policy: Policy,
        *,
        clock: Clock,
        rng: Callable[[int], bytes],
        options: Options | None = None,
        at_point: AtPoint = nothing,
        lease: Lease | None = None,
    ) -> None:
        chosen = options if options is not None else Options()
        pictured = chosen.pictures is not Take.OFF
        records = PicturedRecords(ledger, adapter, chosen.pictures) if pictured else Records(ledger)
        self._one_at_a_time = asyncio.Lock()
        self._desk = Desk(
            adapter=adapter,
            records=records,
            driver=Driver(adapter, records, lease if lease is not None else Lease(), at_point, clock.monotonic_us),
            policy=policy,
            options=chosen,
            at_point=at_point,
            now_us=clock.monotonic_us,
            started_us=clock.monotonic_us(),
            rng=rng,
            key=rng(_KEY_BYTES),
            handle=self._handle,
            state=State(snapshots=SnapshotStore(chosen.kept_snapshots)),
            happenings=Happenings(adapter, records, policy, chosen.downloads),
        )

    @property
    def claim(self) -> ClaimOutcome | None:
        """What the agent claimed, once it has."""
        return self._desk.state.claim

    @property
    def actions(self) -> int:
        """Acting commands so far."""
        return self._desk.state.actions

    async def handle(self, command: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The envelope for one command. Cancelling it leaves no intent without its result."""
        async with self._one_at_a_time:
            return await self._handle(command, args)

    async def _handle(self, command: str, args: Mapping[str, Any]) -> dict[str, Any]:
        found = COMMANDS.get(command)
        if found is not None and found.acting:
            self._desk.state.actions += 1
        call = Call(command, args, {}, self._desk.state.actions)
        name = command if found is not None or command in NOT_YET else "unknown"
        try:
            return await self._run(found, call)
        except Refused as refused:
            return await self._refused(name, call, refused)
        except PipelineBroken as broken:
            return await self._internal(name, broken.delivery, broken.__cause__ or broken, broken.intent)
        except LedgerError as exc:
            return _unrecorded(name, exc)
        except Exception as exc:
            return await self._internal(name, Delivery.NOT_DELIVERED, exc)

    async def _run(self, found: Handler | None, call: Call) -> dict[str, Any]:
        if found is None:
            raise _unknown(call.command)
        if self._desk.state.claim is not None and found.name != "status":
            raise Refused(Code.INVALID_ARGS, "the claim is made; nothing more is done in this session", phase="parse")
        if not found.always:
            self._check_budget(found, call)
        try:
            values = parse_args(found.name, found.args, call.raw)
        except ContractError as exc:
            raise Refused(Code.INVALID_ARGS, str(exc), phase="parse") from exc
        if found.acting and not found.through_dialog:
            self._check_dialog()
        if found.acting:
            self._desk.happenings.action_begins()
        answer = await found.run(self._desk, Call(call.command, call.raw, values, call.action))
        await self._desk.happenings.note()
        if found.acting and (surfaces := self._desk.happenings.take()):
            told = answer["data"] if answer["ok"] else answer["error"].setdefault("details", {})
            told["surfaces"] = surfaces
        return answer

    def _check_budget(self, found: Handler, call: Call) -> None:
        desk = self._desk
        elapsed = desk.now_us() - desk.started_us
        why = desk.options.budget.exhausted(action=call.action if found.acting else None, elapsed_us=elapsed)
        if why is not None:
            raise Refused(Code.BUDGET_EXHAUSTED, why, phase="budget", details={"retryable": False})

    def _check_dialog(self) -> None:
        dialog = self._desk.adapter.dialog()
        if dialog is not None:
            raise Refused(
                Code.ACTION_FAILED,
                f"a {dialog.type} dialog is open and blocks the page: {dialog.text[:200]!r}",
                phase="actionability",
                kind=DetailKind.PENDING_DIALOG,
                details={"dialog": {"id": dialog.id, "type": dialog.type, "text": dialog.text[:1000]}},
            )

    async def _refused(self, name: str, call: Call, refused: Refused) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "command": clean(call.command[:64]) if name == "unknown" else name,
            "args": recordable(call.raw),
            "code": refused.code.value,
            "phase": refused.phase,
            "action": call.action,
        }
        optional = {
            "kind": refused.kind.value if refused.kind is not None else None,
            "target": refused.target,
            "snapshot_seq": refused.snapshot_seq,
            "details": refused.details or None,
        }
        payload |= {k: v for k, v in optional.items() if v is not None}
        try:
            receipt = await self._desk.records.write(RecordKind.ACTION_REFUSED, payload)
        except LedgerError as exc:
            return _unrecorded(name, exc)
        except Exception as exc:
            return await self._internal(name, Delivery.NOT_DELIVERED, exc)
        error = not_delivered(
            refused.code,
            refused.message,
            kind=refused.kind,
            suggestion=refused.suggestion,
            details=refused.details,
        )
        return failure(name, error, ledger=LedgerPlace(receipt.seq, commit_us=receipt.commit_us))

    async def _internal(
        self, name: str, delivery: Delivery, exc: BaseException, intent: int | None = None
    ) -> dict[str, Any]:
        """A defect of ours is recorded as one, so that no agent is blamed for it. The detail names no page content."""
        _LOG.error("%s failed inside deskcert", name, exc_info=exc)
        lost = {"component": "session", "detail": f"{name} failed inside deskcert: {type(exc).__name__}"}
        with contextlib.suppress(DeskcertError):
            await self._desk.records.write(RecordKind.COMPONENT_LOST, lost)
        why = f"deskcert itself failed ({type(exc).__name__}); see its log"
        place = LedgerPlace(intent) if intent is not None else None
        return failure(name, Failure(Code.INTERNAL, why, Disposition(delivery)), ledger=place)


def _unknown(command: str) -> Refused:
    if command in NOT_YET:
        return Refused(
            Code.ACTION_NOT_SUPPORTED,
            f"{command} is not available in this version",
            phase="parse",
            suggestion=f"use one of {', '.join(COMMANDS)}",
        )
    if command in RESERVED:
        return Refused(
            Code.ACTION_NOT_SUPPORTED,
            f"{command} is reserved: it names no element, so nothing about it could be certified",
            phase="parse",
        )
    near = difflib.get_close_matches(command[:64], (*COMMANDS, *NOT_YET), 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(COMMANDS)}"
    return Refused(Code.INVALID_ARGS, f"there is no command {command[:64]!r}; {hint}", phase="parse")


def _unrecorded(name: str, exc: LedgerError) -> dict[str, Any]:
    why = f"it could not be recorded, so it was not done: {exc}"
    return failure(name, not_delivered(Code.LEDGER_UNAVAILABLE, why))
