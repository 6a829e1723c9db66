"""What another policy would have decided, from recorded evidence; and where that does not decide, that it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from replay_histories import POLICY, Waiting, application, as_session, records

from deskcert.cli.replay import replay
from deskcert.replay.backtest import Answer, Reconsidered, back_test, policy_for_run
from deskcert.replay.decisions import expanded
from deskcert.testing import SimulatedRun, World
from deskcert_ledger import openings

NOTE = {"id": "no-notes", "name": "Note"}
DIGITS = {"id": "no-digits", "value": {"regex": "[0-9]"}}


async def a_run(folder: Path) -> Path:
    """Approve is clicked, a note and a PIN are typed, Delete account is denied, a card number is denied."""
    session, ledger = as_session(folder, application())
    seen = await session.handle("snapshot", {})
    approve, _, note, delete, pin = (f"@{seen['data']['snapshot_id']}:e{n}" for n in range(1, 6))
    for command, args in (
        ("click", {"ref": approve}),
        ("set-value", {"ref": note, "value": "call 12"}),
        ("set-value", {"ref": pin, "value": "hush"}),
        ("click", {"ref": delete}),
        ("set-value", {"ref": note, "value": "4111111111111111"}),
    ):
        await session.handle(command, {"timeout_ms": 0} | args)
    ledger.seal()
    return folder / "run"


def under(folder: Path, *deny: dict[str, Any], **more: Any) -> dict[tuple[str, str], Reconsidered]:
    new = {"version": 1, "deny": list(deny), **more}
    return {(f.target, f.before.value): f for f in back_test(expanded(folder), new, openings(folder))}


async def test_names_are_decided_from_the_evidence(tmp_path: Path) -> None:
    told = under(await a_run(tmp_path), NOTE)
    assert told["textbox Note", "allow"].after is Answer.DENY
    assert told["textbox Note", "allow"].rule_after == "no-notes"
    assert told["textbox Note", "allow"].delivered
    assert told["button Approve", "allow"].after is Answer.ALLOW
    assert told["button Delete account", "deny"].after is Answer.ALLOW
    assert told["textbox Note", "deny"].after is Answer.DENY


async def test_a_value_rule_is_answered_from_the_opening(tmp_path: Path) -> None:
    told = under(await a_run(tmp_path), DIGITS)
    assert told["textbox Note", "allow"].after is Answer.DENY


async def test_a_secure_field_has_no_opening_and_decides_nothing(tmp_path: Path) -> None:
    told = under(await a_run(tmp_path), DIGITS)["textbox PIN", "allow"]
    assert told.after is Answer.INDETERMINATE
    assert "no-digits" in told.why


async def test_without_openings_only_the_old_question_is_known(tmp_path: Path) -> None:
    folder = await a_run(tmp_path)
    (folder / "disclosures.jsonl").unlink()
    told = under(folder, DIGITS)
    assert told["textbox Note", "allow"].after is Answer.INDETERMINATE
    # The same pattern under another id: the old answer holds.
    again = under(folder, {"id": "other", "value": {"regex": "[0-9]{16}"}})
    assert again["textbox Note", "allow"].after is Answer.ALLOW
    assert again["textbox Note", "deny"].after is Answer.DENY
    assert again["textbox PIN", "allow"].after is Answer.ALLOW


async def test_what_other_matchers_exclude_needs_no_value(tmp_path: Path) -> None:
    folder = await a_run(tmp_path)
    (folder / "disclosures.jsonl").unlink()
    told = under(folder, DIGITS | {"name": "Something else"})
    assert told["textbox Note", "allow"].after is Answer.ALLOW
    denied = under(folder, NOTE, DIGITS)
    assert denied["textbox Note", "allow"].after is Answer.DENY


async def test_an_allow_list_denies_what_it_does_not_name(tmp_path: Path) -> None:
    folder = await a_run(tmp_path)
    told = under(folder, default="deny", allow=[{"id": "approve", "name": "Approve"}])
    assert told["button Approve", "allow"].after is Answer.ALLOW
    assert told["textbox Note", "allow"].rule_after == "default-deny"


def test_the_first_look_that_is_denied_decides() -> None:
    """For one look the control had a forbidden description; the run's policy did not mind."""
    script: dict[int, Callable[[World], None]] = {
        0: lambda w: w.change("n1", enabled=False, description="Sends money"),
        1: lambda w: w.change("n1", enabled=True, description=""),
    }
    element = application().find("n1")
    assert element is not None
    run = SimulatedRun(Waiting([element], script), POLICY)
    ref = run.snapshot()[0]
    run.act("click", ref, timeout_ms=5_000)
    new = {"version": 1, "deny": [{"id": "no-money", "name": "Sends money"}]}
    (told,) = back_test(iter(records(run)), new, {})
    assert told.after is Answer.DENY
    # And the guard under that policy says the same.
    live = SimulatedRun(Waiting([element], script), new)
    live.act("click", live.snapshot()[0], timeout_ms=5_000)
    assert [r.kind for r in live.records] == ["run.start", "observation", "action.denied"]


