"""The pytest plugin: the fixture `deskcert_session`, a guarded page for one test.

    def test_approve(deskcert_session):
        page = deskcert_session.snapshot()
        assert deskcert_session.click(page.one(role="button", name="Approve")).ok

The address and the policy come from `--deskcert-url` and `--deskcert-policy`, the ini keys `deskcert_url` and
`deskcert_policy`, or fixtures of these names that a project defines. The ledger of a failed test is kept and named in
the report; that of a passed one is removed unless `--deskcert-keep`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from deskcert.ways.sync import SyncHost, SyncSession

__all__ = ["deskcert_policy", "deskcert_session", "deskcert_url"]

_FAILED = pytest.StashKey[bool]()
_KEPT = pytest.StashKey[list[tuple[str, Path]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("deskcert")
    group.addoption("--deskcert-url", help="The page that a guarded session begins on.")
    group.addoption("--deskcert-policy", help="The policy file of guarded sessions.")
    group.addoption("--deskcert-keep", action="store_true", help="Keep the ledgers of passed tests too.")
    parser.addini("deskcert_url", "The page that a guarded session begins on.", default="")
    parser.addini("deskcert_policy", "The policy file, relative to the ini file's folder.", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_KEPT] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    report: pytest.TestReport = yield
    if report.when in ("setup", "call") and report.failed:
        item.stash[_FAILED] = True
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    kept = config.stash.get(_KEPT, [])
    if kept:
        terminalreporter.section("deskcert ledgers")
        for test, folder in kept:
            terminalreporter.line(f"{test}: {folder}")


@pytest.fixture(scope="session")
def deskcert_url(pytestconfig: pytest.Config) -> str:
    """Override it in a conftest.py where a fixture starts the application."""
    found = pytestconfig.getoption("--deskcert-url") or pytestconfig.getini("deskcert_url")
    if not found:
        pytest.fail("no address: give --deskcert-url, set deskcert_url, or define that fixture", pytrace=False)
    return str(found)


@pytest.fixture(scope="session")
def deskcert_policy(pytestconfig: pytest.Config) -> Any:
    """A file, or a policy document."""
    found = pytestconfig.getoption("--deskcert-policy") or pytestconfig.getini("deskcert_policy")
    if not found:
        pytest.fail("no policy: give --deskcert-policy, set deskcert_policy, or define that fixture", pytrace=False)
    return pytestconfig.rootpath / str(found)


@pytest.fixture(scope="session")
def _deskcert_host() -> Iterator[SyncHost]:
    """One browser for all tests."""
    from deskcert.ways.sync import hosted

    with hosted() as host:
        yield host


@pytest.fixture
def deskcert_session(
    request: pytest.FixtureRequest, _deskcert_host: SyncHost, deskcert_url: str, deskcert_policy: Any
) -> Iterator[SyncSession]:
    """A guarded page of this test's own."""
    root = request.config.rootpath
    with _deskcert_host.open(deskcert_url, deskcert_policy, out=root / "deskcert-out" / "pytest", base=root) as session:
        folder = session.ledger
        yield session
    if request.node.stash.get(_FAILED, False) or request.config.getoption("--deskcert-keep"):
        request.config.stash[_KEPT].append((request.node.nodeid, folder))
    else:
        shutil.rmtree(folder)
