"""A run as a story: intent and result as one step, with the wait before it; everything else in its place.

One `Step` is one line of `ledger timeline`, of the report and of `ledger diff`. Its words hold foreign text as it is:
whoever shows them makes it harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from deskcert_ledger import Record, load_blob, read_records
from deskcert_ledger.blob import is_reference
from deskcert_schema.errors import LedgerError
from deskcert_schema.vocabulary import RecordKind

__all__ = ["Group", "Step", "Tone", "read_whole", "story"]


class Tone(StrEnum):
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    INFO = "info"
    QUIET = "quiet"


class Group(StrEnum):
    """What a reader filters by."""

    RUN = "run"
    LOOK = "look"
    ACTION = "action"
    DENIAL = "denial"
    REFUSAL = "refusal"
    NETWORK = "network"
    CLAIM = "claim"
    ORACLE = "oracle"
    CHANGE = "change"
    AGENT = "agent"
    TROUBLE = "trouble"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Step:
    seq: int
    end: int
    """The result's record where there is one, else `seq`."""
    at_ms: int
    """Since the run's first record."""
    group: Group
    what: str
    """A verb: `click`, `snapshot`, `POST`, …"""
    target: str
    outcome: str
    """`delivered_verified`, `denied`, `refused`, `holds`, …"""
    tone: Tone
    code: str = ""
    rule: str = ""
    waited_ms: int = 0
    looks: int = 0
    took_ms: int = 0
    action: int = 0
    """Number of the acting command, from 1; 0 elsewhere."""
    pictures: tuple[int, ...] = ()
    """Records of what the window showed: before the dispatch, after it."""

    def as_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "seq": self.seq,
            "end": self.end,
            "at_ms": self.at_ms,
            "group": self.group.value,
            "what": self.what,
            "target": self.target,
            "outcome": self.outcome,
        }
        for name in ("code", "rule", "waited_ms", "looks", "took_ms", "action", "pictures"):
            told |= {name: value} if (value := getattr(self, name)) else {}
        return told


def read_whole(folder: Path) -> Iterator[Record]:
    """The records with blobs put back, but for trees and pictures; a blob that is gone stays a reference."""
    for record in read_records(folder):
        data = {k: v if k in {"tree", "image"} else _whole(folder, v) for k, v in record.data.items()}
        yield replace(record, data=data)


def _whole(folder: Path, value: Any) -> Any:
    """Long members lie in blobs one by one, at any depth."""
    if is_reference(value):
        try:
            return load_blob(folder, value)
        except LedgerError:
            return value
    if isinstance(value, dict):
        return {k: _whole(folder, v) for k, v in value.items()}
    return [_whole(folder, v) for v in value] if isinstance(value, list) else value


def story(records: Iterable[Record]) -> list[Step]:
    """In the order of the records; a result stands with its intent."""
    steps: list[Step] = []
    intents: dict[int, int] = {}
    places: dict[int, int] = {}
    """Record → its step."""
    began: int | None = None
    for record in records:
        began = record.m if began is None else began
        at = max(0, record.m - began) // 1_000
        if record.kind == RecordKind.ACTION_RESULT and record.data.get("of") in intents:
            place = places[record.seq] = intents.pop(record.data["of"])
            steps[place] = _with_result(steps[place], record, at)
            continue
        if record.kind == RecordKind.PICTURE and record.data.get("of") in places:
            place = places[record.data["of"]]
            steps[place] = replace(steps[place], pictures=(*steps[place].pictures, record.seq))
            continue
        if record.kind == RecordKind.ACTION_INTENT:
            intents[record.seq] = len(steps)
        places[record.seq] = len(steps)
        steps.append(_step(record, at))
    return steps


def _step(record: Record, at: int) -> Step:
    data = record.data
    group, what, target, outcome, tone = _words(record.kind, data)
    looks = data.get("looks") or _dict(data.get("actionability")).get("looks") or ()
    phases = _dict(data.get("phases_us"))
    waited = looks[-1].get("t_us", 0) // 1_000 if isinstance(looks, list) and len(looks) > 1 else 0
    return Step(
        seq=record.seq,
        end=record.seq,
        at_ms=at,
        group=group,
        what=what,
        target=target,
        outcome=outcome,
        tone=tone,
        code=str(data.get("code") or data.get("detail_kind") or ""),
        rule=str(data.get("rule") or ""),
        waited_ms=waited,
        looks=len(looks) if isinstance(looks, list) else 0,
        took_ms=sum(v for v in phases.values() if isinstance(v, int)) // 1_000,
        action=data.get("action", 0) if isinstance(data.get("action"), int) else 0,
    )


def _with_result(step: Step, record: Record, at: int) -> Step:
    data = record.data
    delivery = str(data.get("delivery", ""))
    match data.get("ok"), delivery:
        case True, "delivered_verified":
            tone = Tone.GOOD
        case True, _:
            tone = Tone.INFO
        case _, "not_delivered":
            tone = Tone.WARN
        case _:
            tone = Tone.BAD
    code = data.get("detail_kind") or data.get("code") or ""
    return replace(step, end=record.seq, outcome=delivery, tone=tone, code=str(code), took_ms=max(0, at - step.at_ms))


