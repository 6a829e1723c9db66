"""`deskcert score`, `rules` and `explain`, run as programs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from scoring_runs import Suite
from scoring_talk import GOOD, claim, end, look, oracle

from deskcert.agents.registry import agent_names
from deskcert.report.rule_pages import as_page
from deskcert.scoring import RULES, score

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def _deskcert(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "deskcert.cli.main", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
    )


def test_score_gives_same_bytes_as_the_function_in_any_form(tmp_path: Path) -> None:
    suite = Suite(tmp_path / "out", ("orders-approve", "orders-note"))
    suite.run(*GOOD)
    suite.run(*GOOD, scenario="orders-note")
    expected = score([suite.out], [suite.key.vkey]).as_bytes()
    runs = sorted((suite.out / "runs").iterdir())
    key_file = tmp_path / "key.pub"
    key_file.write_text(suite.key.vkey + "\n")
    out = tmp_path / "verdict.json"
    for places, key in (([suite.out], suite.key.vkey), (runs, key_file), (runs[::-1], suite.key.vkey)):
        done = _deskcert("score", *places, "--key", key, "--json", "--out", out)
        assert (done.returncode, done.stdout, done.stderr) == (0, expected, b"")
        assert out.read_bytes() == expected


def test_local_project_key_is_the_pin_without_key_option(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD)
    local = _deskcert("score", tmp_path / "runs", cwd=tmp_path, DESKCERT_KEY_FILE=str(tmp_path / "key" / "key"))
    assert local.returncode == 0
    without = _deskcert("score", tmp_path / "runs", cwd=tmp_path, DESKCERT_KEY_FILE=str(tmp_path / "nothing"))
    assert without.returncode == 4
    assert b"no local project key" in without.stdout


@pytest.mark.parametrize(
    ("records", "code"),
    [(GOOD, 0), ((look(), claim(), oracle(holds=False), end()), 1), ((*GOOD[:-1], end("interrupted")), 3)],
)
def test_exit_codes(tmp_path: Path, records: tuple[dict[str, object], ...], code: int) -> None:
    suite = Suite(tmp_path)
    suite.run(*records)
    done = _deskcert("score", tmp_path, "--key", suite.key.vkey)
    assert done.returncode == code
    assert done.stdout.startswith(b"isolation none")


@pytest.mark.parametrize("what", ["nowhere", "empty"])
def test_nothing_to_score_is_exit_2_and_a_sentence(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()
    done = _deskcert("score", tmp_path / what)
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"Traceback" not in done.stderr
    assert what.encode() in done.stderr


def test_bad_key_and_unwritable_out_are_exit_2(tmp_path: Path) -> None:
    suite = Suite(tmp_path)
    suite.run(*GOOD)
    assert _deskcert("score", tmp_path, "--key", "no-key").returncode == 2
    done = _deskcert("score", tmp_path, "--key", suite.key.vkey, "--out", tmp_path / "no" / "verdict.json")
    assert done.returncode == 2
    assert b"--out" in done.stderr


def test_rules_as_json_list_every_rule_and_the_agents_they_are_written_for() -> None:
    done = _deskcert("rules", "--json")
    told = json.loads(done.stdout)
    assert [r["id"] for r in told] == [rule.about.id for rule in RULES]
    assert all(r["why"] and r["fix"] and r["attribution"] for r in told)
    written_for = [r["written_for"] for r in told if r["written_for"]]
    # Each agent with a defect has its rule, and `careful` has none.
    assert sorted(written_for) == sorted(set(agent_names()) - {"careful"})


def test_rules_have_unique_ids_in_order() -> None:
    ids = [rule.about.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert len({rule.about.name for rule in RULES}) == len(RULES)


def test_page_of_rules_is_current() -> None:
    assert PAGE.read_text("utf-8") == as_page(), "run: deskcert rules --markdown > docs/rules.md"


def test_explain_one_rule() -> None:
    done = _deskcert("explain", "dc401")
    assert done.returncode == 0
    assert b"How to fix it" in done.stdout
    unknown = _deskcert("explain", "DC999")
    assert unknown.returncode == 2
    assert b"deskcert rules" in unknown.stderr


def test_scoring_imports_neither_click_nor_rich_nor_a_browser() -> None:
    program = "import sys, deskcert.scoring; print([m for m in ('click','rich','playwright') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"[]\n"
