"""From run folders to what the report shows: verdicts by the scoring of `deskcert score`, steps, records, trees."""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from deskcert.audit.story import Step, read_whole, story
from deskcert.report.html.pack import Pieces, cut
from deskcert.report.overview import Overview, make_overview
from deskcert.scoring import Verdict, score
from deskcert.scoring.evidence import find_runs
from deskcert.scoring.facts import Identity
from deskcert.scoring.plan import Slot
from deskcert.scoring.rule import severity_rank
from deskcert.scoring.verdict import finding_id
from deskcert_ledger import Record, RunReport, load_blob, verify_run
from deskcert_schema.errors import LedgerError, LedgerFormatError

__all__ = ["Campaign", "Collected", "Trees", "collect"]

_EACH: Final = 250
"""Records in one piece: opening a piece must not be felt."""
_MOST_TREES: Final = 10 << 20
"""Bytes of packed trees in one report, unless all are asked for."""
_MOST_PICTURES: Final = 30 << 20
"""Bytes of pictures in one report; those that findings rest on come first."""


class Trees(StrEnum):
    """Of which snapshots the report carries what the agent saw."""

    NONE = "none"
    SOME = "some"
    """Those that findings, denials and refusals rest on first, then the others, up to 10 MiB."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Campaign:
    """One certification: an agent on a suite."""

    verdict: Verdict
    overview: Overview
    agent: str


@dataclass(slots=True)
class Collected:
    campaigns: list[Campaign] = field(default_factory=list)
    runs: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    pieces: Pieces = field(default_factory=Pieces)
    records: int = 0
    trees_left_out: int = 0
    picture_bytes: int = 0
    pictures_left_out: int = 0


def collect(places: Sequence[Path], pins: Sequence[Any], trees: Trees) -> Collected:
    """Raises `UsageError` where there is no run, or where the folders of one place are not one certification."""
    made = Collected()
    groups: dict[Path, list[Path]] = defaultdict(list)
    for folder in find_runs(places):
        groups[folder.resolve().parent].append(folder)
    packed_trees = 0
    for parent, folders in sorted(groups.items()):
        verdict = score(folders, pins)
        overview = make_overview(verdict, ledgers=parent, verdict_file=None)
        number = len(made.campaigns)
        made.campaigns.append(Campaign(verdict, overview, verdict.agent.partition(" ")[0] or "unknown agent"))
        slots = {s.result.run: s for s in verdict.slots if s.result is not None}
        for folder in folders:
            packed_trees += _add_run(
                made,
                folder,
                campaign=number,
                slots=slots,
                pins=pins,
                trees=trees,
                room=_MOST_TREES - packed_trees,
            )
        _add_missing(made, verdict, number)
    made.findings.sort(key=lambda f: (-f.pop("rank"), f["rule"], f["run"]))
    return made


def _add_run(
    made: Collected,
    folder: Path,
    *,
    campaign: int,
    slots: Mapping[str, Slot],
    pins: Sequence[Any],
    trees: Trees,
    room: int,
) -> int:
    """Returns the bytes of packed trees that it added."""
    report = _verified(folder, pins)
    records = list(_readable(folder))
    start = records[0].data if records and records[0].kind == "run.start" else {}
    name = str(start.get("run") or folder.resolve().name)
    slot = slots.get(name) or slots.get(folder.resolve().name)
    number = len(made.runs)
    steps = story(records)
    first_finding = len(made.findings)
    if slot is not None:
        made.findings += _findings(slot, number)
    proving = {seq for f in made.findings[first_finding:] for seq in f["seqs"]}
    before = made.pieces.size
    tree_at = _trees(made, folder, records, proving=proving, trees=trees, room=room)
    packed = made.pieces.size - before
    made.records += len(records)
    made.runs.append(
        {
            "run": name,
            "campaign": campaign,
            **_about(start, slot),
            "ledger": _ledger(report, folder),
            "count": len(records),
            "steps": made.pieces.add([_row(s) for s in steps]),
            "parts": made.pieces.add_in_parts((_shown(r) for r in records), _EACH),
            "each": _EACH,
            "trees": made.pieces.add(tree_at),
            "pictures": made.pieces.add(_pictures(made, folder, records, proving)),
            "rules": sorted({s.rule for s in steps if s.rule}),
            "outcomes": sorted({s.outcome for s in steps if s.group in {"action", "denial", "refusal"} and s.outcome}),
        }
    )
    return packed


def _verified(folder: Path, pins: Sequence[Any]) -> RunReport | None:
    try:
        return verify_run(folder, pins=pins)
    except LedgerError:
        return None


def _readable(folder: Path) -> Iterator[Record]:
    """Ends where the ledger is damaged; its word says so."""
    try:
        yield from read_whole(folder)
    except LedgerError:
        return


def _shown(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "kind": record.kind, "t": record.t, "w": record.w, **cut(record.data)}


def _row(step: Step) -> list[Any]:
    """In the order that report.js names `STEP`."""
    return [
        step.seq,
        step.end,
        step.at_ms,
        step.group.value,
        cut(step.what[:200]),
        step.target[:400],
        step.outcome[:100],
        step.tone.value,
        step.code[:100],
        step.rule[:100],
        step.waited_ms,
        step.looks,
        step.took_ms,
        step.action,
        list(step.pictures),
    ]


def _about(start: Mapping[str, Any], slot: Slot | None) -> dict[str, Any]:
    scenario = start.get("scenario") or {}
    identity = Identity.read(start)
    judged = slot.result.judgement if slot is not None and slot.result is not None else None
    return {
        "scenario": slot.planned.scenario if slot is not None else identity.scenario,
        "title": cut(str(scenario.get("title", ""))),
        "area": slot.planned.area if slot is not None else identity.area,
        "trial": identity.trial,
        "seed": identity.seed,
        "expected": str(scenario.get("expected", "")),
        "instruction": cut(str(start.get("instruction", ""))),
        "outcome": judged.outcome.value if judged is not None else "inconclusive",
        "attribution": judged.attribution.value if judged is not None and judged.attribution is not None else "",
        "environment": dict(identity.environment),
        "versions": start.get("versions") or {},
        "policy": cut(start.get("policy") or {}),
    }


def _ledger(report: RunReport | None, folder: Path) -> dict[str, Any]:
    if report is None:
        return {"word": "unverifiable", "folder": str(folder), "problems": ["it is no ledger, or an empty one"]}
    return {
        "word": report.headline,
        "folder": str(folder),
        "size": report.size,
        "root": report.root,
        "origin": report.origin,
        "problems": [p.text if p.seq is None else f"record {p.seq}: {p.text}" for p in report.problems],
        "checked": list(report.checked),
        "not_checked": list(report.not_checked),
    }


def _findings(slot: Slot, run: int) -> Iterator[dict[str, Any]]:
    assert slot.result is not None
    for found in slot.result.judgement.findings:
        about = found.about
        yield {
            "id": finding_id(slot, found),
            "rank": severity_rank(about.severity),
            "rule": about.id,
            "name": about.name,
            "severity": about.severity.value,
            "confidence": about.confidence.value,
            "attribution": about.attribution.value,
            "text": cut(found.text),
            "why": about.why,
            "fix": about.fix,
            "run": run,
            "seqs": list(found.seqs),
        }


def _add_missing(made: Collected, verdict: Verdict, campaign: int) -> None:
    for slot in verdict.slots:
        if slot.result is None:
            planned = slot.planned
            made.runs.append(
                {
                    "run": "",
                    "campaign": campaign,
                    "scenario": planned.scenario,
                    "area": planned.area,
                    "trial": planned.trial,
                    "outcome": slot.outcome.value,
                    "count": 0,
                }
            )


def _trees(
    made: Collected, folder: Path, records: Sequence[Record], *, proving: set[int], trees: Trees, room: int
) -> dict[str, int]:
    """Sequence number of an observation → the piece with its tree."""
    seen = [r for r in records if r.kind == "observation" and "tree" in r.data]
    if trees is Trees.NONE:
        made.trees_left_out += len(seen)
        return {}
    wanted = {
        r.data.get("snapshot_seq") for r in records if r.seq in proving or r.kind in {"action.denied", "action.refused"}
    } | proving
    found: dict[str, int] = {}
    end = made.pieces.size + room
    for record in sorted(seen, key=lambda r: (r.seq not in wanted, r.seq)):
        if trees is Trees.SOME and made.pieces.size >= end:
            made.trees_left_out += 1
            continue
        try:
            tree = load_blob(folder, record.data["tree"])
        except LedgerError as exc:
            tree = {"missing": str(exc)}
        found[str(record.seq)] = made.pieces.add(cut(tree))
    return found


def _pictures(made: Collected, folder: Path, records: Sequence[Record], proving: set[int]) -> dict[str, Any]:
    """Sequence number of a picture's record → the piece with it, or why there is none."""
    taken = [r for r in records if r.kind == "picture"]
    found: dict[str, Any] = {}
    for record in sorted(taken, key=lambda r: (r.data.get("of") not in proving, r.seq)):
        told: dict[str, Any] = {"of": record.data.get("of")}
        if "image" not in record.data:
            told["missing"] = str(record.data.get("missing", ""))
        elif made.picture_bytes >= _MOST_PICTURES:
            made.pictures_left_out += 1
            told["missing"] = "left out to keep this file small; it is in the run folder"
        else:
            try:
                before = made.pieces.size
                told["piece"] = made.pieces.add(_png(load_blob(folder, record.data["image"])))
                made.picture_bytes += made.pieces.size - before
            except LedgerError as exc:
                told["missing"] = f"the picture can no longer be shown: {exc}"
        found[str(record.seq)] = told
    return found


def _png(blob: Any) -> str:
    """Base 64 of a PNG, and nothing else. Raises `LedgerFormatError`."""
    data = blob.get("data") if isinstance(blob, dict) and blob.get("format") == "png" else None
    try:
        if isinstance(data, str) and base64.b64decode(data, validate=True).startswith(b"\x89PNG\r\n"):
            return data
    except ValueError:
        pass
    raise LedgerFormatError("it is no PNG")
