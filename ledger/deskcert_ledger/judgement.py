"""From what a run folder shows to words, an exit code, and what was and was not checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from deskcert_ledger.absence import absent
from deskcert_ledger.b64 import b64encode
from deskcert_ledger.blob import blob_path
from deskcert_ledger.cosignature import cosigned_at, why_not_counted
from deskcert_ledger.evidence import Evidence
from deskcert_ledger.policy import VerifierPolicy
from deskcert_ledger.report import Finding, RunReport, WitnessReport, Word
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS
from deskcert_schema.errors import LedgerTampered

__all__ = ["judge"]

_EXIT = {Word.COMPLETE: 0, Word.UNVERIFIABLE: 3}
_LAST_SECOND = 253_402_300_799
"""Of the year 9999: a witness can claim any 64-bit number."""


def judge(evidence: Evidence, policy: VerifierPolicy | None, *, allow_elided: bool) -> RunReport:
    """The report of what was read."""
    size, signed, sealed = evidence.tree.size, evidence.epochs.signed_size, evidence.sealed
    _missing_blobs(evidence, signed)
    _damage(evidence, sealed=sealed)
    quorum = _quorum(evidence, policy)
    words = _words(evidence, sealed=sealed, signed=signed, allow_elided=allow_elided, met=quorum.met)
    headline, worst = words[0]
    exit_code = _EXIT.get(worst, 1)
    if exit_code == 0 and evidence.unschemed:
        exit_code = 1  # asked for, and not so
    problems = [evidence.tampered] if evidence.tampered is not None else []
    if evidence.dropped:
        evidence.problems.append(Finding(f"and {evidence.dropped} more"))
    if quorum.problem and evidence.tampered is None:
        problems.append(Finding(quorum.problem))
    final = evidence.final if evidence.final_seen else None
    return RunReport(
        headline=headline,
        words=tuple(word for word, _ in words),
        exit_code=exit_code,
        size=size,
        root=b64encode(evidence.tree.root()),
        origin=evidence.epochs.origin,
        run=evidence.run_id,
        checkpoint="" if final is None else final.raw.decode(),
        signed_size=signed,
        problems=(*problems, *evidence.problems),
        not_checked=tuple(_not_checked(evidence, quorum, allow_elided=allow_elided)),
        checked=tuple(_checked(evidence, quorum)),
        open_intents=tuple(evidence.open),
        epochs=tuple(epoch.report() for epoch in evidence.epochs.all),
        kinds=dict(evidence.kinds),
        witnesses=quorum.witnesses,
    )


def _missing_blobs(evidence: Evidence, signed: int) -> None:
    for name in evidence.dropped_blobs:
        if blob_path(evidence.folder, name).exists():
            evidence.problem(Finding(f"blob {name[:12]}… was redacted and is still there"))
    for name, finding in evidence.missing_blobs.items():
        if name in evidence.redacted_blobs and not blob_path(evidence.folder, name).exists():
            continue
        if name in evidence.named_missing and _unsigned_until_recovery(evidence, finding.seq):
            evidence.problem(Finding(f"{finding.text}, as a later record says", finding.seq, finding.byte))
        elif finding.seq is not None and finding.seq < signed:
            evidence.tamper(finding.text, finding.seq, finding.byte or 0)
        else:
            evidence.problem(finding)


def _unsigned_until_recovery(evidence: Evidence, seq: int | None) -> bool:
    """A recovery that misses a blob says so; under a checkpoint of before, that it is gone contradicts a signature."""
    epochs = evidence.epochs.all
    return seq is not None and any(
        epoch.unsigned_from is not None and epoch.unsigned_from <= seq < epoch.first for epoch in epochs
    )


def _damage(evidence: Evidence, *, sealed: bool) -> None:
    for item in evidence.damage:
        text = f"{item.length} bytes at {item.offset} of `{CHECKPOINTS}` are no signed note"
        if sealed:
            evidence.tamper(text, evidence.tree.size, evidence.offset)
        else:
            evidence.problem(Finding(text))


@dataclass(frozen=True, slots=True)
class _Quorum:
    """What the witnesses of a policy say about the final checkpoint."""

    met: bool = True
    witnesses: tuple[WitnessReport, ...] = ()
    unknown: tuple[str, ...] = ()
    """Names on the final checkpoint that are neither the run key's nor in the policy."""
    uncounted: tuple[str, ...] = ()
    """Cosignatures of known witnesses that hold and prove nothing."""
    asked: bool = False
    problem: str = ""
    seen: int | None = None
    """When the run's own witness cosigned the final checkpoint."""


def _quorum(evidence: Evidence, policy: VerifierPolicy | None) -> _Quorum:
    """Raises nothing: a cosignature of a known witness that does not hold is tampering, as a note's own would be."""
    final = evidence.final if evidence.final_seen else None
    own = {(epoch.key.name, epoch.key.id) for epoch in evidence.epochs.all}
    seen = _seen_by_own(evidence)
    if (witness := evidence.epochs.witness) is not None:
        own.add((witness.name, witness.id))
    known = {} if policy is None else {(key.name, key.id): name for name, key in policy.witnesses.items()}
    others = [] if final is None else [item for item in final.note.signatures if (item.name, item.key_id) not in own]
    unknown = tuple(item.name for item in others if (item.name, item.key_id) not in known)
    if policy is None:
        return _Quorum(unknown=unknown, seen=seen)
    reports: list[WitnessReport] = []
    cosigned: set[str] = set()
    uncounted: list[str] = []
    for name, key in policy.witnesses.items():
        seconds = None
        try:
            seconds = None if final is None else cosigned_at(final.note, key)
        except LedgerTampered as error:
            evidence.tamper(str(error), evidence.tree.size, evidence.offset)
        if seconds is not None and (why := why_not_counted(seconds, int(time.time()))):
            uncounted.append(f"the cosignature of witness {name!a}: {why}")
            seconds = None
        if seconds is not None:
            cosigned.add(name)
        reports.append(WitnessReport(name, str(key), seconds))
    met = evidence.tampered is None and policy.met_by(frozenset(cosigned))
    problem = "" if met else f"the policy's quorum {policy.quorum!a} is not reached: cosigned by {sorted(cosigned)}"
    asked = policy.quorum != "none"
    return _Quorum(met, tuple(reports), unknown, tuple(uncounted), asked=asked, problem=problem, seen=seen)


