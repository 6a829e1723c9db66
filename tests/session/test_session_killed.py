"""SIGKILL at every pipeline point, and a disk that fails in a session: no effect without a durable intent, nothing
acknowledged is lost, every open intent becomes unknown, nothing is dispatched once the ledger cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from deskcert_ledger import ProjectKey, recover_run, verify_run
from deskcert_schema.errors import LedgerUnavailable
from deskcert_schema.vocabulary import PipelinePoint

HERE = Path(__file__).parent
SCRIPT = str(HERE / "killed_session.py")


def records(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().split(b"\n")[:-1]]


def judge(folder: Path, before: bytes, effects: Path) -> tuple[int, int]:
    """Recover and judge. Returns how many intents were open, and how many effects there were."""
    run, key = folder / "run", ProjectKey.load(folder / "key")
    whole = before[: before.rfind(b"\n") + 1]
    written = [json.loads(line) for line in whole.split(b"\n")[:-1]]
    intents = {r["seq"] for r in written if r["kind"] == "action.intent"}
    done = [int(line) for line in effects.read_text().split()] if effects.exists() else []
    assert len(done) == len(set(done)), "delivered twice"
    assert set(done) <= set(intents), "an effect without a durable intent"
    open_before = intents - {r["of"] for r in written if r["kind"] == "action.result"}
    recovered = recover_run(run, key)
    assert set(recovered.open_intents) == open_before
    after = records(run)
    assert (run / "ledger.jsonl").read_bytes().startswith(whole)
    assert [r["seq"] for r in after] == list(range(len(after)))
    results = {r["of"]: r for r in after if r["kind"] == "action.result"}
    for seq in open_before:
        assert (results[seq]["delivery"], results[seq]["retry"]) == ("unknown", "never_automatic")
    assert set(results) == intents
    report = verify_run(run, pins=[key.vkey], every_signature=True)
    assert (report.headline, report.problems, report.open_intents) == ("interrupted", (), ())
    return len(open_before), len(done)


@pytest.mark.parametrize("point", list(PipelinePoint))
def test_sigkill_at_a_pipeline_point(tmp_path: Path, point: PipelinePoint) -> None:
    environment = os.environ | {"DESKCERT_PAUSE_AT": f"{point}:2", "DESKCERT_PAUSE_FILE": str(tmp_path / "paused")}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(tmp_path), str(tmp_path / "effects"), "pause"],
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status), f"it never came to {point}"
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    process.send_signal(signal.SIGKILL)
    process.wait()
    opened, delivered = judge(tmp_path, before, tmp_path / "effects")
    within = (PipelinePoint.INTENT_RECORDED, PipelinePoint.DISPATCHED, PipelinePoint.REACHED, PipelinePoint.VERIFIED)
    assert opened == (point in within)
    assert delivered >= 1


def on_a_small_disk(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in a mount namespace of its own, in which `$SMALL` is a file system of 256 KiB."""
    small = folder / "small"
    small.mkdir()
    return subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 18), "--tmpfs", str(small), "--die-with-parent",
         "sh", "-ec", script],
        env=os.environ | {"SMALL": str(small), "OUT": str(folder), "PYTHON": sys.executable, "SCRIPT": SCRIPT},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def refused(told: list[dict[str, Any]], why: str) -> None:
    """The first action is done, those after it are refused, with a sentence that says what to do."""
    assert told[0] == {"ok": True}
    failed = [error for error in told if "code" in error]
    assert failed
    assert told[len(told) - len(failed) :] == failed, "something was dispatched after a refusal"
    for error in failed:
        assert error["code"] == "LEDGER_UNAVAILABLE"
        assert why in error["message"]
        assert "deskcert ledger recover" in error["message"]


def test_a_full_disk_stops_the_session(tmp_path: Path) -> None:
    script = (
        '"$PYTHON" "$SCRIPT" "$SMALL" "$OUT/effects" full > "$OUT/told"; rm "$SMALL/filler"; cp -r "$SMALL" "$OUT/kept"'
    )
    done = on_a_small_disk(tmp_path, script)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "told").read_text())
    refused(told["told"], "No space left")
    assert "No space left" in told["poisoned"]
    run = tmp_path / "kept" / "run"
    (tmp_path / "kept" / "key").chmod(0o600)
    _, delivered = judge(tmp_path / "kept", (run / "ledger.jsonl").read_bytes(), tmp_path / "effects")
    assert delivered == sum(answer == {"ok": True} for answer in told["told"])


