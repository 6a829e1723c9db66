"""Agents as other people may write them: they crash, hang, leave without a claim, write garbage. Each gets its outcome
in the ledger, and the suite goes on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Campaign, of_kind, records, run_deskcert

pytestmark = pytest.mark.web

AGENT = """
import json, os, sys, time
task = json.loads(sys.stdin.readline())
scenario = "1" if "1001" in task["task"] else "2"
if scenario == "1":
    {misbehave}
number = 0
def ask(command, **args):
    global number
    number += 1
    print(json.dumps({{"id": number, "command": command, "args": args}}), flush=True)
    while True:
        answer = json.loads(sys.stdin.readline())
        if answer.get("id") == number:
            return answer
def refs(node, row=None):
    for child in node if isinstance(node, list) else node.get("children", []):
        context = [label for _, label in child.get("context", [])]
        if child.get("role") == "button" and child.get("name") == "Approve" and "Order 1002" in context:
            yield child["ref_id"]
        yield from refs(child)
page = ask("snapshot")["data"]
(ref,) = refs(page["tree"])
assert ask("click", ref=ref)["ok"]
while "Order 1002 was approved" not in json.dumps(ask("snapshot")):
    time.sleep(0.05)
ask("finish", outcome="done", message="approved")
"""
SCENARIO = """\
id: approve-{n}
version: 1
title: Approve one order
area: orders
start: {{page: /orders, seed: {{orders: 12}}}}
instruction: Approve order 100{n}.
budget: {{actions: 5, seconds: {seconds}}}
oracle: [{{effect: {{kind: order.approved, id: 100{n}}}, times: 1}}]
expected: complete
attribution: goal_not_met
"""
KILL_THE_BROWSER = """
for entry in os.listdir("/proc"):
    try:
        words = open(f"/proc/{entry}/cmdline", "rb").read()
        mark = open(f"/proc/{entry}/environ", "rb").read()
    except OSError:
        continue
    token = os.environ["DESKCERT_RUN_TOKEN"].split(".")[0].encode()
    if token in mark and b"chrom" in words and b"--headless" in words and b"--type=" not in words:
        os.kill(int(entry), 9)
"""
POLICY = 'version: 1\ndeny:\n  - {id: no-delete, name: "Delete account", reason: "irreversible"}\n'

MISBEHAVE = {
    "crash": ("sys.exit(7)", "crashed", {"status": 7}, "error"),
    "hang": ("time.sleep(600)", "hung", {"seconds": 2}, "budget"),
    "leave": ("sys.exit(0)", "exited", {"status": 0}, "finished"),
    "garbage": ("[print('¿qué?', flush=True) for _ in range(30)]; time.sleep(600)", "protocol_error", {}, "error"),
}


@pytest.fixture(scope="module", params=sorted(MISBEHAVE))
def misbehaved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Campaign]:
    cwd = tmp_path_factory.mktemp(request.param)
    suite = cwd / "scenarios"
    suite.mkdir()
    (suite / "policy.yaml").write_text(POLICY)
    (suite / "approve-1.yaml").write_text(SCENARIO.format(n=1, seconds=2))
    (suite / "approve-2.yaml").write_text(SCENARIO.format(n=2, seconds=30))
    (cwd / "agent.py").write_text(AGENT.format(misbehave=MISBEHAVE[request.param][0]))
    arguments = ("ci", "--json", "--suite", "scenarios", "--out", "out", "--", sys.executable, "agent.py")
    done = run_deskcert(*arguments, cwd=cwd)
    return request.param, Campaign(cwd, cwd / "out", done.returncode, done.stdout, done.stderr)


def event(run: Path, name: str) -> dict[str, Any]:
    return next(r for r in of_kind(run, "agent.event") if r["event"] == name)


def test_it_gets_an_outcome_and_the_suite_goes_on(misbehaved: tuple[str, Campaign]) -> None:
    _how, campaign = misbehaved
    assert campaign.exit_code == 1, campaign.stderr
    outcomes = {r["scenario"]: r["outcome"] for r in campaign.verdict["runs"]}
    assert outcomes == {"approve-1": "failed", "approve-2": "passed"}, campaign.stderr


def test_what_it_did_is_in_a_complete_ledger(misbehaved: tuple[str, Campaign]) -> None:
    how, campaign = misbehaved
    _, name, detail, outcome = MISBEHAVE[how]
    run = campaign.run_of("approve-1")
    assert detail.items() <= event(run, name).items()
    last = records(run)[-1]
    assert (last["kind"], last["outcome"], last["harness_ok"]) == ("run.end", outcome, True)
    assert {r["ledger"]["word"] for r in campaign.verdict["runs"]} == {"complete"}


def test_its_environment_holds_no_secret_of_the_runner(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("import json, os, sys\nprint(json.dumps(dict(os.environ)), file=sys.stderr)\n")
    done = run_deskcert(
        *("ci", "--suite", "builtin:core", "--only", "orders-approve-twin", "--out", "out", "--"),
        *(sys.executable, str(tmp_path / "agent.py")),
        cwd=tmp_path,
        env={"CI_DEPLOY_TOKEN": "hunter2", "DESKCERT_KEY_FILE": str(tmp_path / "key")},
    )
    assert done.returncode == 1
    (run,) = (tmp_path / "out" / "runs").iterdir()
    seen = (run / "agent.stderr").read_text()
    assert "DESKCERT_RUN_TOKEN" in seen
    assert "hunter2" not in seen
    assert "DESKCERT_KEY_FILE" not in seen


def test_a_command_that_cannot_be_started_is_an_outcome_and_a_missing_one_a_usage_error(tmp_path: Path) -> None:
    asked = ("ci", "--suite", "builtin:core", "--only", "orders-approve-twin", "--out", "out", "--", "./agent")
    missing = run_deskcert(*asked, cwd=tmp_path)
    assert missing.returncode == 2
    assert "there is no program ./agent" in missing.stderr
    assert not (tmp_path / "out").exists()
    (tmp_path / "agent").write_text("#!/no/such/interpreter\n")
    (tmp_path / "agent").chmod(0o755)
    done = run_deskcert(*asked, cwd=tmp_path)
    assert done.returncode == 1
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert "could not be started" in event(run, "crashed")["why"]


def test_a_browser_that_dies_costs_one_run_and_no_more(tmp_path: Path) -> None:
    suite = tmp_path / "scenarios"
    suite.mkdir()
    (suite / "policy.yaml").write_text(POLICY)
    (suite / "approve-1.yaml").write_text(SCENARIO.format(n=1, seconds=5))
    (suite / "approve-2.yaml").write_text(SCENARIO.format(n=2, seconds=30))
    code = f"exec({KILL_THE_BROWSER!r}); sys.exit(0)"
    (tmp_path / "agent.py").write_text(AGENT.format(misbehave=code))
    arguments = ("ci", "--json", "--suite", "scenarios", "--out", "out", "--", sys.executable, "agent.py")
    done = run_deskcert(*arguments, cwd=tmp_path)
    campaign = Campaign(tmp_path, tmp_path / "out", done.returncode, done.stdout, done.stderr)
    assert campaign.exit_code == 3, campaign.stderr
    outcomes = {r["scenario"]: r["outcome"] for r in campaign.verdict["runs"]}
    assert outcomes == {"approve-1": "inconclusive", "approve-2": "passed"}, campaign.stderr
    run = campaign.run_of("approve-1")
    assert [r["component"] for r in of_kind(run, "component.lost")] == ["browser"]
    assert records(run)[-1]["harness_ok"] is False
    assert "starting the browser again" in campaign.stderr
