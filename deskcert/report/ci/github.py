"""GitHub Actions: annotations by workflow commands, and the summary of a step in Markdown.

Escaping of commands: `@actions/core`, command.ts: `%` `CR` `LF` in a message, those and `:` `,` in a property. A step
shows ten annotations of each level; the tenth says how many are left out.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from deskcert.report.ci.cases import Claim, Report
from deskcert.scoring.gate import ExitCode
from deskcert_schema.vocabulary import Severity

__all__ = ["MOST_ANNOTATIONS", "annotation_lines", "step_summary"]

MOST_ANNOTATIONS: Final = 10
_MOST_ROWS: Final = 200
_MOST_FINDINGS: Final = 50
_LEVEL: Final = {
    Severity.CRITICAL: "error",
    Severity.HIGH: "error",
    Severity.MEDIUM: "warning",
    Severity.LOW: "notice",
    Severity.INFO: "notice",
}
_MARK: Final = {"passed": "✅", "failed": "❌", "undecided": "❔"}
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>])")


def annotation_lines(report: Report) -> Iterator[str]:
    """One workflow command a line."""
    if report.exit_code is not ExitCode.CERTIFIED:
        title = f"deskcert: {report.agent} is {report.verdict}"
        yield _command("error", title, " ".join(report.reasons) or report.verdict)
    levels: dict[str, list[Claim]] = {"error": [], "warning": [], "notice": []}
    for claim in report.claims:
        levels[_LEVEL[claim.severity]].append(claim)
    for level, claims in levels.items():
        room = MOST_ANNOTATIONS - (level == "error" and report.exit_code is not ExitCode.CERTIFIED)
        cut = len(claims) > room
        for claim in claims[: room - 1 if cut else room]:
            title = f"{claim.rule} {claim.name}: {claim.scenario}, trial {claim.trial}"
            yield _command(level, title, f"{claim.text} ({claim.proof})")
        if cut:
            more = len(claims) - room + 1
            yield _command(level, "deskcert", f"{more} more findings of this level are not shown here")


def _command(level: str, title: str, message: str) -> str:
    return f"::{level} title={_property(title)}::{_data(message)}"


def _data(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(words: str) -> str:
    return _data(words).replace(":", "%3A").replace(",", "%2C")


def step_summary(report: Report) -> str:
    """Markdown, far below the 1 MiB that a step may write."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    told = report.statistics
    success, unsafe = told["success"], told["unsafe"]
    yield f"## deskcert: {_md(report.agent)} is {_md(report.verdict)}"
    yield ""
    yield f"Suite {_md(report.suite)} · " + " · ".join(f"{_md(k)} {_md(v)}" for k, v in report.environment.items())
    yield ""
    for reason in report.reasons:
        yield f"- {_md(reason)}"
    yield ""
    yield "| | area | run | outcome | rules |"
    yield "| --- | --- | --- | --- | --- |"
    ordered = sorted(report.cases, key=lambda case: ("failed", "undecided", "passed").index(case.kind))
    for case in ordered[:_MOST_ROWS]:
        rules = ", ".join(f"{rule} ×{n}" if n > 1 else rule for rule, n in Counter(c.rule for c in case.claims).items())
        kept = f", in quarantine until {case.quarantine}" if case.quarantine else ""
        outcome = _md(case.outcome.value.replace("_", " ") + kept)
        yield f"| {_MARK[case.kind]} | {_md(case.area)} | {_md(case.name)} | {outcome} | {rules} |"
    if len(ordered) > _MOST_ROWS:
        yield f"\n{len(ordered) - _MOST_ROWS} more runs are not shown here."
    yield ""
    if report.claims:
        yield "### Findings, worst first"
        for claim in report.claims[:_MOST_FINDINGS]:
            about = f"**{claim.severity} {claim.rule}** {_md(claim.scenario)}, trial {claim.trial}"
            yield f"- {about}: {_md(claim.text)} ({_md(claim.proof)})"
        if len(report.claims) > _MOST_FINDINGS:
            yield f"- {len(report.claims) - _MOST_FINDINGS} more findings are not shown here."
        yield ""
    interval = f"95 % interval {_percent(success['low'])} to {_percent(success['high'])}"
    bound = f"unsafe {unsafe['count']} of {unsafe['of']}, below {_percent(unsafe['upper'])} at 95 %"
    yield f"Success {success['count']} of {success['of']}, {interval}; {bound}."


def _percent(ratio: str) -> str:
    return f"{(Decimal(ratio) * 100).quantize(Decimal('0.1'))} %"


def _md(words: str) -> str:
    """Text that stays text: no markup, no HTML, no link, no mention."""
    escaped = _SPECIAL.sub(r"\\\1", html.escape(words, quote=False).replace("&gt;", ">"))
    return escaped.replace("@", "&#64;").replace("://", "&#58;//")
