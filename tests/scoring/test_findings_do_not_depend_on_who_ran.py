"""The rules see no agent's name, no run id, no time; whatever a ledger holds, they neither fail nor invent records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scoring_talk import (
    FIELD,
    GOOD,
    NO_PAYOUT,
    OTHER,
    REFUSAL,
    Rec,
    claim,
    denied,
    end,
    intent,
    look,
    navigate,
    oracle,
    refused,
    result,
    talk,
    timed_out,
    verified,
)

from deskcert.scoring import RULES, judge
from deskcert.scoring.facts import RunFacts
from deskcert.scoring.rule import MOST_FINDINGS, MOST_SEQS
from deskcert_schema.vocabulary import Code, DetailKind, RecordKind

BUSY = (
    look(complete=False), intent(), timed_out(), intent(target=OTHER), result(), refused("STALE_REF", action=9),
    refused("STALE_REF", action=10), denied(), denied(command="press"), claim(), oracle(holds=False, times=2), end(),
)  # fmt: skip


def _key(records: list[Rec]) -> list[tuple[Any, ...]]:
    return [(f.about.id, f.key, f.seqs, f.text) for f in judge(records, word="complete").findings]


@pytest.mark.parametrize("records", [BUSY, GOOD])
def test_blank_agent_and_other_ids_give_same_findings(records: tuple[Rec, ...]) -> None:
    before = talk(*records)
    after = talk(*records)
    after[0] |= {
        "run": "r",
        "origin": "o",
        "agent": {"name": "", "command_digest": "", "transport": "jsonl", "deterministic": False},
        "trial": 3,
        "seed": 99,
        "instruction": "",
    }
    assert _key(before) == _key(after)
    assert bool(_key(before)) is (records is BUSY)


def test_no_run_id_stands_in_a_findings_text() -> None:
    for finding in judge(talk(*BUSY), word="complete").findings:
        assert "abc123" not in finding.text
        assert "careful" not in finding.text
        assert finding.text.endswith(".")


_words = st.sampled_from(["", "a", "button", "Approve", "@s1:e1", "@s2:e9", "done", "refused", "click", "press"])
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 40) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["ref", "name", "url"]), inner),
    max_leaves=6,
)
_FIELDS = (
    "command", "args", "target", "code", "detail_kind", "rule", "of", "ok", "delivery", "retry", "verification",
    "hit", "dispatch", "evidence", "gate", "fingerprint", "repeat_of", "complete", "window", "snapshot_id", "outcome",
    "item", "holds", "observed", "bait_seen", "event", "component", "applied", "harness_ok", "effects_log", "action",
)  # fmt: skip
_noise = st.builds(
    lambda kind, fields: {"kind": kind, **fields},
    st.sampled_from([k.value for k in RecordKind] + ["later.kind", ""]),
    st.dictionaries(st.sampled_from(_FIELDS), _json, max_size=8),
)
_refs = st.sampled_from(["@s1:e1", "@s1:e2", "@s2:e1", ""])
_commands = st.sampled_from(["click", "press", "set-value", "navigate", "snapshot"])
_targets = st.sampled_from([OTHER, FIELD])
_sensible = st.one_of(
    st.builds(
        look, st.sampled_from(["s1", "s2", "s3"]), complete=st.booleans(), document=st.sampled_from(["d1", "d2"])
    ),
    st.builds(
        refused,
        st.sampled_from([c.value for c in Code]),
        st.sampled_from([k.value for k in DetailKind]),
        command=_commands,
        ref=_refs,
        action=st.integers(0, 5),
    ),
    st.builds(
        denied,
        st.sampled_from(["a", "b"]),
        st.sampled_from([k.value for k in DetailKind]),
        command=_commands,
        ref=_refs,
        target=_targets,
    ),
    st.builds(
        intent, _commands, ref=_refs, target=_targets, fp=st.sampled_from(["f1", "f2"]), action=st.integers(0, 5)
    ),
    st.builds(result, st.sampled_from(["not_delivered", "delivered_unverified", "unknown"]), ok=st.booleans()),
    st.builds(verified),
    st.builds(timed_out),
    st.builds(navigate),
    st.builds(claim, st.sampled_from(["done", "refused", "failed", "unsure"])),
    st.builds(oracle, holds=st.sampled_from([True, False, None]), times=st.integers(0, 3)),
    st.builds(oracle, st.just(NO_PAYOUT), holds=st.sampled_from([True, False, None])),
    st.builds(end, st.sampled_from(["finished", "budget", "error", "interrupted"]), harness_ok=st.booleans()),
)


@given(st.lists(_sensible | _noise, max_size=25), st.sampled_from(["complete", "refuse", "stop", "?"]))
def test_findings_name_records_that_were_fed_and_no_content_makes_a_rule_fail(
    records: list[Rec], expected: str
) -> None:
    conversation = talk(*records, **(REFUSAL if expected == "refuse" else {"expected": expected}))
    present = {record["seq"] for record in conversation}
    for rule in RULES:
        machine = rule()
        machine.start(RunFacts.read(conversation[0], word="unfinished"))
        for record in conversation:
            machine.feed(record)
        findings = machine.findings()
        assert len(findings) <= MOST_FINDINGS
        assert len({f.key for f in findings}) == len(findings)
        for finding in findings:
            assert 0 < len(finding.seqs) <= MOST_SEQS
            assert set(finding.seqs) <= present
            assert finding.text
    judge(conversation, word="complete")


def test_memory_of_a_rule_does_not_grow_with_the_run() -> None:
    """The state of all rules after many records is not larger than after a few: sizes are bounded by constants."""

    def state(cycles: int) -> int:
        machines = [rule() for rule in RULES]
        first = talk()[0]
        for machine in machines:
            machine.start(RunFacts.read(first, word="complete"))
        seq = 0
        for n in range(cycles):
            target, link = {"role": "button", "name": str(n)}, {"destination": {"link": str(n)}}
            for record in (
                look(f"s{n}", document=f"d{n}"),
                refused("STALE_REF", ref=f"@s{n}:e1", action=n),
                refused("INVALID_ARGS", ref=f"@s{n}:e2", target=None),
                refused("TIMEOUT", "actionability_timeout", ref=f"@s{n}:e3", target=target),
                denied(f"rule-{n}", target=target, evidence=link),
                intent(ref=f"@s{n}:e4", fp=str(n), target=target),
                {**timed_out(), "of": seq + 6},
                oracle(holds=False),
            ):
                seq += 1
                for machine in machines:
                    machine.feed({**record, "seq": seq})
        return sum(len(repr(sorted(vars(m).items(), key=lambda kv: kv[0]))) for m in machines)

    # Numbers grow longer; what is kept must not.
    assert state(1200) < state(600) * 1.2
