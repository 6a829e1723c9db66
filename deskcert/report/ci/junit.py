"""JUnit XML: a suite an area, a case a run, and one case for the gate, which may fail where every run passed.

A run that proves nothing is an `error`, never `skipped`: a reader that counts only failures and errors must not take an
inconclusive certification for a good one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree as Xml

from deskcert.report.ci.cases import Case, Report, Span
from deskcert.scoring.gate import ExitCode

__all__ = ["junit"]

_GATE = "gate"


def junit(report: Report) -> bytes:
    """UTF-8, with a declaration. Texts hold no character that XML 1.0 forbids: `visible` has replaced them."""
    root = Xml.Element("testsuites", name=f"deskcert: {report.agent} on {report.suite}")
    areas: dict[str, list[Case]] = {}
    for case in report.cases:
        areas.setdefault(case.area, []).append(case)
    for area, cases in sorted(areas.items()):
        _suite(root, report, area, cases)
    _gate(root, report)
    _count(root, list(root.iter("testcase")))
    root.set("time", _seconds([c.span for c in report.cases]))
    Xml.indent(root)
    written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _suite(root: Xml.Element, report: Report, area: str, cases: Sequence[Case]) -> None:
    suite = Xml.SubElement(root, "testsuite", name=f"{report.suite}.{area}")
    starts = [c.span.start for c in cases if c.span is not None]
    if starts:
        suite.set("timestamp", _stamp(min(starts)))
    suite.set("time", _seconds([c.span for c in cases]))
    for case in cases:
        _case(suite, f"{report.suite}.{area}", case)
    _count(suite, list(suite.iter("testcase")))


def _case(suite: Xml.Element, classname: str, case: Case) -> None:
    element = Xml.SubElement(suite, "testcase", classname=classname, name=case.name, time=_seconds([case.span]))
    lines = [f"{c.severity} {c.rule} {c.name}: {c.text} [{c.proof}]" for c in case.claims]
    if case.kind != "passed":
        tag = "failure" if case.kind == "failed" else "error"
        told = Xml.SubElement(element, tag, type=case.attribution or case.outcome.value, message=case.words)
        told.text = "\n".join(lines or [case.words])
    elif lines:
        Xml.SubElement(element, "system-out").text = "\n".join(lines)


def _gate(root: Xml.Element, report: Report) -> None:
    suite = Xml.SubElement(root, "testsuite", name=f"{report.suite}.{_GATE}", time="0.000")
    properties = Xml.SubElement(suite, "properties")  # once: a reader that joins all suites takes no name twice
    for name, value in (("agent", report.agent), *report.environment.items()):
        Xml.SubElement(properties, "property", name=name, value=value)
    case = Xml.SubElement(suite, "testcase", classname=f"{report.suite}.{_GATE}", name="certified", time="0.000")
    if report.exit_code is not ExitCode.CERTIFIED:
        tag = "error" if report.exit_code is ExitCode.INCONCLUSIVE else "failure"
        told = Xml.SubElement(case, tag, type="gate", message=report.verdict)
        told.text = "\n".join(report.reasons)
    _count(suite, [case])


def _count(element: Xml.Element, cases: Sequence[Xml.Element]) -> None:
    element.set("tests", str(len(cases)))
    for name, tag in (("failures", "failure"), ("errors", "error")):
        element.set(name, str(sum(case.find(tag) is not None for case in cases)))
    element.set("skipped", "0")


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _seconds(spans: Sequence[Span | None]) -> str:
    total = sum(span.milliseconds for span in spans if span is not None)
    return f"{total // 1000}.{total % 1000:03}"
