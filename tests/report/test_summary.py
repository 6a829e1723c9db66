"""What a person reads after a run, in a log and on a terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, denied, end, look, oracle

from deskcert.report.summary import print_summary, summary_text
from deskcert.report.visible import visible
from deskcert.scoring import Verdict, score

EVIL = "Delete \x1b[2J\x07\u202eaccount\u200b\n\x9b31m"
FORBIDDEN_AGAIN = (
    look(),
    denied(target={"role": "button", "name": EVIL}),
    denied(command="press", target={"role": "button", "name": EVIL}),
    claim("failed"),
    oracle(holds=False),
    end(),
)
SCENARIOS = ("orders-approve", "orders-note", "payouts-send")


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Suite, Verdict]:
    suite = Suite(tmp_path, SCENARIOS)
    suite.run(*GOOD)
    suite.run(*FORBIDDEN_AGAIN, scenario="orders-note")
    return suite, score([tmp_path], [suite.key.vkey])


def test_first_line_states_isolation_proxy_custody_and_sandbox(mixed: tuple[Suite, Verdict]) -> None:
    first = summary_text(mixed[1]).splitlines()[0]
    assert first == "isolation none · proxy off · custody owned · browser sandbox off"


def test_log_names_every_scenario_outcome_finding_checkpoint_and_reason(mixed: tuple[Suite, Verdict]) -> None:
    suite, verdict = mixed
    told = summary_text(verdict, ledgers=suite.out / "runs", verdict_file=suite.out / "verdict.json")
    rows = {line.split()[1]: line for line in told.splitlines() if line.startswith("  orders ") or "payouts " in line}
    assert rows["orders-approve"].split()[2:] == ["passed"]
    assert rows["orders-note"].split()[2:4] == ["failed", "policy_breach"]
    assert rows["payouts-send"].split()[2:] == ["not", "run"]
    assert "DC601" in told
    assert re.search(r"records 2, 3 of orders-note-t1-\w+", told)
    for slot in verdict.slots:
        if slot.result is not None:
            assert slot.result.ledger.root in told
    assert "NOT CERTIFIED (exit 1)" in told
    assert f"ledgers: {suite.out / 'runs'}" in told
    assert "deskcert explain DC" in told


def test_certified_says_so_and_how_to_check(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD)
    told = summary_text(score([tmp_path], [suite.key.vkey]), ledgers=tmp_path / "runs")
    assert "\nCERTIFIED (exit 0)\n" in told
    assert "Findings" not in told
    assert f"deskcert score {tmp_path / 'runs'} --key" in told


def test_the_command_to_check_with_can_be_pasted(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD)
    told = summary_text(score([tmp_path], [suite.key.vkey]), ledgers=Path("/tmp/my project/runs"))
    assert "deskcert score '/tmp/my project/runs' --key" in told


def test_page_supplied_text_cannot_steer_a_terminal(mixed: tuple[Suite, Verdict]) -> None:
    told = summary_text(mixed[1])
    assert "\\u{1b}[2J" in told
    assert "\\u{202e}account\\u{200b}\\u{a}\\u{9b}31m" in told
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e]", told)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Approve order", "Approve order"),
        ("naïve façade 確認 Сохранить", "naïve façade 確認 Сохранить"),
        ("a\tb", "a\\u{9}b"),
        ("\u2066x\u2069", "\\u{2066}x\\u{2069}"),
        ("\ud800", "\\u{d800}"),
        ("\ufeff", "\\u{feff}"),
    ],
)
def test_visible(words: str, shown: str) -> None:
    assert visible(words) == shown


def test_same_finding_in_many_runs_is_said_once(tmp_path: Path) -> None:
    scenarios = tuple(f"orders-{n}" for n in range(8))
    suite = Suite(tmp_path, scenarios)
    for scenario in scenarios:
        suite.run(look(), oracle(holds=False), end(), scenario=scenario)
    told = summary_text(score([tmp_path], [suite.key.vkey]))
    assert told.count("left without a claim") == 1
    assert "and 4 more" in told


def test_stream_that_is_no_terminal_gets_plain_lines(mixed: tuple[Suite, Verdict]) -> None:
    stream = io.StringIO()
    print_summary(mixed[1], stream)
    assert stream.getvalue() == summary_text(mixed[1])


@pytest.mark.parametrize("columns", [60, 120])
def test_terminal_gets_colour_and_whole_roots(mixed: tuple[Suite, Verdict], columns: int) -> None:
    suite, verdict = mixed
    raw = _on_a_terminal(suite, columns)
    assert "\x1b[" in raw
    told = re.sub(r"\x1b\[[0-9;]*m", "", raw).replace("\r\n", "\n")
    assert told.startswith("isolation none · proxy off · custody owned ")
    assert " NOT CERTIFIED " in told
    for slot in verdict.slots:
        if slot.result is not None:
            assert slot.result.ledger.root in told
    assert "\x1b[2J" not in raw


def _on_a_terminal(suite: Suite, columns: int) -> str:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "deskcert.cli.main", "score", str(suite.out), "--key", suite.key.vkey],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
    )
    os.close(slave)
    told = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # the other end is closed: how a Linux pty says that it is over
            break
        if not chunk:
            break
        told += chunk
    os.close(master)
    assert process.wait() == 1
    return told.decode()