def test_the_scenarios_own_rules_still_hold() -> None:
    start = {"scenario": {"policy_added": {"deny": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}}}
    merged = policy_for_run({"version": 1, "deny": [{"id": "a", "name": "New"}]}, start)
    assert [(r["id"], r["name"]) for r in merged["deny"]] == [("a", "New"), ("b", "B")]


@pytest.mark.parametrize(
    "rule",
    [
        {"id": "x", "name": "Approve"},
        {"id": "x", "role": "textbox"},
        {"id": "x", "action": "set-value", "name": {"glob": "N*"}},
        {"id": "x", "url": "**/nowhere"},
        {"id": "x", "name": {"regex": "^appr"}},
    ],
)
def test_it_equals_a_run_under_that_policy(rule: dict[str, Any]) -> None:
    def acts(document: dict[str, Any]) -> SimulatedRun:
        run = SimulatedRun(application(), document)
        approve, _, note, delete, pin = run.snapshot()
        run.act("click", approve)
        run.act("set-value", note, value="x")
        run.act("click", delete)
        run.act("set-value", pin, value="y")
        return run

    new = {"version": 1, "deny": [rule]}
    told = list(back_test(iter(records(acts(POLICY))), new, {}))
    live = [r for r in acts(new).records if r.kind in {"action.intent", "action.denied"}]
    assert [t.after.value for t in told] == ["deny" if r.kind == "action.denied" else "allow" for r in live]


async def test_the_command_prints_what_changes(tmp_path: Path) -> None:
    folder = await a_run(tmp_path)
    path = tmp_path / "new.yaml"
    path.write_text('version: 1\ndeny:\n  - {id: no-notes, name: "Note"}\n')
    done = CliRunner().invoke(replay, [str(folder), "--policy", str(path), "--json"], standalone_mode=False)
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert {(r["target"], r["before"], r["after"]) for r in rows} == {
        ("textbox Note", "allow", "deny"),
        ("button Delete account", "deny", "allow"),
    }
    table = CliRunner().invoke(replay, [str(folder), "--policy", str(path)])
    assert table.exit_code == 1
    assert "allowed in the run → 2 allow, 1 deny, 0 indeterminate" in table.output


async def test_the_command_shows_a_difference_and_exits_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = await a_run(tmp_path)
    monkeypatch.chdir(tmp_path)
    same = CliRunner().invoke(replay, [str(folder)])
    assert (same.exit_code, "0 differences" in same.output) == (0, True)
    monkeypatch.setattr("deskcert.guard.retry_gate.fingerprint", lambda *_: "0" * 64)
    other = CliRunner().invoke(replay, [str(folder)])
    assert other.exit_code == 1
    assert "record 2: fingerprint" in other.output
    assert f'    + "{"0" * 64}"' in other.output