def test_a_failed_sync_stops_the_session(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, str(tmp_path), str(tmp_path / "effects"), "sync"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    refused(told["told"], "Input/output error")
    before = (tmp_path / "run" / "ledger.jsonl").read_bytes()
    _, delivered = judge(tmp_path, before, tmp_path / "effects")
    assert delivered == 1


def test_a_read_only_disk_is_refused_at_the_start_and_left_alone(tmp_path: Path) -> None:
    """A run cannot begin there, a recovery changes nothing, and both say why."""
    script = (
        'DESKCERT_PAUSE_AT=dispatched DESKCERT_PAUSE_FILE="$SMALL/paused" '
        '"$PYTHON" "$SCRIPT" "$SMALL" "$OUT/effects" pause & '
        'while ! [ -e "$SMALL/paused" ]; do sleep 0.02; done; kill -9 $!; cp -r "$SMALL" "$OUT/left"'
    )
    made = on_a_small_disk(tmp_path, script)
    assert made.returncode == 0, made.stderr
    left = tmp_path / "left"
    before = {path: path.read_bytes() for path in left.rglob("*") if path.is_file()}
    code = (
        "import os, sys; from pathlib import Path\n"
        "from deskcert_ledger import *\n"
        "folder = Path(sys.argv[1]); key = ProjectKey.load(folder / 'key')\n"
        "for work in (lambda: recover_run(folder / 'run', key),\n"
        "             lambda: RunLedger.create(folder / 'other', origin='deskcert/t/1', start={}, project_key=key,\n"
        "                                      clock=SystemClock(), rng=os.urandom)):\n"
        "    try: work()\n"
        "    except LedgerUnavailable as error: print(error)\n"
        "    else: print('written')\n"
    )
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(left), str(left), sys.executable, "-c", code, str(left)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 2
    assert all("Read-only file system" in line for line in said), said
    assert {path: path.read_bytes() for path in left.rglob("*") if path.is_file()} == before
    shutil.copytree(left, tmp_path / "writable")
    judge(tmp_path / "writable", (left / "run" / "ledger.jsonl").read_bytes(), tmp_path / "effects")


def test_a_recovery_on_a_full_disk_can_be_done_again(tmp_path: Path) -> None:
    """It fails with a clear error; with room again it does all of its work."""
    code = (
        "import os, shutil, sys; from pathlib import Path\n"
        "from deskcert_ledger import *\n"
        "small, left = Path(sys.argv[1]), Path(sys.argv[2])\n"
        "key = ProjectKey.load(left / 'key'); shutil.copytree(left / 'run', small / 'run')\n"
        "filler = open(small / 'filler', 'wb', buffering=0)\n"
        "try:\n"
        "    while True: filler.write(b'x' * 512)\n"
        "except OSError: pass\n"
        "before = (small / 'run' / 'ledger.jsonl').read_bytes()\n"
        "try: recover_run(small / 'run', key)\n"
        "except LedgerUnavailable as error: assert 'No space left' in str(error), error\n"
        "else: raise SystemExit('it had room')\n"
        "assert (small / 'run' / 'ledger.jsonl').read_bytes().startswith(before)\n"
        "filler.close(); (small / 'filler').unlink()\n"
        "print(recover_run(small / 'run', key).open_intents)\n"
        "print(verify_run(small / 'run', pins=[key.vkey]).headline)\n"
    )
    pause = {"DESKCERT_PAUSE_AT": "dispatched", "DESKCERT_PAUSE_FILE": str(tmp_path / "paused")}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(tmp_path), str(tmp_path / "effects"), "pause"], env=os.environ | pause
    )
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.kill()
    process.wait()
    (intent,) = [r["seq"] for r in records(tmp_path / "run") if r["kind"] == "action.intent"]
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", str(1 << 18), "--tmpfs", str(small),
         sys.executable, "-c", code, str(small), str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str((intent,)), "interrupted"]


def test_no_run_is_lost_to_a_ledger_that_is_in_use(tmp_path: Path) -> None:
    """A recovery beside a living writer is refused: it would cut what is being written."""
    pause = {"DESKCERT_PAUSE_AT": "leased", "DESKCERT_PAUSE_FILE": str(tmp_path / "paused")}
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(tmp_path), str(tmp_path / "effects"), "pause"], env=os.environ | pause
    )
    os.waitpid(process.pid, os.WUNTRACED)
    with pytest.raises(LedgerUnavailable, match="Another process"):
        recover_run(tmp_path / "run", ProjectKey.load(tmp_path / "key"))
    process.kill()
    process.wait()
