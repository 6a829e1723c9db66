"""CTRF (Common Test Report Format, 0.0): a test a planned run. What proves nothing is `other`, never `skipped`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from deskcert.report.ci.cases import Case, Report
from deskcert.scoring.gate import ExitCode

__all__ = ["ctrf"]

_STATUS = {"passed": "passed", "failed": "failed", "undecided": "other"}


def ctrf(report: Report) -> bytes:
    tests = [*(_test(report, case) for case in report.cases), _gate(report)]
    counted = Counter(test["status"] for test in tests)
    spans = [case.span for case in report.cases if case.span is not None]
    summary = {
        "tests": len(tests),
        **{status: counted[status] for status in ("passed", "failed", "skipped", "pending", "other")},
        "start": min((int(s.start.timestamp() * 1000) for s in spans), default=0),
        "stop": max((int(s.end.timestamp() * 1000) for s in spans), default=0),
    }
    results = {
        "tool": {"name": "deskcert", "version": report.version},
        "summary": summary,
        "tests": tests,
        "environment": {"appName": report.agent, "extra": dict(report.environment)},
        "extra": {"verdict": report.verdict, "exit_code": int(report.exit_code)},
    }
    told = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results}
    return (json.dumps(told, ensure_ascii=True, indent=1) + "\n").encode()


def _test(report: Report, case: Case) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": case.name,
        "status": _STATUS[case.kind],
        "rawStatus": case.outcome.value,
        "duration": case.span.milliseconds if case.span is not None else 0,
        "suite": [report.suite, case.area],
    }
    if case.span is not None:
        told |= {"start": int(case.span.start.timestamp() * 1000), "stop": int(case.span.end.timestamp() * 1000)}
    if case.kind != "passed":
        told["message"] = case.words
    if case.claims:
        told["trace"] = "\n".join(f"{c.severity} {c.rule}: {c.text} ({c.proof})" for c in case.claims)
        told["tags"] = list(dict.fromkeys(c.rule for c in case.claims))
    return told


def _gate(report: Report) -> dict[str, Any]:
    status = {ExitCode.CERTIFIED: "passed", ExitCode.INCONCLUSIVE: "other"}.get(report.exit_code, "failed")
    told: dict[str, Any] = {"name": "certified", "status": status, "duration": 0, "suite": [report.suite, "gate"]}
    if report.reasons:
        told |= {"message": report.verdict, "trace": "\n".join(report.reasons)}
    return told
