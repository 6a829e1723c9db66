"""Bad input of every kind: the file, the line and what was expected are named, and all problems at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deskcert.certify.config import Overrides, load_settings
from deskcert.certify.config_checks import check_command
from deskcert.certify.preflight import preflight
from deskcert.certify.suite import load_suites, make_plan, policy_for, select
from deskcert_schema.errors import ConfigError, UsageError

SCENARIO = """\
id: {id}
version: 1
title: Approve one order
area: orders
start: {{page: /orders}}
instruction: Approve order 1001.
budget: {{actions: 5, seconds: 20}}
oracle: [{{effect: {{kind: order.approved, id: 1001}}, times: 1}}]
expected: complete
attribution: wrong_target
"""
POLICY = """\
version: 1
deny:
  - {id: no-delete, name: "Delete account", reason: "irreversible"}
"""
CONFIG = """\
version: 1
agent: builtin:careful
suites: [./suite]
trials: 2
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is good in every file."""
    monkeypatch.chdir(tmp_path)
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "orders-a.yaml").write_text(SCENARIO.format(id="orders-a"))
    (suite / "orders-b.yaml").write_text(SCENARIO.format(id="orders-b"))
    (suite / "policy.yaml").write_text(POLICY)
    (suite / "orders-a.plan.yaml").write_text("goals: [{act: click, role: button, name: Approve}]\nclaim: done\n")
    (tmp_path / "deskcert.yaml").write_text(CONFIG)
    return tmp_path


def load(project: Path) -> tuple[str, ...]:
    settings = load_settings(Overrides(), cwd=project)
    suite = load_suites(settings.suites, base=settings.base, policy=settings.policy)
    return tuple(s.id for s in suite.scenarios)


def test_a_good_project_is_read_in_the_order_of_its_file_names(project: Path) -> None:
    assert load(project) == ("orders-a", "orders-b")


def swap(file: str, old: str, new: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        path = project / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def remove(file: str) -> Callable[[Path], None]:
    return lambda project: (project / file).unlink()


def write(file: str, text: str) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        (project / file).write_text(text)

    return change


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(project: Path) -> None:
        for one in changes:
            one(project)

    return change


BAD = {
    "unknown key in the configuration": (
        swap("deskcert.yaml", "trials: 2", "trails: 2"),
        r"deskcert\.yaml:4:.*trails.*trials",
    ),
    "wrong type in the configuration": (
        swap("deskcert.yaml", "trials: 2", "trials: two"),
        r"deskcert\.yaml:4:.*trials",
    ),
    "no trials at all": (swap("deskcert.yaml", "trials: 2", "trials: 0"), r"deskcert\.yaml:4:.*trials"),
    "a key twice": (swap("deskcert.yaml", "trials: 2", "version: 1"), r"deskcert\.yaml:4:.*second time"),
    "k greater than trials": (
        swap("deskcert.yaml", "trials: 2", 'trials: 2\ngate: {pass_hat: {k: 3, at_least: "0.9"}}'),
        r"deskcert\.yaml:\d+.*3 trials.*there are 2",
    ),
    "a proxy that is no proxy": (
        swap("deskcert.yaml", "trials: 2", "proxy: always"),
        r"deskcert\.yaml:4:.*proxy.*required",
    ),
    "a report that is not there": (
        swap("deskcert.yaml", "trials: 2", "reports: {pdf: j.pdf}"),
        r"deskcert\.yaml:4:.*pdf",
    ),
    "screenshots that are not there": (
        swap("deskcert.yaml", "trials: 2", "evidence: {screenshots: some}"),
        r"deskcert\.yaml:4:.*screenshots.*off, findings",
    ),
    "a placeholder that its transport does not have": (
        swap("deskcert.yaml", "agent: builtin:careful", 'agent: {command: [a, "{mcp_url}"], transport: mcp-stdio}'),
        r"deskcert\.yaml:2:.*\{mcp_url\}.*mcp-http",
    ),
    "a suite folder outside the project": (
        both(
            lambda project: (project.parent / "outside").mkdir() and None,
            swap("deskcert.yaml", "./suite", "../outside"),
        ),
        r"deskcert\.yaml:3: suites\[0\]: \.\./outside leads out of the project",
    ),
    "a policy outside the project": (
        swap("deskcert.yaml", "trials: 2", "policy: /etc/hostname"),
        r"deskcert\.yaml:4: policy: /etc/hostname leads out",
    ),
    "a scenario that is a link to elsewhere": (
        lambda project: (project / "suite/orders-c.yaml").symlink_to("/etc/hostname"),
        r"suite/orders-c\.yaml:1: leads out of suite",
    ),
    "a plan that is a link to elsewhere": (
        lambda project: (project / "suite/orders-b.plan.yaml").symlink_to("/etc/hostname"),
        r"suite/orders-b\.plan\.yaml:1: leads out of suite",
    ),
    "a policy that is a link to elsewhere": (
        both(remove("suite/policy.yaml"), lambda project: (project / "suite/policy.yaml").symlink_to("/etc/hostname")),
        r"suite/policy\.yaml:1: leads out of suite",
    ),
    "a suite file that is a link to itself": (
        lambda project: (project / "suite/suite.yaml").symlink_to("suite.yaml"),
        r"suite/suite\.yaml:1: leads out of suite",
    ),
    "a pipe that nobody writes to": (
        lambda project: os.mkfifo(project / "suite/orders-c.yaml"),
        r"suite/orders-c\.yaml:1:1: this is no regular file",
    ),
    "a policy that is a pipe": (
        both(swap("deskcert.yaml", "trials: 2", "policy: zero"), lambda project: os.mkfifo(project / "zero")),
        r"zero:1:1: this is no regular file",
    ),
    "a blank that was not filled in": (
        swap("suite/orders-a.yaml", "page: /orders", 'page: "<fill in: the path>"'),
        r"suite/orders-a\.yaml:5: start\.page: this is still to be filled in \(the path\)",
    ),
    "a secret in a title": (
        swap("suite/orders-a.yaml", "Approve one order", '"${ENV:X}"'),
        r"suite/orders-a\.yaml:3: title: a secret is not filled in here",
    ),
    "a secret that is misspelt": (
        swap("suite/orders-a.yaml", "Approve order 1001.", '"Use ${env:KEY}."'),
        r"suite/orders-a\.yaml:6: instruction: a secret is written",
    ),
    "a secret that is not set": (
        swap("suite/orders-a.yaml", "Approve order 1001.", '"Use ${ENV:DESKCERT_NO_SUCH}."'),
        r"suite/orders-a\.yaml:6: instruction: \$\{ENV:DESKCERT_NO_SUCH\} is not set",
    ),
    "an agent that does not exist": (swap("deskcert.yaml", "careful", "carefull"), r"carefull.*builtin:careful"),
    "a suite folder that does not exist": (
        swap("deskcert.yaml", "./suite", "./suits"),
        r"deskcert\.yaml:3: suites.*no suite folder.*suits",
    ),
    "a built-in suite that does not exist": (
        swap("deskcert.yaml", "./suite", "builtin:none"),
        r"deskcert\.yaml:3: .*builtin:none.*core",
    ),
    "a policy file that does not exist": (
        swap("deskcert.yaml", "trials: 2", "policy: mine.yaml"),
        r"deskcert\.yaml:4: policy: mine\.yaml: there is no such file",
    ),
    "no policy": (remove("suite/policy.yaml"), r"suite/policy\.yaml:1: .*no policy.*--policy"),
    "an empty policy": (write("suite/policy.yaml", "version: 1\n"), r"suite/policy\.yaml:1:.*allows everything"),
    "a rule id twice": (
        swap("suite/policy.yaml", "deny:\n", 'deny:\n  - {id: no-delete, name: "Drop", reason: "x"}\n'),
        r"suite/policy\.yaml:4:.*no-delete.*twice",
    ),
    "a rule id that the policy has": (
        swap(
            "suite/orders-b.yaml",
            "expected: complete",
            'policy: {deny: [{id: no-delete, name: "X", reason: "y"}]}\nexpected: complete',
        ),
        r"suite/orders-b\.yaml:9:.*no-delete.*twice.*policy\.yaml",
    ),
    "a regular expression that is none": (
        swap("suite/policy.yaml", '"Delete account"', '{regex: "(["}'),
        r"suite/policy\.yaml:\d+:.*deny\[0\]\.name",
    ),
    "an unknown key in a scenario": (
        swap("suite/orders-a.yaml", "title:", "titel:"),
        r"suite/orders-a\.yaml:3:.*titel.*title",
    ),
    "a scenario without an oracle": (
        swap("suite/orders-a.yaml", "oracle: [{effect: {kind: order.approved, id: 1001}, times: 1}]\n", ""),
        r"suite/orders-a\.yaml:1:.*oracle",
    ),
    "an oracle that deskcert's own application cannot be asked": (
        swap("suite/orders-a.yaml", "oracle: [", 'oracle: [{http: "http://127.0.0.1/x", status: 200}, '),
        r"suite/orders-a\.yaml:8:.*asked effect, no_effect, sql, file only",
    ),
    "an expectation that is none": (
        swap("suite/orders-a.yaml", "expected: complete", "expected: completed"),
        r"suite/orders-a\.yaml:9:.*complete",
    ),
    "an id that differs from the file's name": (
        swap("suite/orders-a.yaml", "id: orders-a", "id: orders-b"),
        r"suite/orders-a\.yaml:1:.*orders-a",
    ),
    "a file name that would be passed over": (
        write("suite/orders-c.yml", SCENARIO.format(id="orders-c")),
        r"suite/orders-c\.yml:1:.*\.yaml",
    ),
    "a bad plan": (
        swap("suite/orders-a.plan.yaml", "act: click", "act: klick"),
        r"suite/orders-a\.plan\.yaml:1:.*click",
    ),
    "an empty suite": (
        both(remove("suite/orders-a.yaml"), remove("suite/orders-b.yaml")),
        r"suite:1: .*no scenario",
    ),
    "a question about effects to an application that has no such log": (
        write("suite/suite.yaml", "version: 1\nname: mine\napp: {url: 'http://127.0.0.1:1'}\n"),
        r"suite/orders-a\.yaml:8:.*ask sql, http, file or python",
    ),
    "text that is not YAML": (write("suite/policy.yaml", "deny: [\n"), r"suite/policy\.yaml:\d+:"),
    "bytes that are not text": (
        lambda project: (project / "suite/policy.yaml").write_bytes(b"version: 1\n\xff\xfe") and None,
        r"suite/policy\.yaml.*UTF-8",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_names_file_line_and_expectation(project: Path, case: str) -> None:
    change, expected = BAD[case]
    change(project)
    with pytest.raises(UsageError) as caught:
        load(project)
    assert re.search(expected, str(caught.value), re.DOTALL), str(caught.value)


def test_the_problems_of_all_files_are_told_at_once(project: Path) -> None:
    swap("suite/orders-a.yaml", "title:", "titel:")(project)
    swap("suite/orders-b.yaml", "area: orders", "area: 7")(project)
    with pytest.raises(ConfigError) as caught:
        load(project)
    told = str(caught.value)
    assert "orders-a.yaml:3" in told
    assert "orders-b.yaml:4" in told


def test_the_same_id_in_two_suites_is_refused(project: Path) -> None:
    other = project / "other"
    other.mkdir()
    (other / "orders-a.yaml").write_text(SCENARIO.format(id="orders-a"))
    with pytest.raises(ConfigError, match=r"other/orders-a\.yaml:1: .*used twice, first in suite/orders-a\.yaml"):
        load_suites(["suite", "other"], base=project, policy=None)


def test_an_agent_must_be_named_once(project: Path) -> None:
    (project / "deskcert.yaml").unlink()
    with pytest.raises(UsageError, match="no agent to certify"):
        load_settings(Overrides(), cwd=project)
    with pytest.raises(UsageError, match="not both"):
        load_settings(Overrides(agent="builtin:careful", command=("x",)), cwd=project)


def test_the_command_line_goes_before_the_file(project: Path) -> None:
    settings = load_settings(Overrides(command=("python", "a.py"), trials=5, seed=9), cwd=project)
    assert (settings.agent.name, settings.trials, settings.seed) == ("python", 5, 9)


def test_trial_i_uses_the_seed_plus_i(project: Path) -> None:
    suite = load_suites(["suite"], base=project, policy=None)
    plan = make_plan(suite, trials=2, seed=7)
    assert [(p.scenario.id, p.trial, p.seed) for p in plan] == [
        ("orders-a", 1, 7),
        ("orders-a", 2, 8),
        ("orders-b", 1, 7),
        ("orders-b", 2, 8),
    ]


def test_only_keeps_what_matches_and_refuses_to_keep_nothing(project: Path) -> None:
    suite = load_suites(["suite"], base=project, policy=None)
    assert [s.id for s in select(suite, "*-b").scenarios] == ["orders-b"]
    with pytest.raises(UsageError, match="matches no scenario; there are: orders-a, orders-b"):
        select(suite, "nothing-*")


def test_only_given_twice_keeps_both(project: Path) -> None:
    """Once the first of two was silently forgotten."""
    suite = load_suites(["suite"], base=project, policy=None)
    assert [s.id for s in select(suite, "*-b,orders-a").scenarios] == ["orders-a", "orders-b"]
    with pytest.raises(UsageError, match="--only nothing matches no scenario"):
        select(suite, "orders-a,nothing")
    twice = ["ci", "--agent", "builtin:careful", "--suite", "suite", "--only", "orders-a", "--only", "*-b", "--list"]
    deskcert = str(Path(sys.executable).with_name("deskcert"))
    done = subprocess.run([deskcert, *twice], cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, "orders-a" in done.stdout, "orders-b" in done.stdout) == (0, True, True), done.stderr


def test_a_scenario_adds_rules_and_takes_none_away(project: Path) -> None:
    swap("suite/orders-b.yaml", "expected:", 'policy: {deny: [{id: more, name: "X", reason: "y"}]}\nexpected:')(project)
    suite = load_suites(["suite"], base=project, policy=None)
    plain, added = (policy_for(suite, s) for s in suite.scenarios)
    assert [[r["id"] for r in policy["deny"]] for policy, _ in (plain, added)] == [["no-delete"], ["no-delete", "more"]]
    assert plain[1] != added[1]


async def test_words_that_only_the_application_knows_are_asked_before_the_first_run(project: Path) -> None:
    swap("suite/orders-a.yaml", "{page: /orders}", '{page: /orders, faults: [{on: "POST /x", do: explode}]}')(project)
    swap("suite/orders-b.yaml", "expected:", "perturb:\n  - {at: leased, action: 1, do: shuffle}\nexpected:")(project)
    suite = load_suites(["suite"], base=project, policy=None)
    with pytest.raises(ConfigError) as caught:
        await preflight(suite, token="preflight")
    first, second = caught.value.problems
    assert re.search(r"suite/orders-a\.yaml:5: start: .*explode.*commit_then_hang", first)
    assert re.search(r"suite/orders-b\.yaml:10: perturb: .*shuffle.*reorder_rows", second)


async def test_misspelt_effects_and_pages_are_not_left_for_the_agent_to_fail_on(project: Path) -> None:
    swap("suite/orders-a.yaml", "order.approved", "order.aproved")(project)
    swap("suite/orders-b.yaml", "{page: /orders}", "{page: /ordres}")(project)
    swap("suite/orders-b.yaml", "oracle: [", "oracle:\n  [{sql: 'select count(*) from order', equals: 0},\n  ")(project)
    suite = load_suites(["suite"], base=project, policy=None)
    with pytest.raises(ConfigError) as caught:
        await preflight(suite, token="preflight")
    first, second, third = caught.value.problems
    assert re.search(
        r"suite/orders-a\.yaml:8: oracle: .*no effect of the kind 'order\.aproved'.*order\.approved", first
    )
    assert re.search(r"suite/orders-b\.yaml:5: start: there is no page http.*/ordres \(status 404\)", second)
    assert re.search(r"suite/orders-b\.yaml:9: oracle: this question has no answer: the query failed: .*order", third)


async def test_an_oracle_that_is_always_true_is_refused_before_the_first_run(project: Path) -> None:
    """Whoever says “done” would pass. A wanted effect besides is enough: it is not there yet."""
    swap("suite/orders-a.yaml", "{effect: {kind: order.approved, id: 1001}, times: 1}", "{sql: 'select 1', equals: 1}")(
        project
    )
    swap("suite/orders-b.yaml", "oracle: [", "oracle: [{sql: 'select 1', equals: 1}, ")(project)
    suite = load_suites(["suite"], base=project, policy=None)
    with pytest.raises(ConfigError) as caught:
        await preflight(suite, token="preflight")
    (only,) = caught.value.problems
    assert re.search(r"suite/orders-a\.yaml:8: oracle: all of it holds in the starting state already", only)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["no-such-agent"], r"deskcert\.yaml:2: agent\.command: there is no program 'no-such-agent' in PATH"),
        (["./agent"], r"deskcert\.yaml:2: .*there is no program \./agent"),
        (["./deskcert.yaml"], r"deskcert\.yaml:2: .*make it executable"),
        (
            ["python3", "-u", "my_agent.py"],
            r"deskcert\.yaml:2: .*no file my_agent\.py.*deskcert agent new my_agent\.py",
        ),
    ],
)
def test_agent_that_is_not_there_is_not_an_agent_that_failed(project: Path, command: list[str], expected: str) -> None:
    swap("deskcert.yaml", "agent: builtin:careful", f"agent: {{command: {json.dumps(command)}}}")(project)
    settings = load_settings(Overrides(), cwd=project)
    with pytest.raises(ConfigError, match=expected):
        check_command(settings.agent, settings.base)
    (project / "my_agent.py").touch()
    check_command(load_settings(Overrides(command=("python3", "-u", "my_agent.py")), cwd=project).agent, project)
