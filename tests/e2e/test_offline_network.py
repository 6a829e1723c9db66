"""A run driven again from its tape alone: the application has ended, and every answer the page gets was recorded."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from e2e_campaigns import Campaign, Certify, of_kind, records, run_deskcert

pytestmark = pytest.mark.web


@pytest.fixture(scope="module")
def taped(certify: Certify) -> Campaign:
    twin = ("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-approve-twin")
    return certify(*twin, "--proxy", "required", "--tape")


def answer(campaign: Campaign, *words: str) -> tuple[int, dict[str, Any], str]:
    done = run_deskcert("replay", *words, "--live", "--offline-network", "--json", cwd=campaign.cwd)
    told = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return done.returncode, told, done.stderr


def test_a_run_comes_out_as_recorded_without_its_application(taped: Campaign) -> None:
    (run,) = taped.runs
    where = urlsplit(of_kind(run, "observation")[0]["window"]["url"])
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):
        probe.connect((where.hostname, where.port))
    code, told, trouble = answer(taped, str(run), "--out", "again")
    assert (code, told["differences"]) == (0, []), trouble
    again = taped.cwd / told["again"]
    before, after = ([r["delivery"] for r in of_kind(x, "action.result")] for x in (run, again))
    assert before == after != []
    assert run_deskcert("ledger", "verify", str(again), cwd=taped.cwd).returncode == 0
    # The effects' log of the application has not grown: nothing was sent anywhere.
    assert len(taped.effects_of(run)) == 1


def test_another_recorded_answer_is_seen_as_a_difference(taped: Campaign, tmp_path: Path) -> None:
    """The page's own answer to the click is taken off the tape: what the agent reads back is not what it was."""
    out = tmp_path / "out"
    shutil.copytree(taped.out, out)
    (flows,) = out.glob("proxy/*/tape/flows.jsonl")
    kept = [line for line in flows.read_text().splitlines(keepends=True) if json.loads(line)["method"] != "POST"]
    flows.write_text("".join(kept))
    code, told, _ = answer(taped, str(out), "--out", str(tmp_path / "again"))
    ledger = tmp_path / "again" / taped.runs[0].name / "proxy-ledger"
    assert code in (0, 1)
    missed = [r for r in records(ledger) if r["kind"].startswith("net.") and r.get("method") == "POST"]
    assert missed, "what was not on the tape is on record"
    assert told["again"]


@pytest.mark.parametrize("harm", ["gone", "changed"])
def test_a_tape_that_is_not_what_it_was_is_refused(taped: Campaign, tmp_path: Path, harm: str) -> None:
    out = tmp_path / "out"
    shutil.copytree(taped.out, out)
    (tape,) = out.glob("proxy/*/tape")
    if harm == "gone":
        shutil.rmtree(tape)
    else:
        blob = next(p for p in (tape / "blobs").rglob("*") if p.is_file())
        blob.chmod(0o600)
        blob.write_bytes(blob.read_bytes()[:-1] + b"#")
    code, told, trouble = answer(taped, str(out), "--out", str(tmp_path / "again"))
    assert (code, told) == ({"gone": 2, "changed": 3}[harm], {}), trouble
    assert "--tape" in trouble if harm == "gone" else "did not start" in trouble


def test_a_tape_without_a_proxy_is_a_usage_error(taped: Campaign) -> None:
    done = run_deskcert("ci", "--agent", "builtin:careful", "--suite", "builtin:core", "--tape", cwd=taped.cwd)
    assert done.returncode == 2
    assert "--proxy required" in done.stderr
