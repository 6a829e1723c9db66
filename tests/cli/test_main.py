"""The program itself: help that is fast, errors that are one sentence, exit codes that mean what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import deskcert
from deskcert.certify.campaign import only_one
from deskcert.cli.main import COMMANDS

DESKCERT = str(Path(sys.executable).with_name("deskcert"))


def call(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")}
    return subprocess.run([DESKCERT, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def test_help_lists_every_command_and_says_what_to_type(tmp_path: Path) -> None:
    done = call("--help", cwd=tmp_path)
    assert done.returncode == 0
    for name in COMMANDS:
        assert f"  {name} " in done.stdout
    assert "deskcert ci --agent builtin:careful --suite builtin:core" in done.stdout
    assert "3 inconclusive" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_listed_command_has_help(tmp_path: Path, name: str) -> None:
    done = call(name, "--help", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Usage: deskcert")


def test_the_version_is_the_package_s(tmp_path: Path) -> None:
    assert call("--version", cwd=tmp_path).stdout == f"deskcert {deskcert.__version__}\n"


@pytest.mark.parametrize("arguments", [("--help",), ("score", "--help"), ("ledger", "--help"), ("ci", "--help")])
def test_help_imports_nothing_heavy(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom deskcert.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "heavy = {'playwright', 'mitmproxy', 'jsonschema', 'starlette', 'structlog'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("heavy: []\n")


USAGE = {
    "no agent": (("ci",), "no agent to certify"),
    "unknown agent": (("ci", "--agent", "builtin:nobody"), "builtin:careful"),
    "two agents": (("ci", "--agent", "builtin:careful", "--", "x"), "not both"),
    "unknown suite": (("ci", "--agent", "builtin:careful", "--suite", "builtin:nothing"), "builtin:core"),
    "no such folder": (("ci", "--agent", "builtin:careful", "--suite", "nowhere"), "no suite folder"),
    "no such policy": (("ci", "--agent", "builtin:careful", "--policy", "nowhere.yaml"), "nowhere.yaml"),
    "no such configuration": (("ci", "--config", "nowhere.yaml"), "nowhere.yaml"),
    "no trial": (("ci", "--agent", "builtin:careful", "--trials", "0"), "1 or more"),
    "no number": (("ci", "--agent", "builtin:careful", "--trials", "many"), "many"),
    "nothing selected": (("ci", "--agent", "builtin:careful", "--only", "zzz"), "matches no scenario"),
    "a key that is none": (("ci", "--agent", "builtin:careful", "--key", "nonsense"), "--key"),
    "unknown option": (("ci", "--agnet", "builtin:careful"), "--agent"),
    "unknown command": (("certify",), "certify"),
    "nothing to score": (("score", "nowhere"), "nowhere"),
}


@pytest.mark.parametrize("case", USAGE)
def test_usage_errors_are_exit_code_2_and_say_what_to_do(tmp_path: Path, case: str) -> None:
    arguments, words = USAGE[case]
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == [], "a refused command leaves nothing"


def test_a_wrong_pause_point_is_a_usage_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [DESKCERT, "ci", "--agent", "builtin:careful"],
        cwd=tmp_path,
        env=os.environ | {"DESKCERT_PAUSE_AT": "somewhere", "DESKCERT_PAUSE_FILE": "f"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "somewhere" in done.stderr


def test_problems_in_files_are_told_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "deskcert.yaml").write_text("version: 1\nagent: builtin:careful\nsuites: [builtin:core]\ntrails: 2\n")
    done = call("ci", cwd=tmp_path)
    assert done.returncode == 2
    assert "deskcert.yaml:4:" in done.stderr
    assert "trials" in done.stderr


def test_two_campaigns_do_not_share_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with only_one(out):
        done = call("ci", "--agent", "builtin:careful", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "another deskcert works in" in done.stderr


def test_a_finished_certification_is_not_mixed_with_another(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "suite.intoto.jsonl").write_text("{}\n")
    done = call("ci", "--agent", "builtin:careful", "--out", "out", cwd=tmp_path)
    assert done.returncode == 2
    assert "holds a finished certification" in done.stderr
    assert "--out" in done.stderr
    assert not (tmp_path / "out" / "runs").exists()


def test_letters_that_the_output_cannot_hold_end_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    arguments = [DESKCERT, "rules", "--markdown"]
    done = subprocess.run(arguments, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.returncode == 0
    assert r"severity `high` \xb7 confidence `certain`" in done.stdout


def test_an_output_folder_that_is_a_file_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    done = call("ci", "--agent", "builtin:careful", "--out", "out/inner", cwd=tmp_path)
    assert done.returncode == 2
    assert "--out" in done.stderr


def test_without_a_browser_one_sentence_says_how_to_get_one(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")}
    done = subprocess.run(
        [DESKCERT, "ci", "--agent", "builtin:careful", "--out", "out"],
        cwd=tmp_path,
        env=environment | {"DESKCERT_BROWSER": "/nonexistent/browser"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "/nonexistent/browser" in done.stderr
    assert "unset it" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("program", ["/bin/true", "/bin/cat", "/nonexistent/python"])
def test_setup_says_so_when_it_is_given_no_python(program: str) -> None:
    script = Path(__file__).parents[2] / "scripts" / "find-python.sh"
    environment = os.environ | {"PYTHON": program}
    done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False, input="")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"PYTHON={program} is not a usable CPython" in done.stderr
