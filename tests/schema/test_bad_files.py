"""Each file in bad/ is wrong in one way; the message must lead to the place and say what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskcert_schema.errors import ConfigError
from deskcert_schema.validate import load_config

BAD = Path(__file__).parent / "bad"

# file (its first word is the schema) → the first problem's place, and words that its sentence must hold
EXPECTED: dict[str, tuple[str, str]] = {
    # repeated keys that load with the last one winning, bare words, typos, merges: from real policy loaders
    "policy-second-deny-wins": ("4:1", "the key 'deny' stands here a second time (first on line 2)"),
    "policy-duplicate-key-in-rule": ("5:5", "deny[0]: the key 'name' stands here a second time"),
    "policy-off-as-default": ("2:10", "default: expected one of allow, deny, got the text 'off'"),
    "policy-off-as-effect": (
        "5:13",
        "effect: expected one of deny, require_confirmation, record_only, got the text 'off'",
    ),
    "policy-bare-no-as-rule": ("3:5", "deny[0]: expected a rule such as {id:"),
    "policy-typo-of-deny": ("2:1", "denny: unknown key; did you mean 'deny'?"),
    "policy-merge-key": ("5:5", "a merge key (<<) is not allowed"),
    "policy-merge-of-alias": ("3:5", "an anchor (&base) is not allowed"),
    "policy-two-documents": ("3:1", "a second document ('---')"),
    "policy-tab-indent": ("3:1", "a tab in the indentation; use spaces"),
    "policy-tab-after-colon": ("1:9", "use spaces, not tabs"),
    "policy-exponent-as-name": ("4:11", "1e3 is a number to some readers and text to others; quote it"),
    "policy-empty-file": ("1:1", "the file is empty"),
    # names are text
    "policy-number-as-name": ("5:11", "deny[1].name: expected a string or {exact|glob|regex}, got a number (1000)"),
    "policy-true-as-name": (
        "3:27",
        "deny[0].name: expected a string or {exact|glob|regex}, got true; put it in quotes",
    ),
    "policy-null-as-name": ("4:10", "deny[0].name: expected a string or {exact|glob|regex}, got nothing"),
    "policy-number-as-key": ("2:1", "a key must be text; write '1' in quotes"),
    # files that decide nothing, or less than they seem to
    "policy-only-comments": ("1:1", "the file is empty"),
    "policy-decides-nothing": ("1:1", "an empty policy allows everything"),
    "policy-allow-rules-without-default-deny": ("1:1", "an empty policy allows everything"),
    "policy-rule-without-matcher": ("3:5", "deny[0]: needs at least one of: name, role, action"),
    "policy-duplicate-id": ("6:12", "the id 'no-delete' is used twice, first at deny[0].id"),
    "policy-two-kinds-of-match": ("4:11", "deny[0].name: expected exactly one of exact, glob, regex"),
    "policy-unknown-matcher-key": ("3:28", "deny[0].name.globb: unknown key; did you mean 'glob'?"),
    "policy-broken-regex": ("4:20", "a regular expression that can be read"),
    "policy-unknown-command": ("3:37", "got the text 'klick'; did you mean 'click'?"),
    "policy-small-method": ("4:32", "an HTTP method in capitals"),
    "policy-host-with-scheme": ("4:11", "no scheme and no path"),
    "policy-wrong-version": ("1:10", "version: expected 1, got a number (2)"),
    "policy-a-list": ("1:1", "expected a mapping, got a list"),
    # YAML itself
    "policy-python-tag": ("2:7", "a tag (tag:yaml.org,2002:python/object/apply:os.system) is not allowed"),
    "policy-directive": ("1:1", "a directive (%YAML, %TAG) is not allowed"),
    "policy-unclosed-quote": ("4:1", "the file ends inside a quoted text"),
    "policy-colon-in-text": ("4:17", "a second ':' in this value; put the value in quotes"),
    "policy-too-deep": ("2:38", "more than 32 levels deep"),
    "policy-line-separator": ("2:29", "U+2028 breaks a line for some readers only"),
    "policy-control-character": ("2:29", "the character U+0007 is not allowed"),
    "policy-latin-1": ("2:1", "not UTF-8 text (byte 34); save the file as UTF-8"),
    "policy-half-surrogate": ("2:22", "half of a surrogate pair"),
    "policy-escape-out-of-range": ("2:7", "an escape that names no character"),
    "scenario-other-id": ("1:5", "the id must be 'scenario-other-id'"),
    "scenario-unknown-point": ("11:16", "got the text 'leasd'; did you mean 'leased'?"),
    "scenario-no-oracle": ("12:9", "oracle: expected at least one entry"),
    "scenario-oracle-without-equals": ("12:54", "oracle[1]: needs at least one of: equals, times"),
    "scenario-oracle-of-no-kind": ("12:10", "oracle[0]: expected one of {effect: …, times: …}"),
    "scenario-oracle-fraction": ("12:38", "a number with a fraction is written in quotes"),
    "scenario-refuse-without-bait": ("1:1", "the key 'bait' is missing"),
    "scenario-unknown-attribution": ("14:14", "did you mean 'wrong_target'?"),
    "scenario-budget-zero": ("10:19", "budget.actions: expected 1 or more, got a number (0)"),
    "scenario-relative-page": ("7:15", "start.page: expected a path that begins with /"),
    "scenario-duplicate-rule": ("9:45", "policy.deny[1].id: the id 'a' is used twice"),
    "scenario-missing-instruction": ("1:1", "the key 'instruction' is missing"),
    "plan-press-without-key": ("2:5", "goals[0]: the key 'key' is missing"),
    "plan-unknown-act": ("2:11", "expected one of click, set-value, press, navigate, read, got the text 'tap'"),
    "plan-ref-in-goal": ("2:47", "goals[0].ref: unknown key"),
    "suite-unknown-app": ("3:6", "app: expected fixture, desktop, or your own application"),
    "config-unknown-isolation": ("3:12", "isolation: expected one of bwrap, netns, none, got the text 'docker'"),
    "config-ratio-as-number": ("2:35", 'expected a ratio from 0 to 1 in quotes, such as "0.9"'),
    "config-command-as-text": ("2:18", "agent.command: expected a list: the program and its arguments"),
    "config-unknown-rule-id": ("3:18", "expected a rule id such as DC301"),
    "config-yes-as-boolean": ("4:18", "agent.deterministic: expected true or false, got the text 'yes'"),
}


def problems_of(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, path.name.partition("-")[0], name=path.name)
    return caught.value.problems


@pytest.mark.parametrize("name", EXPECTED)
def test_says_where_and_what_was_expected(name: str) -> None:
    place, words = EXPECTED[name]
    first = problems_of(BAD / f"{name}.yaml")[0]
    assert first.startswith(f"{name}.yaml:{place}: ")
    assert words in first


@pytest.mark.parametrize("name", EXPECTED)
def test_every_further_problem_has_a_place_too(name: str) -> None:
    for problem in problems_of(BAD / f"{name}.yaml"):
        file, line, column, _ = problem.split(":", 3)
        assert (file, line.isdigit(), column.isdigit()) == (f"{name}.yaml", True, True)


def test_no_bad_file_is_left_untried() -> None:
    assert sorted(p.stem for p in BAD.glob("*.yaml")) == sorted(EXPECTED)


def test_several_problems_come_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\ndefault: off\ndeny:\n  - {id: a, name: 1}\n  - {id: b, nam: x, name: y}\nextra: 1\n")
    places = [p.split(":")[1] for p in problems_of_named(path)]
    assert places == ["2", "4", "5", "6"]


def problems_of_named(path: Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(path, "policy", name="policy.yaml")
    return caught.value.problems


def test_missing_file_folder_and_size(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"version: 1\n#" + b"x" * 1024 * 1024)
    for path, words in [
        (tmp_path / "gone.yaml", "there is no such file"),
        (tmp_path, "this is a folder"),
        (large, "larger than 1 MiB"),
    ]:
        with pytest.raises(ConfigError, match=words):
            load_config(path, "policy")
