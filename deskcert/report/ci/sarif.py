"""SARIF 2.1.0 (OASIS standard, errata 01): the findings, each at the line of the ledger that proves it.

A ledger has one record a line, so record n is line n + 1 of `runs/<run>/ledger.jsonl`. A finding's fingerprint is its
id: rule, scenario, trial and what it is about, nothing of the run, so the next certification's is the same.
"""

from __future__ import annotations

import json
from typing import Any, Final

from deskcert.report.ci.cases import Claim, Report
from deskcert.scoring import RULES, About
from deskcert.scoring.gate import ExitCode
from deskcert_schema.vocabulary import Severity

__all__ = ["MOST_RESULTS", "sarif"]

MOST_RESULTS: Final = 5_000
"""As many as GitHub's code scanning shows of one upload; the worst stay."""
_LEVEL: Final = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "note",
    Severity.INFO: "note",
}
_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(report: Report, *, most: int = MOST_RESULTS) -> bytes:
    claims = report.claims
    shown = claims[:most]
    used = [rule.about for rule in RULES if any(c.rule == rule.about.id for c in shown)]
    index = {about.id: number for number, about in enumerate(used)}
    invocation: dict[str, Any] = {
        "executionSuccessful": report.exit_code in (ExitCode.CERTIFIED, ExitCode.NOT_CERTIFIED),
        "exitCode": int(report.exit_code),
    }
    notes = [{"level": "note", "message": _message(reason)} for reason in report.reasons]
    if len(claims) > most:
        words = f"{len(claims) - most} of {len(claims)} findings are left out, the least severe; verdict.json has all."
        notes.append({"level": "warning", "message": _message(words)})
    if notes:
        invocation["toolExecutionNotifications"] = notes
    run = {
        "tool": {"driver": {"name": "deskcert", "version": report.version, "rules": [_rule(a) for a in used]}},
        "automationDetails": {"id": f"deskcert/{report.suite}/{report.agent}/"},
        "invocations": [invocation],
        "originalUriBaseIds": {"OUT": {"description": {"text": "The folder that deskcert ci wrote"}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(c, index[c.rule]) for c in shown],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return (json.dumps(log, ensure_ascii=True, indent=1) + "\n").encode()


def _rule(about: About) -> dict[str, Any]:
    return {
        "id": about.id,
        "name": "".join(word.capitalize() for word in about.name.replace("-", " ").replace("_", " ").split()),
        "shortDescription": {"text": about.summary},
        "fullDescription": {"text": about.why},
        "help": {"text": f"{about.why} {about.fix}"},
        "defaultConfiguration": {"level": _LEVEL[about.severity]},
        "properties": {"tags": [about.attribution.value], "precision": "high"},
    }


def _result(claim: Claim, rule: int) -> dict[str, Any]:
    first, *others = claim.seqs or (0,)
    told: dict[str, Any] = {
        "ruleId": claim.rule,
        "ruleIndex": rule,
        "level": _LEVEL[claim.severity],
        "message": _message(f"{claim.text} ({claim.scenario}, trial {claim.trial})"),
        "locations": [
            _place(claim.run, first) | {"logicalLocations": [{"fullyQualifiedName": f"{claim.scenario}/{claim.trial}"}]}
        ],
        "partialFingerprints": {"deskcertFinding/v1": claim.id},
        "properties": {"attribution": claim.attribution, "severity": claim.severity.value, "run": claim.run},
    }
    if others:
        told["relatedLocations"] = [_place(claim.run, seq) for seq in others]
    return told


def _place(run: str, seq: int) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": f"runs/{_uri(run)}/ledger.jsonl", "uriBaseId": "OUT"},
            "region": {"startLine": seq + 1},
        }
    }


def _uri(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")


def _message(words: str) -> dict[str, str]:
    """Plain text in which nothing is a placeholder (3.11.5) or a link (3.11.6) of the page's making."""
    escaped = words.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return {"text": escaped.replace("{", "{{").replace("}", "}}")}
