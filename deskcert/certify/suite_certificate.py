"""The certificate of a suite: what `deskcert ci` decided, signed by the project key.

    suite.intoto.jsonl     two DSSE envelopes, one a line: our `suite-certificate/v1`, and `test-result/v0.1`
    suite.sigstore.json    the first of them as a Sigstore bundle
    suite.sshsig           SSH signature over the bytes of suite.intoto.jsonl

Its statement is a function of the run folders and the pinned key (certify.md): its times are those of the ledgers.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.scoring.gate import ExitCode
from deskcert_schema.errors import LedgerError
from deskcert_schema.vocabulary import RunOutcome

if TYPE_CHECKING:
    from deskcert.scoring import Verdict
    from deskcert_ledger import ProjectKey
    from deskcert_ledger.statement import Statement

__all__ = ["SUITE_FILES", "certify_suite", "drop_suite_certificate", "suite_statement", "write_suite_certificate"]

SUITE_FILES: Final = ("suite.intoto.jsonl", "suite.sigstore.json", "suite.sshsig")
_GOOD = frozenset({RunOutcome.PASSED, RunOutcome.REFUSED_CORRECTLY})
_UNDECIDED = frozenset({RunOutcome.INCONCLUSIVE, RunOutcome.CONTAMINATED, RunOutcome.NOT_RUN})
_ALWAYS_OPEN: Final = (
    "other scenarios, other data, other versions of the application than those that were run",
    "whether what was recorded is true: this is integrity, not truth",
)


def suite_statement(verdict: Verdict, folders: Sequence[Path]) -> tuple[Statement, Statement] | None:
    """Our statement and the test result, for the run folders that `verdict` is about.

    None when no ledger has a readable record: then there is no time to certify for. Raises `OSError`.
    """
    from deskcert_ledger.statement import SUITE_PREDICATE, Statement, expires_at, named_digests, result_of_tests

    facts = [_facts(folder) for folder in sorted(folders, key=lambda folder: folder.name)]
    last = max((told["last"] for told in facts if told["last"]), default="")
    if not last:
        return None
    start = next(told["start"] for told in facts if told["start"])
    subjects = [("verdict.json", hashlib.sha256(verdict.as_bytes()).hexdigest())]
    subjects += [(f"runs/{told['name']}/ledger.jsonl", told["digest"]) for told in facts]
    digests = named_digests(start)
    subjects += [(item["name"], item["digest"]["sha256"]) for item in digests if item["name"] == "agent"]
    told = verdict.as_json()
    predicate: dict[str, Any] = {
        "suite": verdict.suite,
        "agent": verdict.agent,
        "certified": verdict.certified,
        "exit_code": int(verdict.exit_code),
        "reasons": told["reasons"],
        "gate": told["gate"],
        **({"scope": told["scope"]} if "scope" in told else {}),
        "totals": told["totals"],
        "by_attribution": told["by_attribution"],
        "findings": dict(sorted(Counter(finding["rule"] for finding in told["findings"]).items())),
        "environment": dict(verdict.environment),
        "versions": _versions(facts),
        "runs": told["runs"],
        "issued_at": last,
        "expires_at": expires_at(last),
        "revoked_by_change_of": _policies(facts, digests),
        "not_covered": [
            *_left_out(verdict),
            *_limits(verdict.environment),
            *_again(facts),
            *_unnamed_shards(facts),
            *_ALWAYS_OPEN,
        ],
    }
    words = {True: "PASSED", False: "WARNED" if verdict.exit_code is ExitCode.INCONCLUSIVE else "FAILED"}
    by = {slot.planned.words: slot.outcome for slot in verdict.slots}
    tests = result_of_tests(
        subjects,
        words[verdict.certified],
        predicate["revoked_by_change_of"],
        passed=[name for name, outcome in by.items() if outcome in _GOOD],
        warned=[name for name, outcome in by.items() if outcome in _UNDECIDED],
        failed=[name for name, outcome in by.items() if outcome not in _GOOD | _UNDECIDED],
    )
    return Statement(tuple(subjects), SUITE_PREDICATE, predicate), tests


def _facts(folder: Path) -> dict[str, Any]:
    """First record, time of the last readable one, digest of the file."""
    from deskcert_ledger import read_records
    from deskcert_ledger.certificate import file_digest

    start: dict[str, Any] = {}
    last = ""
    try:
        for record in read_records(folder):
            if record.seq == 0 and record.kind == "run.start":
                start = record.data
            last = record.t
    except LedgerError:
        pass  # its word in the verdict says what is wrong with it
    return {
        "name": folder.resolve().name,
        "start": start,
        "last": last if start else "",
        "digest": file_digest(folder / "ledger.jsonl"),
    }


def _policies(facts: Sequence[Mapping[str, Any]], digests: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As of one run, but with the policy of every scenario: each may have an addition of its own."""
    from deskcert_ledger.statement import named_digests

    policies = {
        item["digest"]["sha256"]: item
        for told in facts
        for item in named_digests(told["start"])
        if item["name"] == "policy"
    }
    others = [dict(item) for item in digests if item["name"] != "policy"]
    others += [{"name": f"agent file {name}", "digest": {"sha256": digest}} for name, digest in _agent_files(facts)]
    return others + [policies[digest] for digest in sorted(policies)]


