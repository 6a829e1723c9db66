"""The certificate of one run, made at its seal and signed by its run key, which the project key introduced.

    run.intoto.jsonl     two DSSE envelopes, one a line: our `run-certificate/v1`, and `test-result/v0.1`
    run.sigstore.json    the first of them as a Sigstore bundle
    run.sshsig           SSH signature over the bytes of run.intoto.jsonl

It says what was recorded and how well, not whether the agent was good: that is the suite's certificate. The subject is
the ledger, and the tests of `test-result` are tests of the recording. Nothing here is read from a clock.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from deskcert_ledger.b64 import b64decode
from deskcert_ledger.classes import WATCHED_KINDS, ClassTrees
from deskcert_ledger.dsse import bundle, sign
from deskcert_ledger.keys import RunKey
from deskcert_ledger.line import decode
from deskcert_ledger.merkle import HASH_BYTES
from deskcert_ledger.note import parse_note
from deskcert_ledger.reader import open_ledger
from deskcert_ledger.sshsig import sshsig
from deskcert_ledger.statement import RUN_PREDICATE, Statement, expires_at, named_digests, result_of_tests

__all__ = ["RUN_CERTIFICATE", "RUN_FILES", "certify_run", "kind_of"]

RUN_CERTIFICATE: Final = "run.intoto.jsonl"
RUN_FILES: Final = (RUN_CERTIFICATE, "run.sigstore.json", "run.sshsig")
_KIND = re.compile(rb'\{"v":1,"seq":[0-9]+,"t":"[^"]*","m":[0-9]+,"w":"[^"\\]*","kind":"([^"\\]*)"')
_READ = frozenset({"run.start", "run.end", "action.intent", "action.result", *WATCHED_KINDS})
_NOT_COVERED: Final = (
    "whether what was recorded is true: this is integrity, not truth",
    "what happened before run.start and after run.end",
    "whether other runs were made and left out",
    "whether the agent did well: the suite's certificate says that",
)
_ENVIRONMENT = ("isolation", "proxy", "custody", "mode")
_MAX_TEXT = 200


@dataclass(slots=True)
class _Facts:
    """What the ledger of a run that is being sealed says."""

    digest: str = ""
    kinds: Counter[str] = field(default_factory=Counter)
    classes: ClassTrees = field(default_factory=ClassTrees)
    open: set[int] = field(default_factory=set)
    start: dict[str, Any] = field(default_factory=dict)
    key_intro: str = ""
    end: dict[str, Any] = field(default_factory=dict)
    last_kind: str = ""
    last_time: str = ""
    deliveries: Counter[str] = field(default_factory=Counter)

    @property
    def interrupted(self) -> bool:
        return bool(self.open) or self.kinds["recovery"] > 0

    @property
    def word(self) -> str:
        """What verification will say of it."""
        if self.interrupted:
            return "interrupted"
        return "complete" if self.last_kind == "run.end" else "unfinished"


def _read(folder: Path) -> _Facts:
    """One pass over lines that this process wrote or verified: only what is needed is parsed."""
    facts, total, line = _Facts(), sha256(), b""
    with open_ledger(folder) as file:
        for seq, line in enumerate(file):
            total.update(line)
            kind = kind_of(line)
            facts.kinds[kind] += 1
            facts.last_kind = kind
            if kind in _READ:
                _take(facts, seq, kind, line[:-1])
    facts.digest = total.hexdigest()
    facts.last_time = str(decode(line[:-1])["t"])
    return facts


def kind_of(line: bytes) -> str:
    """The kind of a line of good form, seldom by parsing it."""
    found = _KIND.match(line)
    return found[1].decode() if found else str(decode(line.removesuffix(b"\n"))["kind"])


def _take(facts: _Facts, seq: int, kind: str, line: bytes) -> None:
    data = decode(line)
    facts.classes.add(seq, data, line)
    match kind:
        case "run.start":
            facts.start, facts.key_intro = data, str(data.get("key_intro"))
        case "recovery":
            facts.key_intro = str(data.get("key_intro"))
        case "run.end":
            facts.end = data
        case "action.intent":
            facts.open.add(seq)
        case "action.result":
            if type(of := data.get("of")) is int:
                facts.open.discard(of)
            facts.deliveries[str(data.get("delivery"))] += 1


def certify_run(folder: Path, key: RunKey, checkpoint: str) -> dict[str, bytes]:
    """File name -> content. `checkpoint`: the final note; every line it covers is in the file.

    Raises `OSError`, and `LedgerFormatError` for a file that this process cannot have written.
    """
    facts = _read(folder)
    note = parse_note(checkpoint).text
    origin, size, root = note.split("\n")[:3]
    subjects = (("ledger.jsonl", facts.digest),)
    classes = key.sign_note(facts.classes.note(origin, int(size), b64decode(root, length=HASH_BYTES)).text())
    predicate = {
        "origin": origin,
        "run": _text(facts.start.get("run")),
        "word": facts.word,
        "size": int(size),
        "root": root,
        "checkpoint": checkpoint,
        "vkey": key.vkey,
        "key_intro": facts.key_intro,
        "counts": dict(sorted(facts.kinds.items())),
        "deliveries": dict(sorted(facts.deliveries.items())),
        "classes": facts.classes.counts,
        "classes_note": classes,
        "ended": {name: _text(facts.end.get(name)) for name in ("outcome", "reason")},
        "subject_of_run": _subject(facts.start),
        "environment": _environment(facts.start),
        "issued_at": facts.last_time,
        "expires_at": expires_at(facts.last_time),
        "revoked_by_change_of": named_digests(facts.start),
        "not_covered": list(_NOT_COVERED),
    }
    own = sign(Statement(subjects, RUN_PREDICATE, predicate).encode(), key.verifier, key.sign_bytes)
    other = sign(_tests(facts, subjects).encode(), key.verifier, key.sign_bytes)
    lines = own.encode() + b"\n" + other.encode() + b"\n"
    contents = (lines, bundle(own), sshsig(lines, key.verifier, key.sign_bytes))
    return dict(zip(RUN_FILES, contents, strict=True))


def _tests(facts: _Facts, subjects: tuple[tuple[str, str], ...]) -> Statement:
    checks = {
        "ledger/ended": facts.last_kind == "run.end",
        "ledger/every-intent-has-its-result": not facts.open,
        "ledger/never-interrupted": facts.kinds["recovery"] == 0,
        "ledger/no-component-lost": facts.kinds["component.lost"] == 0,
        "ledger/harness-in-order": facts.end.get("harness_ok", True) is True,
    }
    failed = [name for name, good in checks.items() if not good]
    return result_of_tests(
        subjects,
        "FAILED" if failed else "PASSED",
        named_digests(facts.start),
        passed=[name for name, good in checks.items() if good],
        failed=failed,
    )


def _subject(start: Mapping[str, Any]) -> dict[str, Any]:
    agent, scenario = start.get("agent"), start.get("scenario")
    told: dict[str, Any] = {
        "agent": _text(agent.get("name")) if isinstance(agent, Mapping) else "",
        "scenario": _text(scenario.get("id")) if isinstance(scenario, Mapping) else "",
    }
    return told | {name: start[name] for name in ("trial", "seed") if type(start.get(name)) is int}


def _environment(start: Mapping[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {name: _text(start.get(name)) for name in _ENVIRONMENT if isinstance(start.get(name), str)}
    browser = start.get("browser")
    if isinstance(browser, Mapping) and type(browser.get("sandbox")) is bool:
        told["browser_sandbox"] = browser["sandbox"]
    return told


def _text(value: object) -> str:
    """Text of a record, short; what lies in a blob, or is hidden, is left out."""
    return value[:_MAX_TEXT] if isinstance(value, str) else ""
