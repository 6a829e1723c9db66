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


LONG: dict[str, int] = {
    "tests/e2e/test_matrix.py": 200,
    "tests/e2e/test_core_suite.py": 165,
    "tests/e2e/test_pipeline_rehearsal.py": 100,
    "tests/own_app/test_own_trac.py": 100,
    "tests/e2e/test_second_line_in_runs.py": 60,
    "tests/certify/test_hostile_agents.py": 60,
    "tests/e2e/test_desktop_suite.py": 40,
    "tests/e2e/test_on_ray.py": 40,
    "tests/e2e/test_foreign_agents.py": 40,
    "tests/own_app/test_own_desk.py": 40,
    "tests/e2e/test_hostile_campaign.py": 35,
    "tests/ledger/test_ledger_verify.py": 34,
    "tests/e2e/test_resume.py": 30,
    "tests/e2e/test_interrupt.py": 25,
    "tests/e2e/test_kill.py": 25,
    "tests/own_app/test_own_scenario_check.py": 20,
    "tests/ways/test_ways_isolation.py": 18,
    "tests/ways/test_ways_newcomer.py": 15,
}
"""Files with the longest tests, and about how many seconds of CPU each is: only their order matters."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each process of a test run gets one contiguous share of the tests, and takes from the end of another's when its
    own is done. So each share begins with long files, and short tests are what is left for the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if workers > 1:
        items[:] = _shares(items, workers)


def _shares(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    begin: list[list[pytest.Item]] = [[] for _ in range(workers)]
    load = [0] * workers
    for file in sorted((f for f in files if f in LONG), key=lambda f: (-LONG[f], f)):
        least = load.index(min(load))
        begin[least] += files.pop(file)
        load[least] += LONG[file]
    rest = [item for group in files.values() for item in group]
    dealt: list[pytest.Item] = []
    for number, share in enumerate(begin):
        left = len(items) - len(dealt)
        room = max(0, left // (workers - number) - len(share))
        dealt += [*share, *rest[:room]]
        rest = rest[room:]
    return [*dealt, *rest]


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
