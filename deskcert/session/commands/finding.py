"""`find`: which elements of the page, as it is now, a query means; `list-surfaces`: what stands above the page. Both
take a new snapshot, whose refs can be used at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskcert.adapters.base import ObserveOptions, RawNode
from deskcert.contract.envelope import LedgerPlace, success
from deskcert.guard.rules import role_of
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, boolean, one_of, text, whole_number
from deskcert.session.commands.observation import observed
from deskcert.session.desk import Call, Desk, Handler
from deskcert.session.matching import ROLES, Found, Query, run
from deskcert.session.presentation import shown_node
from deskcert.session.snapshots import Snapshot
from deskcert_schema.errors import ContractError
from deskcert_schema.vocabulary import Code, Command, DetailKind

__all__ = ["COMMANDS"]

_TEXTS: Final = ("name", "text", "value", "description", "native_id")
_STATES: Final = (
    *(
        "enabled",
        "disabled",
        "visible",
        "hidden",
        "checked",
        "expanded",
        "collapsed",
        "selected",
        "focused",
        "readonly",
    ),
    *("required", "secure", "pressed", "indeterminate", "editable", "offscreen"),
)
_CARDINALITIES: Final = ("first", "last", "nth", "count")
_DEFAULT_LIMIT: Final = 50


async def _find(desk: Desk, call: Call) -> dict[str, Any]:
    values = call.values
    chosen = [c for c in _CARDINALITIES if values[c] not in (None, False)]
    if len(chosen) > 1:
        raise Refused(Code.INVALID_ARGS, f"give one of {', '.join(_CARDINALITIES)}, not several", phase="parse")
    query = Query(values["role"], _texts(values), values["exact"], values["states"] or {})
    if not query.texts and query.role is None and not query.states:
        raise Refused(Code.INVALID_ARGS, "find needs something to look for, such as role or name", phase="parse")
    asked = {k: v for k, v in values.items() if k in ("role", "exact", *_CARDINALITIES)}
    snapshot, reasons = await observed(desk, ObserveOptions(budget_ms=5_000), asked)
    found = run(query, snapshot.nodes, complete=snapshot.complete)
    data: dict[str, Any] = {"snapshot_id": snapshot.id, "complete": found.complete}
    if chosen:
        data |= _cardinal(chosen[0], values, found, snapshot, reasons)
    else:
        limit = values["limit"] or len(found.matches)
        data["matches"] = [_shown(n, snapshot) for n in found.matches[:limit]]
        data |= {"total_matches": len(found.matches), "truncated": len(found.matches) > limit}
    if not found.matches:
        data["roles_present"] = list(found.roles)
    if not found.complete:
        data["reasons"] = list(reasons) or ["a part of the page could not be compared"]
    return success(Command.FIND, data, ledger=LedgerPlace(snapshot.seq))


def _cardinal(
    which: str, values: Mapping[str, Any], found: Found, snapshot: Snapshot, reasons: tuple[str, ...]
) -> dict[str, Any]:
    """The one match, or the number of all. Raises `Refused` where that is not established, or there is none."""
    matches = found.matches
    established = found.before_first if which == "first" and matches else found.complete
    if not established:
        why = "; ".join(reasons) or "a part of the page could not be compared"
        raise Refused(
            Code.APP_UNRESPONSIVE,
            f"{which} is not established, because the page was not read completely: {why}",
            phase="resolve",
            kind=DetailKind.OBSERVATION_INCOMPLETE,
            details={"matches_seen": len(matches)},
        )
    if which == "count":
        return {"count": len(matches)}
    at = {"first": 0, "last": len(matches) - 1}.get(which, (values["nth"] or 1) - 1)
    if not 0 <= at < len(matches):
        raise Refused(
            Code.ELEMENT_NOT_FOUND,
            f"{len(matches)} elements match" if matches else "no element matches",
            phase="resolve",
            kind=DetailKind.RESOLUTION_COMPLETE_ABSENCE,
            details={"roles_present": list(found.roles)},
        )
    return {"match": _shown(matches[at], snapshot)}


def _shown(node: RawNode, snapshot: Snapshot) -> dict[str, Any]:
    return shown_node(node, snapshot.id) | {"interactive": node.get("interactive") is True}


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {k: values[k] for k in _TEXTS if values[k] is not None}


async def _surfaces(desk: Desk, _call: Call) -> dict[str, Any]:
    surfaces: list[dict[str, Any]] = []
    if (dialog := desk.adapter.dialog()) is not None:
        shown = {"type": f"{dialog.type}_dialog", "id": dialog.id, "title": dialog.text[:200], "blocks": True}
        return success(Command.LIST_SURFACES, {"surfaces": [shown], "complete": False})
    snapshot, reasons = await observed(desk, ObserveOptions(), {})
    for node in snapshot.nodes:
        if node["role"] in _SURFACES:
            title = node.get("name")
            surface = {"type": node["role"], "title": title if isinstance(title, str) else None}
            surfaces.append({k: v for k, v in surface.items() if v is not None})
    data: dict[str, Any] = {"surfaces": surfaces, "complete": snapshot.complete, "snapshot_id": snapshot.id}
    if reasons:
        data["reasons"] = list(reasons)
    return success(Command.LIST_SURFACES, data, ledger=LedgerPlace(snapshot.seq))


_SURFACES: Final = frozenset({"dialog", "alertdialog", "menu", "listbox", "tooltip"})


def _role(name: str, raw: object) -> str:
    given: str = text(64, empty=False)(name, raw)
    plain = given.casefold()
    if role_of(plain) not in ROLES and plain not in ROLES:
        raise ContractError(
            f"{name} cannot be {given!r}: no element has such a role; try one such as button or textbox"
        )
    return plain


def _states_read(name: str, raw: object) -> dict[str, bool]:
    """A list such as ["checked", "disabled=false"]."""
    items = [raw] if isinstance(raw, str) else raw
    if not isinstance(items, list) or not items or not all(isinstance(i, str) for i in items):
        raise ContractError(f'{name} must be a list such as ["checked", "enabled=false"]')
    found: dict[str, bool] = {}
    for item in items:
        state, _, wanted = item.partition("=")
        found[one_of(*_STATES)(name, state)] = one_of("", "true", "false")(name, wanted) != "false"
    return found


COMMANDS: Final = (
    Handler(
        Command.FIND,
        (
            Arg("role", _role),
            *(Arg(name, text(1_000, empty=False)) for name in _TEXTS),
            Arg("states", _states_read),
            Arg("exact", boolean, default=False),
            Arg("first", boolean, default=False),
            Arg("last", boolean, default=False),
            Arg("nth", whole_number(1, 100_000)),
            Arg("count", boolean, default=False),
            Arg("limit", whole_number(0, 10_000), default=_DEFAULT_LIMIT),
        ),
        _find,
    ),
    Handler(Command.LIST_SURFACES, (), _surfaces),
)