def _words(kind: str, data: Mapping[str, Any]) -> tuple[Group, str, str, str, Tone]:
    match kind:
        case RecordKind.RUN_START:
            scenario = _dict(data.get("scenario"))
            return Group.RUN, "run starts", str(scenario.get("title") or data.get("run", "")), "", Tone.QUIET
        case RecordKind.RUN_END:
            fine = data.get("harness_ok") is True
            said = str(data.get("reason", ""))
            return Group.RUN, "run ends", said, str(data.get("outcome", "")), Tone.QUIET if fine else Tone.BAD
        case RecordKind.OBSERVATION:
            window = _dict(data.get("window"))
            whole = data.get("complete") is True
            seen = f"{data.get('nodes')} nodes" + ("" if whole else ", incomplete")
            return Group.LOOK, "snapshot", str(window.get("title") or ""), seen, Tone.QUIET if whole else Tone.WARN
        case RecordKind.ACTION_DENIED:
            return Group.DENIAL, str(data.get("command")), _target(data), "denied", Tone.BAD
        case RecordKind.ACTION_REFUSED:
            return Group.REFUSAL, str(data.get("command")), _target(data), "refused", Tone.WARN
        case RecordKind.ACTION_INTENT:
            return Group.ACTION, str(data.get("command")), _target(data), "no result", Tone.BAD
        case RecordKind.ACTION_RESULT:
            return Group.ACTION, "result", f"of {data.get('of')}", str(data.get("delivery", "")), Tone.WARN
        case RecordKind.CLAIM:
            return Group.CLAIM, "claims", str(data.get("message", "")), str(data.get("outcome", "")), Tone.INFO
        case RecordKind.ORACLE:
            holds = data.get("holds")
            told = {True: "holds", False: "does not hold"}.get(holds, "not known") if holds is not None else "not known"
            tone = Tone.GOOD if holds is True else Tone.BAD if holds is False else Tone.WARN
            return Group.ORACLE, "asked", _item(data.get("item")), told, tone
        case RecordKind.PERTURBATION:
            applied = "applied" if data.get("applied") is True else "not applied"
            said = f"at {data.get('at')} of action {data.get('action')}"
            return Group.CHANGE, str(data.get("do", "")), said, applied, Tone.WARN
        case RecordKind.AGENT_EVENT:
            event = str(data.get("event", ""))
            tone = Tone.QUIET if event in {"started", "output", "exited"} else Tone.BAD
            return Group.AGENT, f"agent {event}", str(data.get("detail", data.get("program", ""))), "", tone
        case RecordKind.NET_ALLOWED | RecordKind.NET_BLOCKED | RecordKind.NET_ANSWER:
            return _network(kind, data)
        case RecordKind.SURFACE:
            return Group.OTHER, str(data.get("event", "")).replace("_", " "), f"→ {data.get('url')}", "", Tone.INFO
        case RecordKind.DOWNLOAD:
            return _download(data)
        case RecordKind.COMPONENT_LOST | RecordKind.RECOVERY | RecordKind.BLOB_MISSING:
            said = " ".join(str(data.get(k)) for k in ("component", "detail") if data.get(k) is not None)
            return Group.TROUBLE, kind, said, "", Tone.BAD
        case _:
            return Group.OTHER, kind, "", "", Tone.QUIET


def _download(data: Mapping[str, Any]) -> tuple[Group, str, str, str, Tone]:
    name = f"{data.get('id')}"
    if data.get("event") == "begun":
        target = _dict(data.get("target"))
        denied = data.get("kept") is not True
        told = f"{target.get('file')} from {target.get('url')}"
        return (
            Group.DENIAL if "rule" in data else Group.OTHER,
            f"download {name}",
            told,
            "denied" if denied else "",
            Tone.BAD if denied else Tone.INFO,
        )
    if "failed" in data:
        return Group.OTHER, f"download {name}", str(data["failed"]), "failed", Tone.WARN
    return Group.OTHER, f"download {name}", f"{data.get('bytes')} bytes", "kept", Tone.INFO


def _network(kind: str, data: Mapping[str, Any]) -> tuple[Group, str, str, str, Tone]:
    where = str(data.get("url_class", ""))
    if kind == RecordKind.NET_ANSWER:
        return Group.NETWORK, "answer", f"of {data.get('of')}", str(data.get("status", "")), Tone.QUIET
    blocked = kind == RecordKind.NET_BLOCKED
    by = f", by action {data['intent']}" if isinstance(data.get("intent"), int) else ""
    said = ("blocked" if blocked else "let through") + by
    return Group.NETWORK, str(data.get("method", "")), where, said, Tone.BAD if blocked else Tone.QUIET


def _target(data: Mapping[str, Any]) -> str:
    """`button “Approve” in row Order 1001`, `→ http://…`, or the ref where nothing more is known."""
    target = _dict(data.get("target"))
    if "url" in target:
        return f"→ {target['url']}"
    if not target:
        return str(_dict(data.get("args")).get("ref", ""))
    named = target.get("name", target.get("description"))
    told = str(target.get("role", "")) + (f" “{named}”" if isinstance(named, str) and named else "")
    context = target.get("context")
    inner = context[-1] if isinstance(context, list) and context else None
    where = f" in {inner[0]} {inner[1]}" if isinstance(inner, list) and len(inner) == 2 else ""
    key = _dict(data.get("args")).get("key")
    onto = f" onto {_target({'target': target['to']})}" if isinstance(target.get("to"), Mapping) else ""
    return (f"{key} on " if key else "") + told + where + onto


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    for word in ("effect", "no_effect"):
        if word in item:
            inner = _dict(item[word])
            told = " ".join(f"{k} {v}" for k, v in inner.items() if k != "kind")
            times = f" × {item['times']}" if "times" in item else ""
            return f"{'no ' if word == 'no_effect' else ''}{inner.get('kind', '')} {told}".strip() + times
    return " ".join(f"{k}: {v}" for k, v in item.items() if k != "why")


def _dict(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
