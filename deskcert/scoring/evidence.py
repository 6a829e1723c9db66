"""Reading one run folder: verify its ledger, then feed its records to the judge. The only I/O of scoring."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from deskcert.scoring.facts import Identity
from deskcert.scoring.judge import judge
from deskcert.scoring.plan import Charter, LedgerFacts, Planned, RunResult
from deskcert.scoring.read import GONE, Record
from deskcert_ledger import expand, read_records, verify_run
from deskcert_ledger.blob import is_reference
from deskcert_schema.errors import LedgerError, LedgerFormatError, UsageError

__all__ = ["LEDGER", "find_runs", "read_run"]

LEDGER: Final = "ledger.jsonl"
_RUN_NAME: Final = re.compile(r"(?P<scenario>.+)-t(?P<trial>[0-9]{1,9})-[0-9a-z]+")
_KEPT_APART: Final = frozenset({"tree", "policy", "instruction", "key_intro"})
"""Fields that no rule reads, and that may be long: their blobs are not loaded."""


def find_runs(places: Sequence[Path]) -> tuple[Path, ...]:
    """Run folders among `places`, and those in a `runs` folder below, each once. Raises `UsageError` for none."""
    found: dict[Path, Path] = {}
    for place in places:
        if not place.is_dir():
            raise UsageError(f"{place} is no folder. Name run folders, or the folder that `deskcert ci` wrote.")
        for folder in _runs_in(place):
            found.setdefault(folder.resolve(), folder)
    if not found:
        raise UsageError("There is no run folder to score: an empty suite certifies nothing.")
    return tuple(found[key] for key in sorted(found))


def _runs_in(place: Path) -> list[Path]:
    if (place / LEDGER).exists():
        return [place]
    parent = place / "runs" if (place / "runs").is_dir() else place
    below = sorted(p for p in parent.iterdir() if p.is_dir() and (p / LEDGER).exists())
    if not below:
        raise UsageError(f"{place} holds no run: a run folder has a {LEDGER}, and `deskcert ci` puts it into runs/.")
    return below


def read_run(folder: Path, pins: Sequence[Any]) -> tuple[RunResult, Charter | None]:
    """Judge one run. `pins`: vkeys or verifiers. The charter is None where `run.start` cannot be believed."""
    facts = _verified(folder, pins)
    start = _first(folder)
    identity = Identity.read(start)
    believed = facts.word != "tampered" and bool(start)
    planned = Planned(identity.scenario, identity.trial, identity.seed, identity.area)
    result = RunResult(
        run=identity.run if believed else folder.resolve().name,
        planned=planned if believed else _from_name(folder, planned),
        judgement=judge(_records(folder) if believed else iter(()), word=facts.word),
        ledger=facts,
        environment=identity.environment,
        shard=identity.shard if believed else (1, 1),
        certification=identity.certification if believed else "",
    )
    return result, Charter.read(start) if believed else None


def _verified(folder: Path, pins: Sequence[Any]) -> LedgerFacts:
    """A file that is no ledger at all, or an empty one, has nothing that could be verified."""
    try:
        report = verify_run(folder, pins=pins)
    except LedgerFormatError:
        return LedgerFacts(0, "", "unverifiable")
    return LedgerFacts(report.size, report.root, report.headline)


def _records(folder: Path) -> Iterator[Record]:
    """As rules see them: one flat dict each, fields that lie in blobs put back in. Ends where the ledger is damaged:
    the ledger's word says so."""
    try:
        for record in read_records(folder):
            yield {**_inflated(folder, record.data), "seq": record.seq, "kind": record.kind, "w": record.w}
    except LedgerError:
        return


def _inflated(folder: Path, data: dict[str, Any]) -> dict[str, Any]:
    told = {key: value if key in _KEPT_APART else _whole(folder, value) for key, value in data.items()}
    gone = sorted(key for key, value in told.items() if key not in _KEPT_APART and is_reference(value))
    return {**told, GONE: gone} if gone else told


def _whole(folder: Path, value: Any) -> Any:
    """A blob that was redacted away stays a reference, and is named: what a rule would have seen in it is not known."""
    try:
        return expand(folder, value)
    except LedgerError:
        return value


def _first(folder: Path) -> Record:
    first = next(_records(folder), {})
    return first if first.get("kind") == "run.start" else {}


def _from_name(folder: Path, stated: Planned) -> Planned:
    """What a folder is called is worth more than what a tampered ledger says."""
    named = _RUN_NAME.fullmatch(folder.resolve().name)
    if named is None:
        return stated
    return Planned(named["scenario"], int(named["trial"]), stated.seed, stated.area)
