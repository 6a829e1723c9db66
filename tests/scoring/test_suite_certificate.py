"""The suite's certificate: a function of the run folders, signed by the project key, about these files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, end, look, oracle

from deskcert.certify.suite_certificate import SUITE_FILES, certify_suite, suite_statement, write_suite_certificate
from deskcert.scoring import score
from deskcert_ledger import ProjectKey
from deskcert_ledger.beside import check_beside
from deskcert_ledger.certificate import check_certificate
from deskcert_ledger.sshsig import check_sshsig
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

BAD = (look(), claim(), oracle(holds=False), end())
SCENARIOS = ("orders-approve", "orders-note")


def certified(suite: Suite, folders: Sequence[Path]) -> dict[str, Any]:
    """Write verdict and certificate as `deskcert ci` does; the statement's predicate."""
    verdict = score(folders, [suite.key.vkey])
    (suite.out / "verdict.json").write_bytes(verdict.as_bytes())
    assert write_suite_certificate(suite.out, verdict, folders, suite.key)
    return check_certificate((suite.out / SUITE_FILES[0]).read_bytes(), [suite.key.verifier]).statement.predicate


def test_it_says_what_the_verdict_says(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    told = certified(suite, [suite.run(*GOOD, scenario=scenario) for scenario in SCENARIOS])
    verdict = json.loads((tmp_path / "verdict.json").read_bytes())
    assert told["certified"] is True
    assert [told[name] for name in ("totals", "runs", "gate")] == [verdict[name] for name in ("totals", "runs", "gate")]
    assert {item["name"] for item in told["revoked_by_change_of"]} >= {"agent", "suite"}
    found = check_certificate((tmp_path / SUITE_FILES[0]).read_bytes(), [suite.key.verifier])
    assert (found.is_suite, found.test_result, found.key) == (True, "PASSED", suite.key.verifier)
    beside = check_beside(tmp_path / SUITE_FILES[0], found)
    assert len(beside.checked) == 4  # two ledgers, the verdict, the SSH signature
    assert beside.problems == ()


def test_a_suite_that_failed_has_a_certificate_that_says_so(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    told = certified(suite, [suite.run(*GOOD, scenario=SCENARIOS[0]), suite.run(*BAD, scenario=SCENARIOS[1])])
    found = check_certificate((tmp_path / SUITE_FILES[0]).read_bytes(), [suite.key.verifier])
    assert (told["certified"], told["exit_code"], found.test_result) == (False, 1, "FAILED")
    assert told["findings"]["DC501"] == 1


def test_the_order_of_folders_and_the_time_of_day_change_nothing(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    folders = [suite.run(*GOOD, scenario=scenario) for scenario in SCENARIOS]
    contents = []
    for order in (folders, folders[::-1]):
        statements = suite_statement(score(order, [suite.key.vkey]), order)
        assert statements is not None
        contents.append(certify_suite(statements, suite.key))
    assert contents[0] == contents[1]
    last = max(json.loads((folder / "ledger.jsonl").read_text().splitlines()[-1])["t"] for folder in folders)
    found = check_certificate(contents[0][SUITE_FILES[0]], [suite.key.verifier])
    assert found.statement.predicate["issued_at"] == last
    assert found.expired(datetime.now(UTC))  # the ledgers of this test are of 1970


def test_no_byte_of_it_can_be_changed_and_no_other_key_does(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    certified(suite, [suite.run(*GOOD, scenario=scenario) for scenario in SCENARIOS])
    raw = (tmp_path / SUITE_FILES[0]).read_bytes()
    for position in range(0, len(raw), 3):
        with pytest.raises((LedgerFormatError, LedgerTampered)):
            check_certificate(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :], [suite.key.verifier])
    with pytest.raises(LedgerTampered, match="not signed by a pinned key"):
        check_certificate(raw, [ProjectKey.load_or_create(tmp_path / "other").verifier])
    assert check_sshsig((tmp_path / SUITE_FILES[2]).read_bytes(), raw, suite.key.verifier)


def test_a_changed_ledger_or_verdict_beside_it_is_seen(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    folders = [suite.run(*GOOD, scenario=scenario) for scenario in SCENARIOS]
    certified(suite, folders)
    found = check_certificate((tmp_path / SUITE_FILES[0]).read_bytes(), [suite.key.verifier])
    for path in (tmp_path / "verdict.json", folders[0] / "ledger.jsonl"):
        kept = path.read_bytes()
        path.write_bytes(kept + b" ")
        assert [path.name in problem for problem in check_beside(tmp_path / SUITE_FILES[0], found).problems] == [True]
        path.write_bytes(kept)
    (folders[0] / "ledger.jsonl").unlink()
    assert "not there" in check_beside(tmp_path / SUITE_FILES[0], found).not_checked[0]


def test_the_command_checks_it(tmp_path: Path) -> None:
    suite = Suite(tmp_path, SCENARIOS)
    certified(suite, [suite.run(*GOOD, scenario=scenario) for scenario in SCENARIOS])
    environ = {name: value for name, value in os.environ.items() if name != "DESKCERT_KEY_FILE"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deskcert.cli.main", "ledger", "certificate", "verify", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)

    done = run(SUITE_FILES[0], "--key", suite.key.vkey, "--at", "1970-01-20", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["holds"], told["statement"]) == (0, True, {"certified": True})
    late = run(SUITE_FILES[1], "--key", suite.key.vkey)
    assert late.returncode == 1
    assert "expired" in late.stdout
    assert run(SUITE_FILES[0]).returncode == 3
    assert run("verdict.json", "--key", suite.key.vkey).returncode == 2
