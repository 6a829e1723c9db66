"""ArcSight Common Event Format, version 0: one line an event, as syslog collectors take it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from deskcert.audit.exports.events import VERSION, Event, RunEvents, grade
from deskcert.report.visible import visible

__all__ = ["cef_lines"]

_SEVERITY: Final = (1, 3, 6, 8)
"""CEF counts from 0 to 10; by `grade`."""


def cef_lines(runs: Iterable[RunEvents]) -> Iterator[str]:
    for run in runs:
        for event in run.events():
            yield _line(event)


def _line(event: Event) -> str:
    step, run = event.step, event.run
    signature = step.rule or step.code or f"{step.group.value}.{step.what}"
    head = (
        "deskcert",
        "deskcert",
        VERSION,
        signature,
        f"{step.group.value}: {step.what}",
        str(_SEVERITY[grade(event)]),
    )
    fields = {
        "rt": str(event.unix_ms),
        "externalId": event.uid,
        "act": step.outcome,
        "suser": run.agent,
        "msg": step.target,
        "outcome": step.code or step.outcome,
        "cs1Label": "run",
        "cs1": run.run,
        "cs2Label": "rule",
        "cs2": step.rule,
        "cs3Label": "ledgerWord",
        "cs3": run.word,
        "cs4Label": "ledgerRoot",
        "cs4": run.root,
        "cs5Label": "scenario",
        "cs5": run.scenario,
        "cn1Label": "seq",
        "cn1": str(step.seq),
        "cn2Label": "resultSeq",
        "cn2": str(step.end),
    }
    told = " ".join(f"{name}={_value(value)}" for name, value in fields.items() if value)
    return f"CEF:0|{'|'.join(map(_header, head))}|{told}"


def _header(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace("|", "\\|")


def _value(text: str) -> str:
    return visible(text).replace("\\", "\\\\").replace("=", "\\=")
