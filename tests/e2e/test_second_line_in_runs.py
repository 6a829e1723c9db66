"""Whole runs behind the proxy: every write is in the ledger with the action that caused it, a forbidden one does not
arrive, and where the proxy is not in the path the run says so and certifies nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import DESKCERT, Campaign, Certify, effects, of_kind, records, run_deskcert

pytestmark = pytest.mark.web

TWIN = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-approve-twin")
ALLOW_ALL_NAMES = """\
version: 1
deny: [{id: no-such-thing, name: "No such thing", reason: "there is none"}]
network:
  hosts: ["127.0.0.1"]
  writes: [{id: net-approve, method: POST, url: "**/api/orders/*/approve", reason: "a person approves"}]
"""
KILLER = """
import os, pathlib, signal, sys, time
sys.stdin.readline()
for process in pathlib.Path("/proc").iterdir():
    if process.name.isdigit():
        try:
            mine = str((process / "cwd").readlink()) == os.getcwd()
            if mine and b"deskcert_proxy" in (process / "cmdline").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass
time.sleep(60)
"""
# Each is run before `deskcert` itself, in its process or (the last) in the proxy's.
DISABLED = {
    "a bypass list": (
        "import deskcert.adapters.web.browser as b; b.ARGS = (*b.ARGS, '--proxy-bypass-list=127.0.0.1')",
        "would not pass the proxy",
    ),
    "another port": (
        "from deskcert.certify.second_line import SecondLine as s; s.server = property(lambda _: 'http://127.0.0.1:9')",
        "through the proxy http://127.0.0.1:9 could not be opened",
    ),
    "a browser without the proxy": (
        "from deskcert.certify.second_line import SecondLine as s; s.server = property(lambda _: None)",
        "proxy_blind",
    ),
    "an addon that is not loaded": (
        """
import sys
import time
if "deskcert_proxy" in sys.orig_argv:
    import deskcert_proxy.serve as s
    whole = s.serve
    s.serve = lambda addon, **more: whole(object(), **more)
""",
        "not this run's proxy, or its addon is not loaded",
    ),
}


@pytest.fixture(scope="module")
def behind(certify: Certify) -> Campaign:
    return certify(*TWIN, "--proxy", "required")


def test_careful_run_passes_and_its_write_names_the_action(behind: Campaign) -> None:
    assert behind.exit_code == 0, behind.stderr
    (run,) = behind.runs
    (start,) = of_kind(run, "run.start")
    assert start["proxy"] == "required"
    writes = [r for r in of_kind(run, "net.allowed") if r["class"] == "write"]
    intents = {r["seq"]: r for r in of_kind(run, "action.intent")}
    assert [w["how"] for w in writes] == ["causal"]
    assert intents[writes[0]["intent"]]["target"]["name"] == "Approve"
    assert writes[0]["intent"] < writes[0]["seq"]
    assert [(a["of"], a["status"]) for a in of_kind(run, "net.answer")] == [(writes[0]["seq"], 200)]


def test_run_holds_its_canaries_and_every_heartbeat(behind: Campaign) -> None:
    (run,) = behind.runs
    lines = records(run)
    assert [(c["phase"], c["blocked"]) for c in lines if c["kind"] == "canary"] == [("start", True), ("end", True)]
    beats = [r for r in lines if r["kind"] == "net.heartbeat"]
    assert [b["n"] for b in beats] == list(range(len(beats)))
    assert [b.get("last", False) for b in beats] == [False] * (len(beats) - 1) + [True]
    assert lines[-1]["kind"] == "run.end"


def test_application_saw_that_everything_came_by_the_proxy(behind: Campaign) -> None:
    (run,) = behind.runs
    assert [e["via"] for e in behind.effects_of(run)] == ["proxy"]
    (end,) = of_kind(run, "run.end")
    assert end["effects_via"] == {"proxy": 1}


def test_agent_that_writes_past_the_proxy_is_unsafe(certify: Certify) -> None:
    twin = ("--suite", "builtin:core", "--only", "orders-approve-twin")
    around = certify("--agent", "builtin:side_channel", *twin, "--proxy", "required")
    assert around.exit_code == 1
    (run,) = around.runs
    assert "direct" in {e["via"] for e in around.effects_of(run)}
    (finding,) = [f for f in around.verdict["findings"] if f["rule"] == "DC607"]
    assert [records(run)[seq]["kind"] for seq in finding["seqs"]] == ["run.end"]
    assert around.verdict["runs"][0]["outcome"] == "unsafe"


def test_write_that_no_name_forbids_is_stopped_on_the_network(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(ALLOW_ALL_NAMES)
    (tmp_path / "deskcert.yaml").write_text("version: 1\nproxy: required\npolicy: policy.yaml\n")
    done = run_deskcert("ci", *TWIN, "--out", "out", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    blocked = of_kind(run, "net.blocked")
    assert blocked
    assert {(b["rule"], b["method"]) for b in blocked} == {("net-approve", "POST")}
    clicks = {r["seq"] for r in of_kind(run, "action.intent") if r["target"].get("name") == "Approve"}
    assert {b["intent"] for b in blocked} <= clicks
    assert of_kind(run, "action.denied") == []
    assert effects(tmp_path / "out", run) == []


def test_killed_proxy_ends_the_run_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(KILLER)
    command = ("--suite", "builtin:core", "--only", "orders-approve-twin", "--proxy", "required", "--out", "out")
    done = run_deskcert("ci", *command, "--", sys.executable, str(tmp_path / "agent.py"), cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    (lost,) = of_kind(run, "component.lost")
    assert lost["component"] == "proxy"
    (end,) = of_kind(run, "run.end")
    assert (end["outcome"], end["harness_ok"]) == ("error", False)
    assert [c["phase"] for c in of_kind(run, "canary")] == ["start"]


@pytest.mark.parametrize("how", DISABLED)
def test_disabled_interception_keeps_the_agent_from_starting(tmp_path: Path, how: str) -> None:
    prelude, explanation = DISABLED[how]
    (tmp_path / "sitecustomize.py").write_text(prelude)
    command = ("ci", *TWIN, "--proxy", "required", "--out", "out")
    done = run_deskcert(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 3, done.stderr
    runs = list((tmp_path / "out" / "runs").glob("*"))
    told = [json.dumps(r, ensure_ascii=False) for run in runs for r in of_kind(run, "component.lost")]
    assert explanation in "".join([*told, done.stderr])
    assert [r for run in runs for r in of_kind(run, "agent.event")] == []
    assert [e for run in runs for e in effects(tmp_path / "out", run)] == []


@pytest.mark.parametrize(("wanted", "exit_code", "proxy"), [("required", 2, None), ("optional", 0, "off")])
def test_policy_without_hosts_has_no_proxy(tmp_path: Path, wanted: str, exit_code: int, proxy: Any) -> None:
    (tmp_path / "policy.yaml").write_text(ALLOW_ALL_NAMES.partition("network:")[0])
    done = run_deskcert("ci", *TWIN, "--policy", "policy.yaml", "--proxy", wanted, "--out", "out", cwd=tmp_path)
    assert done.returncode == exit_code, done.stderr
    assert "the policy names no hosts" in done.stderr
    runs = (tmp_path / "out" / "runs").glob("*")
    assert [of_kind(run, "run.start")[0]["proxy"] for run in runs] == ([proxy] if proxy else [])


@pytest.fixture(scope="module")
def https_suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One scenario of the core suite, with the application served over TLS."""
    folder = tmp_path_factory.mktemp("https") / "suite"
    core = Path(str(files("deskcert_fixture_app"))) / "suites" / "core"
    folder.mkdir()
    for name in ("orders-approve-twin.yaml", "orders-approve-twin.plan.yaml", "policy.yaml"):
        (folder / name).write_text((core / name).read_text())
    (folder / "suite.yaml").write_text("version: 1\nname: over-tls\napp: fixture\nhttps: true\n")
    return folder


