"""What is wrong about a user's application or a question about it is told with file and line before the first run, and
what was started for that is ended."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from own_processes import naming

from deskcert.certify.own_preflight import try_own
from deskcert.certify.suite import load_suites
from deskcert_schema.errors import ConfigError

DESK = Path(__file__).parent / "desk"

# what is replaced in which file, and what is said about it
FILES = {
    "an unknown key": (
        "suite.yaml",
        "database:",
        "databse:",
        r"suite\.yaml:\d+:\d+: app\.databse: unknown key.*database",
    ),
    "a port for nobody": ("suite.yaml", ', "{port}", ', ", ", r"suite\.yaml:7: app\.command: .*does not say \{port\}"),
    "another machine": (
        "suite.yaml",
        "http://127.0.0.1:",
        "http://example.org:",
        r"suite\.yaml:9: app\.url: .*127\.0\.0\.1",
    ),
    "a database elsewhere": (
        "suite.yaml",
        "database: desk.sqlite",
        "database: ../../desk.sqlite",
        r"suite\.yaml:14: app\.database: leads out of its folder",
    ),
    "no such file of functions": (
        "close-one.yaml",
        "checks:closed",
        "cheks:closed",
        r"close-one\.yaml:\d+: .*no file cheks\.py",
    ),
    "no such function": (
        "close-one.yaml",
        "checks:closed",
        "checks:close",
        r"close-one\.yaml:\d+: .*no function close; .*closed",
    ),
    "no such function for a hook": (
        "suite.yaml",
        "checks:opened",
        "checks:open",
        r"suite\.yaml:13: .*no function open",
    ),
    "effects": (
        "close-one.yaml",
        "oracle:\n",
        "oracle:\n  - {no_effect: {kind: a.b}}\n",
        r"close-one\.yaml:9: .*no_effect|log",
    ),
    "seed": (
        "close-one.yaml",
        "{page: /,",
        "{page: /, seed: {orders: 3},",
        r"close-one\.yaml:5: start\.seed: .*reset hook",
    ),
    "a perturbation": (
        "close-one.yaml",
        "expected:",
        "perturb: [{at: leased, action: 1, do: cover}]\nexpected:",
        r"close-one\.yaml:\d+: perturb: .*take it out",
    ),
    "a secret that is not set": (
        "suite.yaml",
        "ENV:DESK_KEY",
        "ENV:NO_KEY",
        r"suite\.yaml:8: .*\$\{ENV:NO_KEY\} is not set",
    ),
}
RUNNING = {
    "a program that is not there": (
        "suite.yaml",
        'command: [python3, "{suite}/desk',
        'command: [pyhton3, "{suite}/desk',
        r"suite\.yaml:3: app: the application could not be started.*pyhton3",
    ),
    "a program that ends": (
        "suite.yaml",
        "desk_app.py",
        "no_app.py",
        r"suite\.yaml:3: app: the application ended before it was ready; its last words: .*no_app\.py",
    ),
    "never ready": (
        "suite.yaml",
        'output: "listening with the key", seconds: 20',
        'output: "never said", seconds: 1',
        r"suite\.yaml:3: app: the application was not ready within 1 s \(waited for a line with 'never said'\)",
    ),
    "no health": (
        "suite.yaml",
        'output: "listening with the key", seconds: 20',
        "http: 'http://127.0.0.1:9/', seconds: 1",
        r"not ready within 1 s \(waited for an answer from http://127\.0\.0\.1:9/\)",
    ),
    "a setup that fails": (
        "suite.yaml",
        "make_data.py",
        "no_data.py",
        r"suite\.yaml:3: app: setup: command: python3 ended with status 2: .*no_data\.py",
    ),
    "a setup in wrong SQL": (
        "suite.yaml",
        "into tickets",
        "into tickts",
        r"suite\.yaml:3: app: setup: sql: no such table: tickts",
    ),
    "a reset that fails": (
        "suite.yaml",
        "url: /reset",
        "url: /rest",
        r"suite\.yaml:3: app: reset: http: the answer was 404",
    ),
    "a scenario's reset that fails": (
        "close-one.yaml",
        "update tickets",
        "update tickts",
        r"close-one\.yaml:5: start\.reset: sql: no such table: tickts",
    ),
    "a page that is not there": (
        "close-one.yaml",
        "{page: /,",
        "{page: /tickts,",
        r"close-one\.yaml:5: start: there is no page http.*/tickts \(status 404\)",
    ),
    "a question in wrong SQL": (
        "close-one.yaml",
        "count(*) from tickets",
        "count(*) from tickts",
        r"close-one\.yaml:9: oracle: .*no such table: tickts",
    ),
    "a count that is none": (
        "close-one.yaml",
        "pointer: /count",
        "pointer: /closed",
        r"close-one\.yaml:11: oracle: .*times counts, so the answer must be one whole number",
    ),
    "a function that raises": (
        "checks.py",
        "import sqlite3",
        "import sqlite3\n\n1 / 0",
        r"suite\.yaml:3: app: reset: python: .*ZeroDivisionError",
    ),
    "a function that ends the process": (
        "checks.py",
        'print("this goes nowhere")',
        "raise SystemExit(3)",
        r"close-one\.yaml:\d+: oracle: .*ended the process",
    ),
}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DESK_KEY", "a-key-of-some-length")
    shutil.copytree(DESK, tmp_path / "desk")
    return tmp_path / "desk"


def change(suite: Path, file: str, old: str, new: str) -> None:
    text = (suite / file).read_text()
    assert old in text
    (suite / file).write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("case", FILES)
def test_files_that_cannot_be_meant(suite: Path, case: str) -> None:
    *what, expected = FILES[case]
    change(suite, *what)
    with pytest.raises(ConfigError) as caught:
        load_suites(["desk"], base=suite.parent, policy=None)
    assert re.search(expected, str(caught.value)), str(caught.value)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each, all of them tried at once; "" is the suite as it should be."""
    place = tmp_path_factory.mktemp("running")
    suites = {case: place / str(number) for number, case in enumerate([*RUNNING, ""])}

    async def said(case: str) -> str:
        loaded = load_suites([str(suites[case])], base=place, policy=None)
        assert loaded.app is not None
        try:
            await try_own(loaded.app, loaded.scenarios, loaded.secrets, token="preflight")
        except ConfigError as exc:
            return str(exc)
        return "nothing"

    async def all_at_once() -> list[str]:
        return await asyncio.gather(*(said(case) for case in suites))

    for case, suite in suites.items():
        shutil.copytree(DESK, suite)
        if case:
            change(suite, *RUNNING[case][:3])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DESK_KEY", "a-key-of-some-length")
        answers = asyncio.run(all_at_once())
    assert naming(str(place)) == set(), "nothing that was started is left"
    return dict(zip(suites, answers, strict=True))


@pytest.mark.parametrize("case", RUNNING)
def test_applications_and_questions_that_do_not_work(told: dict[str, str], case: str) -> None:
    assert re.search(RUNNING[case][3], told[case]), told[case]


def test_a_good_suite_has_nothing_to_say(told: dict[str, str]) -> None:
    assert told[""] == "nothing"
