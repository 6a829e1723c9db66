"""`snapshot`, `get`, `is`: they look and touch nothing. `get` and `is` read the live element, never the saved one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NoReturn, assert_never

from deskcert.adapters.base import Action, Gone, Handle, Live, ObserveOptions, Unreadable
from deskcert.contract.envelope import LedgerPlace, success
from deskcert.contract.evidence import ABSENT, Absent, Evidence, Field, Known, Unknown
from deskcert.contract.refs import Ref, snapshot_id
from deskcert.guard.identity import Changed, Doubtful, Same, compare
from deskcert.guard.rules import role_of
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, boolean, one_of, ref, whole_number
from deskcert.session.desk import Call, Desk, Handler, target_of
from deskcert.session.presentation import Display, shown_within
from deskcert.session.snapshots import Saved, Snapshot, numbered, observation_payload
from deskcert_schema.errors import AdapterError
from deskcert_schema.vocabulary import Code, Command, DetailKind, PipelinePoint, RecordKind

__all__ = ["COMMANDS", "live", "not_observed", "observed"]

_DEFAULT: Final = ObserveOptions()
_LOOK_MS: Final = 2_000
_SKELETON: Final = 3
"""Levels of a skeleton at most."""
_SURFACES: Final[Mapping[str, frozenset[str]]] = {
    "window": frozenset(),
    "dialog": frozenset({"dialog", "alertdialog"}),
    "menu": frozenset({"menu", "menubar"}),
    "listbox": frozenset({"listbox"}),
    "tooltip": frozenset({"tooltip"}),
}


async def _snapshot(desk: Desk, call: Call) -> dict[str, Any]:
    wanted = call.values
    root, surface, depth = wanted["root"], wanted["surface"], wanted["max_depth"]
    if root is not None and surface is not None:
        raise Refused(Code.INVALID_ARGS, "snapshot takes root or surface, not both", phase="parse")
    if wanted["skeleton"]:
        depth = _SKELETON if depth is None else min(depth, _SKELETON)
    options = ObserveOptions(
        budget_ms=wanted["budget_ms"],
        max_nodes=wanted["max_nodes"],
        include_bounds=wanted["include_bounds"],
        root=None if root is None else await _root(desk, root, call),
    )
    asked = dict(wanted) | ({} if root is None else {"root": str(root)})
    snapshot, reasons = await observed(desk, options, asked, skeleton=depth if wanted["skeleton"] else None)
    roles = _SURFACES[surface or "window"]
    if roles and not any(node.get("role") in roles for node in snapshot.nodes):
        _no_surface(str(surface), snapshot, reasons)
    shown = Display(
        wanted["interactive_only"], wanted["compact"], depth, include_bounds=wanted["include_bounds"], surface=roles
    )
    return success(Command.SNAPSHOT, _data(snapshot, shown, reasons), ledger=LedgerPlace(snapshot.seq))


def _no_surface(surface: str, snapshot: Snapshot, reasons: tuple[str, ...]) -> NoReturn:
    if not snapshot.complete:
        raise Refused(
            Code.APP_UNRESPONSIVE,
            f"that there is no {surface} is not established: {'; '.join(reasons)}",
            phase="resolve",
            kind=DetailKind.OBSERVATION_INCOMPLETE,
        )
    raise Refused(
        Code.ELEMENT_NOT_FOUND,
        f"no {surface} is open",
        phase="resolve",
        kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE,
        suggestion="list-surfaces shows what is",
    )


async def _root(desk: Desk, ref: Ref, call: Call) -> Handle:
    """The element to look into, if it is still what it was. What can be acted on is known by all that identity rests
    on; a part of the page by its node and its role. Raises `Refused`."""
    saved = desk.saved(ref, to_look_into=True)
    if saved.node.get("anchor") is not True:
        await live(desk, saved, call)
        return saved.handle
    try:
        probed = await desk.adapter.probe(saved.handle, Action(call.command), budget_ms=_LOOK_MS)
    except AdapterError as exc:
        probed = Unreadable(str(exc))
    match probed:
        case Live(evidence) if role_of(evidence.role) == role_of(str(saved.node.get("role", ""))):
            return saved.handle
        case Live():
            raise _stale(saved, "it is another part of the page now", DetailKind.RESOLUTION_IDENTITY_CHANGED)
        case Gone(reason):
            raise _stale(saved, f"the element is gone ({reason})", DetailKind.RESOLUTION_COMPLETE_ABSENCE)
        case Unreadable(why):
            raise _unreadable(saved, f"the element could not be read: {why}")


async def observed(
    desk: Desk, options: ObserveOptions, wanted: Mapping[str, Any], *, skeleton: int | None = None
) -> tuple[Snapshot, tuple[str, ...]]:
    """A new snapshot, recorded, and why it is not complete. `wanted` is what the record says was asked."""
    try:
        raw = await desk.adapter.observe(options)
    except AdapterError as exc:
        raise not_observed(exc) from exc
    nodes, count = numbered(raw.nodes, skeleton=skeleton)
    made = snapshot_id(desk.rng(6))
    payload = observation_payload(made, raw, nodes, wanted, desk.options.bait)
    receipt = await desk.records.write(RecordKind.OBSERVATION, payload, durable=False)
    snapshot = Snapshot(made, receipt.seq, raw.window, nodes, count, raw.complete, whole=options.root is None)
    if raw.cut and not snapshot.whole:
        raise Refused(
            Code.TIMEOUT,
            f"not all that is in it could be read: {'; '.join(raw.reasons)}",
            phase="resolve",
            kind=DetailKind.OBSERVATION_INCOMPLETE,
            suggestion="give it a larger budget_ms or max_nodes, or look into a smaller part",
        )
    desk.state.snapshots.add(snapshot)
    await desk.at_point(PipelinePoint.OBSERVED, desk.state.actions + 1)
    return snapshot, raw.reasons


def not_observed(exc: AdapterError) -> Refused:
    kind = DetailKind(exc.kind) if exc.kind in set(DetailKind) else DetailKind.OBSERVATION_INCOMPLETE
    code = Code.ACTION_FAILED if kind is DetailKind.PENDING_DIALOG else Code.APP_UNRESPONSIVE
    return Refused(code, f"the page could not be read: {exc}", phase="resolve", kind=kind)


def _data(snapshot: Snapshot, shown: Display, reasons: tuple[str, ...]) -> dict[str, Any]:
    tree, text, cut = shown_within(snapshot, shown)
    window = snapshot.window
    data: dict[str, Any] = {
        "snapshot_id": snapshot.id,
        "window": {"id": window.id, "title": window.title, "url": window.url, "document": window.document},
        "ref_count": snapshot.ref_count,
        "complete": snapshot.complete and not cut,
        "nodes_observed": len(snapshot.nodes),
        "tree": tree,
        "text": text,
    }
    if cut:
        reasons = (*reasons, "the answer would be longer than a line may be; ask for less of it")
    if not data["complete"]:
        data |= {"truncated": True, "reasons": list(reasons)}
    return data


async def _get(desk: Desk, call: Call) -> dict[str, Any]:
    saved = desk.saved(call.values["ref"])
    evidence = await live(desk, saved, call)
    wanted = call.values["property"]
    data: dict[str, Any] = {"ref": str(saved.ref), "property": wanted}
    secure = wanted == "value" and evidence.states.get("secure") == Known(True)
    match ABSENT if secure else _property(evidence, wanted):
        case Known(value):
            data |= {"value": value}
        case Unknown(why):
            data |= {"unknown": why}
        case Absent():
            data |= {"withheld" if secure else "absent": True}
    return success(Command.GET, data, ledger=LedgerPlace(saved.snapshot_seq))


def _property(evidence: Evidence, wanted: str) -> Field[Any]:
    match wanted:
        case "text":
            return evidence.names.text if evidence.names.text != ABSENT else evidence.names.accessible
        case "name":
            return evidence.names.accessible
        case "title":
            return evidence.names.title
        case "value":
            return evidence.value
        case "role":
            return Known(evidence.role)
        case "states":
            return Known([k for k, v in evidence.states.items() if v == Known(True)])
        case _:
            box = evidence.box
            if box is None:
                return Unknown("its place could not be read")
            return Known({k: v / 1000 for k, v in zip(("x", "y", "width", "height"), box, strict=True)})


async def _is(desk: Desk, call: Call) -> dict[str, Any]:
    saved = desk.saved(call.values["ref"])
    evidence = await live(desk, saved, call)
    asked = call.values["property"]
    data: dict[str, Any] = {"ref": str(saved.ref), "property": asked}
    match evidence.states.get(asked, ABSENT):
        case Known(value):
            data |= {"result": value, "applicable": True}
        case Absent():
            data |= {"applicable": False}
        case Unknown(why):
            data |= {"unknown": why}
    return success(Command.IS, data, ledger=LedgerPlace(saved.snapshot_seq))


async def live(desk: Desk, saved: Saved, call: Call, *, budget_ms: int = _LOOK_MS) -> Evidence:
    """(2) The live element, if it still is what the ref was given for. Raises `Refused`."""
    try:
        probed = await desk.adapter.probe(saved.handle, Action(call.command), budget_ms=budget_ms)
    except AdapterError as exc:
        probed = Unreadable(str(exc))
    match probed:
        case Gone(reason):
            raise _stale(saved, f"the element is gone ({reason})", DetailKind.RESOLUTION_COMPLETE_ABSENCE)
        case Unreadable(why):
            raise _unreadable(saved, f"the element could not be read: {why}")
        case Live(evidence):
            match compare(saved.node, saved.handle, evidence):
                case Same():
                    return evidence
                case Changed(which):
                    what = f"the element is another one now ({', '.join(which)} changed)"
                    raise _stale(saved, what, DetailKind.RESOLUTION_IDENTITY_CHANGED)
                case Doubtful(which):
                    raise _unreadable(saved, f"its {' and '.join(which)} could not be read")
                case identity:
                    assert_never(identity)
        case _:
            assert_never(probed)


def _stale(saved: Saved, message: str, kind: DetailKind) -> Refused:
    return Refused(
        Code.STALE_REF,
        message,
        phase="resolve",
        kind=kind,
        suggestion="take a snapshot and look for it again",
        target=target_of(saved),
        snapshot_seq=saved.snapshot_seq,
    )


def _unreadable(saved: Saved, message: str) -> Refused:
    return Refused(
        Code.APP_UNRESPONSIVE,
        message,
        phase="resolve",
        kind=DetailKind.RESOLUTION_TRAVERSAL_INCOMPLETE,
        target=target_of(saved),
        snapshot_seq=saved.snapshot_seq,
    )


COMMANDS: Final = (
    Handler(
        Command.SNAPSHOT,
        (
            Arg("root", ref),
            Arg("surface", one_of(*_SURFACES)),
            Arg("skeleton", boolean, default=False),
            Arg("interactive_only", boolean, default=False),
            Arg("compact", boolean, default=False),
            Arg("max_depth", whole_number(0, 50)),
            Arg("include_bounds", boolean, default=False),
            Arg("budget_ms", whole_number(1, 30_000), default=_DEFAULT.budget_ms),
            Arg("max_nodes", whole_number(1, 50_000), default=_DEFAULT.max_nodes),
        ),
        _snapshot,
    ),
    Handler(
        Command.GET,
        (
            Arg("ref", ref, required=True),
            Arg("property", one_of("text", "value", "name", "title", "bounds", "role", "states"), default="text"),
        ),
        _get,
    ),
    Handler(
        Command.IS,
        (
            Arg("ref", ref, required=True),
            Arg(
                "property",
                one_of(
                    *("visible", "enabled", "editable", "readonly", "checked", "expanded", "selected", "pressed"),
                    *("focused", "secure", "required", "indeterminate"),
                ),
                required=True,
            ),
        ),
        _is,
    ),
)