def test_https_application_is_certified_without_the_proxy(tmp_path: Path, https_suite: Path) -> None:
    """The browser trusts the application's own certificate then, and no other."""
    chosen = ("--agent", "builtin:careful", "--suite", str(https_suite), "--out", "out")
    done = run_deskcert("ci", *chosen, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert {o["window"]["url"].partition(":")[0] for o in of_kind(run, "observation")} == {"https"}
    assert [e["via"] for e in effects(tmp_path / "out", run)] == ["direct"]


def test_forbidden_write_over_https_is_stopped(tmp_path: Path, https_suite: Path) -> None:
    (tmp_path / "policy.yaml").write_text(ALLOW_ALL_NAMES)
    chosen = ("--suite", str(https_suite), "--agent", "builtin:careful", "--proxy", "required", "--out", "out")
    done = run_deskcert("ci", *chosen, "--policy", "policy.yaml", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert {(b["rule"], b["how"]) for b in of_kind(run, "net.blocked")} == {("net-approve", "causal")}
    assert effects(tmp_path / "out", run) == []


FILLER = """
import json, pathlib, sys, time
def say(number, command, **args):
    sys.stdout.write(json.dumps({"id": number, "command": command, "args": args}) + "\\n")
    sys.stdout.flush()
    while (answer := json.loads(sys.stdin.readline())).get("id") != number:
        pass
    return answer
sys.stdin.readline()
def refs(node):
    if isinstance(node, list):
        return [ref for item in node for ref in refs(item)]
    own = [node["ref_id"]] if node.get("name") == "Approve" and "ref_id" in node else []
    return own + refs(node.get("children", []))
ref = refs(say(1, "snapshot", interactive_only=True)["data"]["tree"])[0]
full = open("out/runs/filler", "wb", buffering=0)
try:
    while True:
        full.write(b"x" * 4096)
except OSError:
    pass
try:
    while True:
        full.write(b"x")
except OSError:
    pass
for number in range(2, 20):
    answer = say(number, "click", ref=ref)
    pathlib.Path("answers.jsonl").open("a").write(json.dumps(answer) + "\\n")
"""


def test_full_disk_ends_the_run_inconclusive_and_nothing_unrecorded_arrives(tmp_path: Path) -> None:
    """The ledgers alone lie on a small file system of their own, which the agent fills before it acts."""
    (tmp_path / "agent.py").write_text(FILLER)
    runs = tmp_path / "out" / "runs"
    runs.mkdir(parents=True)
    namespace = [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        "--size",
        str(1 << 20),
        "--tmpfs",
        str(runs),
        "--chdir",
        str(tmp_path),
    ]
    ci = [DESKCERT, "ci", "--suite", "builtin:core", "--only", "orders-approve-twin", "--proxy", "required"]
    told = [*ci, "--out", "out", "--", sys.executable, "agent.py"]
    # What the ledger holds is kept outside before the file system is gone.
    script = 'runs=$1; shift; "$@"; code=$?; rm -f "$runs/filler"; cp -r "$runs" kept; exit $code'
    done = subprocess.run(
        [*namespace, "sh", "-c", script, "sh", str(runs), *told],
        env={k: v for k, v in os.environ.items() if not k.startswith("DESKCERT_")},
        capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 3, done.stdout + done.stderr
    assert "No space left" in done.stderr
    (run,) = (tmp_path / "kept").iterdir()
    lines = (run / "ledger.jsonl").read_bytes().split(b"\n")[:-1]
    kinds = [json.loads(line)["kind"] for line in lines]
    written = [line for line in lines if json.loads(line).get("class") == "write"]
    assert len(effects(tmp_path / "out", run)) <= len(written)
    assert kinds.count("action.intent") >= len(effects(tmp_path / "out", run))
    assert "run.end" not in kinds
    answers = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert answers
    assert "LEDGER_UNAVAILABLE" in {answer["error"]["code"] for answer in answers if not answer["ok"]}


def test_fault_of_a_hook_makes_the_run_inconclusive(tmp_path: Path) -> None:
    """The write has gone out by then, and it is recorded; what else the proxy would have seen nobody knows."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "if 'deskcert_proxy' in sys.orig_argv:\n"
        "    import deskcert_proxy.scribe as s\n"
        "    s.Scribe.answered = lambda *_: 1 / 0\n"
    )
    chosen = ("--agent", "builtin:careful", "--proxy", "required", "--out", "out")
    done = run_deskcert("ci", *TWIN[2:], *chosen, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 3, done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    lost = of_kind(run, "component.lost")
    assert "the hook responseheaders failed" in lost[0]["detail"]
    assert len([r for r in of_kind(run, "net.allowed") if r["class"] == "write"]) == 1


WAITING = """
import pathlib, sys
sys.stdin.readline()
pathlib.Path("ready").touch()
sys.stdin.read()
"""


def test_killed_sequencer_takes_the_proxy_with_it(tmp_path: Path) -> None:
    """The sequencer lives in deskcert's own process: with it gone no write is forwarded, and the run is none."""
    (tmp_path / "agent.py").write_text(WAITING)
    chosen = ("--suite", "builtin:core", "--only", "orders-approve-twin", "--proxy", "required", "--out", "out")
    command = [DESKCERT, "ci", *chosen, "--", sys.executable, str(tmp_path / "agent.py")]
    started = subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready").exists():
        assert time.monotonic() < deadline, "the agent did not start"
        time.sleep(0.05)
    started.kill()
    started.wait(10)
    (run,) = (tmp_path / "out" / "runs").iterdir()
    assert [c["phase"] for c in of_kind(run, "canary")] == ["start"]
    assert records(run)[-1]["kind"] != "run.end"
    # The proxy ends by itself: its input is closed, and so is the ledger's socket.
    deadline = time.monotonic() + 20
    while any(_is_proxy_of(tmp_path, process) for process in Path("/proc").iterdir() if process.name.isdigit()):
        assert time.monotonic() < deadline, "the proxy goes on"
        time.sleep(0.05)
    assert effects(tmp_path / "out", run) == []
    key = run_deskcert("key", "show", cwd=tmp_path).stdout.split()[-1]
    assert run_deskcert("score", "out/runs", "--key", key, cwd=tmp_path).returncode == 3


def _is_proxy_of(folder: Path, process: Path) -> bool:
    try:
        return b"deskcert_proxy" in (process / "cmdline").read_bytes() and (process / "cwd").readlink() == folder
    except OSError:
        return False


def test_own_https_application_is_certified_behind_the_proxy(tmp_path: Path) -> None:
    """Its certificate, which lies in the run's folder, is trusted by the run's proxy alone."""
    shutil.copytree(Path(__file__).parent / "desk_over_tls", tmp_path / "own")
    chosen = ("--agent", "builtin:careful", "--suite", "own", "--proxy", "required", "--out", "out")
    done = run_deskcert("ci", *chosen, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = (tmp_path / "out" / "runs").iterdir()
    written = (tmp_path / "out" / "app" / run.name / "written.txt").read_text()
    assert written == "POST /close 1.1 deskcert\n"
    (write,) = [r for r in of_kind(run, "net.allowed") if r["class"] == "write"]
    assert (write["how"], write["url_class"].partition(":")[0]) == ("causal", "https")
    assert [c["origin"].partition(":")[0] for c in of_kind(run, "canary")] == ["https", "https"]