def _agent_files(facts: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """What is sealed says it: names and digests of texts."""
    found = [(told["start"].get("agent") or {}).get("files") or {} for told in facts]
    return sorted({(str(name), str(digest)) for files in found for name, digest in files.items() if _is_hex(digest)})


def _is_hex(digest: object) -> bool:
    return isinstance(digest, str) and len(digest) == 64 and not set(digest) - set("0123456789abcdef")


def _versions(facts: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Of deskcert, the browser and what drives it; several where runs differ."""
    found: dict[str, set[str]] = defaultdict(set)
    for told in facts:
        for name, version in (told["start"].get("versions") or {}).items():
            found[str(name)].add(str(version))
    return {name: ", ".join(sorted(versions)) for name, versions in sorted(found.items())}


def _unnamed_shards(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    parts = [told["start"] for told in facts if told["start"].get("shard", "1/1") != "1/1"]
    if parts and not all(start.get("attempt") for start in parts):
        return ["whether a shard was run several times and the best taken: the shards name no common attempt"]
    return []


def _again(facts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Interrupting may be a way to choose: whoever relies on the certificate is told."""
    parts = [told["start"].get("set_aside") for told in facts]
    names = {str(run.get("run")) for part in parts if isinstance(part, list) for run in part if isinstance(run, dict)}
    if not names:
        return []
    return [f"how these would have ended: cut short, set aside and run again: {', '.join(sorted(names))}"]


def _left_out(verdict: Verdict) -> list[str]:
    if verdict.scope is None:
        return []
    planned, whole = verdict.scope
    return [f"{whole - planned} of the suite's {whole} scenarios: they were not run (--only, --tag)"]


def _limits(environment: Mapping[str, str]) -> list[str]:
    limits = []
    if "none" in environment.get("isolation", ""):
        limits.append("what the agent did outside the guard: it ran without isolation")
    if "off" in environment.get("proxy", ""):
        limits.append("writes on the network: no proxy stood between the browser and the application")
    if "shared" in environment.get("custody", ""):
        limits.append("what others did to the browser: it was not deskcert's own")
    return limits


def certify_suite(statements: tuple[Statement, Statement], key: ProjectKey) -> dict[str, bytes]:
    """File name -> content."""
    from deskcert_ledger.dsse import bundle, sign
    from deskcert_ledger.sshsig import sshsig

    own, tests = (sign(item.encode(), key.verifier, key.sign_bytes) for item in statements)
    lines = own.encode() + b"\n" + tests.encode() + b"\n"
    contents = (lines, bundle(own), sshsig(lines, key.verifier, key.sign_bytes))
    return dict(zip(SUITE_FILES, contents, strict=True))


def write_suite_certificate(out: Path, verdict: Verdict, folders: Sequence[Path], key: ProjectKey) -> bool:
    """Write the three files beside `verdict.json`, or take away those of an earlier verdict. Raises `OSError`."""
    statements = suite_statement(verdict, folders)
    if statements is None:
        drop_suite_certificate(out)
        return False
    for name, content in certify_suite(statements, key).items():
        temporary = out / f".{name}.tmp"
        temporary.write_bytes(content)
        temporary.replace(out / name)
    return True


def drop_suite_certificate(out: Path) -> None:
    for name in SUITE_FILES:
        (out / name).unlink(missing_ok=True)
