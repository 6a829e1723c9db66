"""A whole CI job from the workflow file that `deskcert init` writes: its own steps, the package of this checkout."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from e2e_campaigns import run_deskcert
from rehearsal import Done, Machine, Rehearsal

from deskcert_ledger import ProjectKey

pytestmark = pytest.mark.web

REPOSITORY = Path(__file__).parents[2]
SHARDS = (1, 2, 3)
FILES = {"verdict.json", "summary.txt", "junit.xml", "deskcert.sarif", "ctrf.json", "report.html", "suite.intoto.jsonl"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that a user would install."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `deskcert init` writes, in a repository."""
    folder = tmp_path_factory.mktemp("project")
    assert run_deskcert("init", ".", cwd=folder).returncode == 0
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-q", "-m", "Begin")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(tmp_path_factory.mktemp("machine"))


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's, as its repository keeps it among its secrets."""
    path = tmp_path_factory.mktemp("key") / "key"
    ProjectKey.load_or_create(path, name="deskcert/rehearsed")
    return path


def rehearsal(project: Path, folder: Path, package: Path, key: Path, arguments: str) -> Rehearsal:
    workflow = project / ".github" / "workflows" / "deskcert-certify.yml"
    inputs = {"package": str(package), "arguments": arguments}
    return Rehearsal(workflow, project, folder, inputs, key=key.read_text().rstrip())


@pytest.fixture(scope="module")
def careful(
    project: Path,
    package: Path,
    machine: Machine,
    key: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Rehearsal, dict[int, Done], Done]:
    """Three shards, each in a clone of its own, and the job that merges them."""
    made = rehearsal(
        project,
        tmp_path_factory.mktemp("careful"),
        package,
        key,
        "--agent builtin:careful --suite builtin:smoke --only order*",
    )
    parts = {number: made.job("certify", machine, shard=number, total=len(SHARDS)) for number in SHARDS}
    return made, parts, made.job("merge", machine)


def test_the_job_passes_on_careful_and_leaves_what_it_should(
    careful: tuple[Rehearsal, dict[int, Done], Done], machine: Machine
) -> None:
    made, parts, merged = careful
    assert [part.steps for part in parts.values() if not part.ok] == [], parts
    assert list(parts[1].steps) == ["Install", "Browser", "Key", "Look", "Certify"]
    assert merged.steps == {"Install": 0, "Key": 0, "Merge": 0}, merged.said
    out = made.artifacts / "deskcert"
    assert {p.name for p in out.iterdir()} >= FILES
    verdict = json.loads((out / "verdict.json").read_bytes())
    assert verdict["certified"] is True
    assert len(verdict["runs"]) == len(SHARDS)
    assert merged.summary.startswith("## deskcert: builtin:careful is certified")
    assert machine.asked.read_text().splitlines()[0] == "install --with-deps chromium --only-shell"
    assert not any((made.artifacts / f"deskcert-{n}" / "suite.intoto.jsonl").exists() for n in SHARDS)


def test_each_shard_ran_its_own_part_of_one_plan(careful: tuple[Rehearsal, dict[int, Done], Done]) -> None:
    made, _, _ = careful
    starts = [
        json.loads(path.open().readline())
        for number in SHARDS
        for path in (made.artifacts / f"deskcert-{number}" / "runs").glob("*/ledger.jsonl")
    ]
    assert sorted(start["shard"] for start in starts) == ["1/3", "2/3", "3/3"]
    assert len({start["scenario"]["id"] for start in starts}) == len(SHARDS)
    assert {start["attempt"] for start in starts} == {"GITHUB_RUN_ID:1.1"}
    assert len({json.dumps(start["plan"]) for start in starts}) == 1


def test_merged_shards_have_the_verdict_bytes_of_one_score_over_the_same_folders(
    careful: tuple[Rehearsal, dict[int, Done], Done], key: Path, tmp_path: Path
) -> None:
    """Elsewhere: other folders, another time zone, hash seed and locale, and the working copies in another order."""
    made, _, _ = careful
    expected = (made.artifacts / "deskcert" / "verdict.json").read_bytes()
    clones = [made.folder / f"certify-{number}" / "deskcert-out" / "ci" for number in (3, 1, 2)]
    there = {**os.environ, "TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "4711", "LC_ALL": "C"}
    moved = shutil.copytree(made.artifacts / "deskcert" / "runs", tmp_path / "a b" / "runs")
    for places in (clones, [moved]):
        done = run_deskcert(
            "score", *map(str, places), "--key", ProjectKey.load(key).vkey, "--json", cwd=tmp_path, env=there
        )
        assert (done.returncode, done.stdout.encode()) == (0, expected), done.stderr


def test_a_missing_shard_is_inconclusive(
    careful: tuple[Rehearsal, dict[int, Done], Done], key: Path, tmp_path: Path
) -> None:
    made, _, _ = careful
    two = [str(made.artifacts / f"deskcert-{number}") for number in (1, 3)]
    done = run_deskcert("merge", *two, "--key", ProjectKey.load(key).vkey, "--out", "out", cwd=tmp_path)
    assert done.returncode == 3
    assert "Shard 2/3 is not there." in done.stdout


def test_the_job_fails_on_a_defect_agent_and_leaves_its_reports(
    project: Path, package: Path, machine: Machine, key: Path, tmp_path: Path
) -> None:
    arguments = "--agent builtin:wrong_row --suite builtin:smoke --only orders-rerender"
    made = rehearsal(project, tmp_path, package, key, arguments)
    done = made.job("certify", machine)
    assert done.steps["Certify"] == 1, done.said
    assert "::error title=deskcert%3A builtin%3Awrong_row is not certified::" in done.said
    assert done.summary.startswith("## deskcert: builtin:wrong")
    out = made.artifacts / "deskcert-1"
    assert {p.name for p in out.iterdir()} >= FILES
    assert json.loads((out / "verdict.json").read_bytes())["exit_code"] == 1
    assert "<failure" in (out / "junit.xml").read_text()
