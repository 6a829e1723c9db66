"""`finish`, the agent's claim, and `status`, what is left and where things stand."""

from __future__ import annotations

from typing import Any, Final

from deskcert.contract.envelope import LedgerPlace, success
from deskcert.session.args import Arg, one_of, text
from deskcert.session.desk import Call, Desk, Handler
from deskcert_schema.vocabulary import ClaimOutcome, Command, RecordKind

__all__ = ["COMMANDS"]


async def _finish(desk: Desk, call: Call) -> dict[str, Any]:
    outcome, message = ClaimOutcome(call.values["outcome"]), call.values["message"]
    receipt = await desk.records.write(RecordKind.CLAIM, {"outcome": outcome.value, "message": message})
    desk.state.claim = outcome
    data = {"outcome": outcome.value, "message": message}
    return success(Command.FINISH, data, ledger=LedgerPlace(receipt.seq, commit_us=receipt.commit_us))


async def _status(desk: Desk, _call: Call) -> dict[str, Any]:
    from deskcert import __version__

    budget, newest = desk.options.budget, desk.state.snapshots.newest
    used_s = (desk.now_us() - desk.started_us) // 1_000_000
    data: dict[str, Any] = {
        "version": __version__,
        "mode": desk.options.mode.value,
        "actions": {"used": desk.state.actions} | ({} if budget.actions is None else {"of": budget.actions}),
        "seconds": {"used": used_s} | ({} if budget.seconds is None else {"of": budget.seconds}),
        "policy": {"digest": desk.policy.digest},
    }
    if newest is not None:
        data |= {"snapshot_id": newest.id, "ref_count": newest.ref_count}
    if (dialog := desk.adapter.dialog()) is not None:
        data |= {"pending_dialog": {"id": dialog.id, "type": dialog.type, "text": dialog.text}}
    if desk.happenings.downloads:
        data["downloads"] = [{"id": number, **found} for number, found in desk.happenings.downloads.items()]
    if desk.state.claim is not None:
        data |= {"claim": desk.state.claim.value}
    return success(Command.STATUS, data)


COMMANDS: Final = (
    Handler(
        Command.FINISH,
        (Arg("outcome", one_of(*ClaimOutcome), required=True), Arg("message", text(4_000), default="")),
        _finish,
        always=True,
    ),
    Handler(Command.STATUS, (), _status, always=True),
)
