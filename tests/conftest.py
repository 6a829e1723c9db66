"""What every test shares: skips that CI does not know fail, and the fresh seed of each run is printed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SKIPS = Path(__file__).with_name("skips.txt")

settings.register_profile("ci", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("ci")


def _accepted() -> list[tuple[str, str]]:
    lines = [line.strip() for line in SKIPS.read_text().splitlines()]
    rows = [line.split("|", 1) for line in lines if line and not line.startswith("#")]
    return [(row[0].strip(), row[1].strip()) for row in rows]


def pytest_configure(config: pytest.Config) -> None:
    os.environ.setdefault("DESKCERT_TEST_SEED", str(secrets.randbits(32)))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes may hold a time or a salt, and every process must give a test the same name."""
    return argname if isinstance(val, bytes) else None


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: DESKCERT_TEST_SEED={os.environ['DESKCERT_TEST_SEED']}"


@pytest.fixture(scope="session")
def fresh_seed() -> int:
    """Another one in each run, printed in the header, so that a failure can be repeated."""
    return int(os.environ["DESKCERT_TEST_SEED"])


@pytest.fixture
def told(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say a line at the end of the whole run, passed or not, in whichever process the test runs."""
    return lambda line: record_property("told", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    lines = [line for report in reports for name, line in report.user_properties if name == "told"]
    if lines:
        terminalreporter.section("measured and counted in this run")
        for line in dict.fromkeys(map(str, lines)):
            terminalreporter.write_line(line)


def _judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(report.nodeid.startswith(test) and why in reason for test, why in _accepted()):
        report.outcome = "failed"
        report.longrepr = f"skipped in CI without being listed in tests/skips.txt: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    _judge(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    _judge(report)
    return report
