"""The project's log: a leaf a run, written before the run's first record; a run that is left out has a name."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import StepClock

from deskcert_ledger import ProjectKey, RunLedger, verify_run
from deskcert_ledger.merkle import Tree, leaf_hash
from deskcert_ledger.note import parse_note
from deskcert_ledger.project_log import COPY, ProjectLog, check_log
from deskcert_schema.errors import LedgerTampered

Create = Callable[..., RunLedger]
DESKCERT = str(Path(sys.executable).with_name("deskcert"))


@pytest.fixture
def out(tmp_path: Path, create: Create, key: ProjectKey) -> Path:
    """An output folder with two campaigns' runs, and the log's copy."""
    for campaign, names in (("c1", ("a-1", "a-2")), ("c2", ("b-1", "b-2", "b-3"))):
        log = ProjectLog(tmp_path / ".deskcert" / "log", key, StepClock(), campaign=campaign)
        for name in names:
            ledger = create(f"out/runs/{name}", origin=f"deskcert/test/{name}", register=log.begin(name))
            ledger.append("run.end", {"outcome": "finished"})
            ledger.seal()
        log.copy(tmp_path / "out" / COPY)
    return tmp_path / "out"


def verify(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [DESKCERT, "ledger", "verify", str(out), "--key", str(out.parent / "pin"), *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_run_that_was_dropped_is_named(out: Path, key: ProjectKey) -> None:
    (out.parent / "pin").write_text(key.vkey)
    whole = verify(out)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    assert "all 5 runs that were begun together are here" in whole.stdout
    assert "left out" not in whole.stdout
    shutil.rmtree(out / "runs" / "b-2")
    done = verify(out)
    assert done.returncode == 1
    assert "run b-2 was begun, and its folder is not here" in done.stdout
    told = json.loads(verify(out, "--json").stdout)
    assert [report["project_log"]["missing"] for report in told] == [["b-2"]] * 4
    assert [report["headline"] for report in told] == ["complete"] * 4


def test_a_campaign_whose_runs_are_elsewhere_is_not_missed(out: Path, key: ProjectKey) -> None:
    """The log is the project's; another output folder holds what that campaign began."""
    for name in ("a-1", "a-2"):
        shutil.rmtree(out / "runs" / name)
    (out.parent / "pin").write_text(key.vkey)
    assert verify(out).returncode == 0


def test_a_run_that_was_set_aside_is_still_there(out: Path, key: ProjectKey) -> None:
    (out / "set_aside").mkdir()
    (out / "runs" / "b-2").rename(out / "set_aside" / "b-2")
    (out.parent / "pin").write_text(key.vkey)
    done = verify(out)
    assert (done.returncode, "all 5 runs" in done.stdout) == (0, True)


def test_the_log_is_a_tree_that_the_projects_key_signs(out: Path, key: ProjectKey) -> None:
    """Recomputed here from the bytes: each run's first record holds size and root with its own leaf in it."""
    tree, roots = Tree(), {}
    for line in (out / COPY / "log.jsonl").read_bytes().split(b"\n")[:-1]:
        tree.append(leaf_hash(line))
        roots[json.loads(line)["run"]] = (tree.size, tree.root())
    note = parse_note((out / COPY / "checkpoint").read_bytes())
    assert note.holds(key.verifier)
    assert note.text.split("\n")[:2] == [key.verifier.name, "5"]
    from deskcert_ledger.b64 import b64encode

    for name, (size, root) in roots.items():
        start = json.loads((out / "runs" / name / "ledger.jsonl").read_bytes().split(b"\n")[0])
        assert start["project_log"] == {"size": size, "root": b64encode(root)}


def starts(out: Path) -> list[dict[str, object]]:
    runs = sorted((out / "runs").iterdir())
    return [json.loads((run / "ledger.jsonl").read_bytes().split(b"\n")[0]) for run in runs]