def _seen_by_own(evidence: Evidence) -> int | None:
    """When the run's own witness, a process beside it, cosigned the final checkpoint; seconds, or None."""
    witness, final = evidence.epochs.witness, evidence.final if evidence.final_seen else None
    if witness is None or final is None:
        return None
    try:
        seconds = cosigned_at(final.note, witness)
        return None if seconds is None or why_not_counted(seconds, int(time.time())) else seconds
    except LedgerTampered as error:
        evidence.tamper(str(error), evidence.tree.size, evidence.offset)
        return None


def _words(evidence: Evidence, *, sealed: bool, signed: int, allow_elided: bool, met: bool) -> list[tuple[str, Word]]:
    size, words = evidence.tree.size, []
    if evidence.tampered is not None:
        return [(Word.TAMPERED.value, Word.TAMPERED)]
    if not evidence.pins or not met or (evidence.elided and not allow_elided):
        words.append((Word.UNVERIFIABLE.value, Word.UNVERIFIABLE))
    if evidence.open or len(evidence.epochs.all) > 1:
        words.append((Word.INTERRUPTED.value, Word.INTERRUPTED))
    if signed < size or evidence.torn:
        words.append((f"{Word.PREFIX.value}({signed},{size - signed})", Word.PREFIX))
    elif not sealed:
        words.append((Word.UNFINISHED.value, Word.UNFINISHED))
    return words or [(Word.COMPLETE.value, Word.COMPLETE)]


def _checked(evidence: Evidence, quorum: _Quorum) -> Iterator[str]:
    epochs = evidence.epochs
    yield f"{evidence.tree.size} records: form, number and leaf hash"
    yield f"{epochs.notes} checkpoints: root recomputed, key of the right range"
    yield f"{epochs.signatures} signatures of checkpoints, and that of `{CHECKPOINT}`: {evidence.final_seen}"
    yield f"{evidence.blobs - len(evidence.redacted_blobs)} blobs: digest and length"
    if evidence.certificate is None and evidence.tampered is None:
        yield "the certificate: signature, tree, and the members of every record class"
    if evidence.redactions.entries and evidence.redactions.signed:
        yield f"{len(evidence.redactions.entries)} redactions: signed by the pinned key"
    if evidence.pins and evidence.tampered is None:
        yield f"{len(epochs.all)} run keys: introduced by the pinned key"
    for witness in quorum.witnesses:
        if witness.seconds is not None:
            when = datetime.fromtimestamp(min(witness.seconds, _LAST_SECOND), UTC).isoformat()
            yield f"the cosignature of witness {witness.name!a} on the final checkpoint, of {when}"
    if quorum.seen is not None:
        when = datetime.fromtimestamp(min(quorum.seen, _LAST_SECOND), UTC).isoformat()
        yield f"the cosignature of the run's own witness, which saw the ledger only grow, on its end, {when}"
    if evidence.schema:
        yield f"schemas: {evidence.unschemed} problems"


def _not_checked(evidence: Evidence, quorum: _Quorum, *, allow_elided: bool) -> Iterator[str]:
    epochs = evidence.epochs
    if evidence.tampered is not None:
        yield "what comes after the first contradiction"
    if not evidence.pins:
        yield "whose ledger this is: no pinned key (--key)"
    if evidence.elided:
        allowed = "" if allow_elided else " (--allow-elided accepts that)"
        yield f"{evidence.elided} elided lines: content, kind, number and blobs{allowed}"
    if evidence.redacted_blobs:
        yield f"{len(evidence.redacted_blobs)} blobs that were redacted"
    if evidence.redactions.openings:
        yield f"{len(evidence.redactions.openings)} openings that were redacted"
    if evidence.redactions.entries and not evidence.redactions.signed:
        yield "whose the redactions are: no pinned key (--key)"
    if evidence.certificate is not None and evidence.tampered is None:
        yield f"whether each record class is complete: {evidence.certificate}"
    if evidence.notes_there and not evidence.every_signature and epochs.notes > epochs.signatures:
        yield f"signatures of {epochs.notes - epochs.signatures} earlier checkpoints (--every-signature)"
    if not evidence.schema:
        yield "whether each record fits its schema (--schema)"
    for name in quorum.unknown:
        yield f"a cosignature by {name!a}: no policy names its key (--policy)"
    yield from quorum.uncounted
    yield from absent(evidence.folder, sealed=evidence.final_seen, torn=evidence.torn_kept)
    if not quorum.met:
        yield "that others saw this checkpoint: the policy's quorum is not reached"
    elif quorum.seen is not None and not quorum.asked:
        yield "truncation or replacement before the seal by the run's process and its witness together (--policy)"
    elif evidence.epochs.witness is not None and not quorum.asked:
        yield "truncation or replacement by a holder of the run key before the seal: the run's witness did not cosign"
    elif not quorum.asked:
        yield "truncation or replacement by a holder of the run key before the seal: no witness was asked (--policy)"
    yield "whether a whole run was left out: there is no project log"
    yield "blobs and openings that no record names"
    yield "whether what was recorded is true: this is integrity, not truth"