def test_every_changed_byte_of_the_log_shows(out: Path, key: ProjectKey) -> None:
    copy, records = out / COPY, starts(out)
    assert check_log(copy, (key.verifier,), records).good
    for name in ("log.jsonl", "checkpoint"):
        whole = (copy / name).read_bytes()
        for at in range(len(whole)):
            (copy / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert not check_log(copy, (key.verifier,), records).good, (name, at)
        (copy / name).write_bytes(whole)
    assert check_log(copy, (key.verifier,), records).good


def test_a_log_that_was_cut_back_does_not_fit_the_runs(out: Path, key: ProjectKey) -> None:
    """Even one that the project's own key signed again: the runs that began later know better."""
    lines = (out / COPY / "log.jsonl").read_bytes().split(b"\n")[:-1]
    forged = out.parent / "forged"
    forged.mkdir()
    log = ProjectLog(forged, key, StepClock(), campaign="c1")
    for line in lines[:3]:
        entry = json.loads(line)
        log.campaign = entry["campaign"]
        log.begin(entry["run"])(entry["origin"], entry["vkey"])
    report = check_log(forged, (key.verifier,), starts(out))
    assert [problem.split("-")[1][0] for problem in report.problems] == ["2", "3"]


def test_a_run_under_the_name_of_another_is_not_taken_for_it(out: Path, create: Create, key: ProjectKey) -> None:
    shutil.rmtree(out / "runs" / "b-3")
    other = ProjectLog(out.parent / "elsewhere", key, StepClock(), campaign="c2")
    again = create("out/runs/b-3", origin="deskcert/test/b-3", register=other.begin("b-3"))
    again.append("run.end", {})
    again.seal()
    assert verify_run(again.folder, pins=[key.vkey]).headline == "complete"
    report = check_log(out / COPY, (key.verifier,), starts(out))
    assert any("b-3" in problem for problem in report.problems)


def test_what_a_crash_left_of_a_leaf_is_cut_and_the_log_goes_on(out: Path, create: Create, key: ProjectKey) -> None:
    folder = out.parent / ".deskcert" / "log"
    before = (folder / "log.jsonl").read_bytes()
    with (folder / "log.jsonl").open("ab") as file:
        file.write(b'{"v":1,"n":5,"t"')
    log = ProjectLog(folder, key, StepClock(), campaign="c3")
    assert log.begin("d-1")("deskcert/test/d-1", "k")["project_log"]["size"] == 6
    assert (folder / "log.jsonl").read_bytes().startswith(before + b'{"v":1,"n":5,"t":"')


def test_a_log_that_was_changed_lets_no_run_begin(out: Path, create: Create, key: ProjectKey) -> None:
    folder = out.parent / ".deskcert" / "log"
    (folder / "log.jsonl").write_bytes((folder / "log.jsonl").read_bytes().replace(b"b-2", b"b-9"))
    log = ProjectLog(folder, key, StepClock(), campaign="c3")
    with pytest.raises(LedgerTampered, match="do not match"):
        create("out/runs/d-1", origin="deskcert/test/d-1", register=log.begin("d-1"))


BEGIN = """
import sys
from pathlib import Path
from deskcert_ledger import ProjectKey, SystemClock
from deskcert_ledger.project_log import ProjectLog
folder, number = Path(sys.argv[1]), sys.argv[2]
log = ProjectLog(folder / "log", ProjectKey.load(folder / ".deskcert" / "key"), SystemClock(), campaign=f"c{number}")
for turn in range(5):
    log.begin(f"{number}-{turn}")(f"deskcert/test/{number}-{turn}", "k")
"""


def test_several_processes_write_one_log(tmp_path: Path, key: ProjectKey) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", BEGIN, str(tmp_path), str(number)]) for number in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    entries = [json.loads(line) for line in (tmp_path / "log" / "log.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [entry["n"] for entry in entries] == list(range(20))
    assert len({entry["run"] for entry in entries}) == 20
    assert check_log(tmp_path / "log", (key.verifier,), []).good
