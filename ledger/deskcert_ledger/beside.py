"""A certificate beside what it is about: do the files still say what it says?

Used by `ledger certificate verify` for the files around a certificate, and by a full verification for the record
classes of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from deskcert_ledger.b64 import b64encode
from deskcert_ledger.certificate import Certificate, check_certificate, file_digest, read_certificate
from deskcert_ledger.classes import ClassTrees
from deskcert_ledger.dsse import bundle, decode_envelope
from deskcert_ledger.note import Verifier
from deskcert_ledger.run_certificate import RUN_CERTIFICATE, RUN_FILES
from deskcert_ledger.sshsig import check_sshsig
from deskcert_ledger.statement import RUN_PREDICATE
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["Beside", "check_beside", "contradiction"]

_, BUNDLE, ARMOUR = RUN_FILES


@dataclass(frozen=True, slots=True)
class Beside:
    checked: tuple[str, ...]
    problems: tuple[str, ...]
    not_checked: tuple[str, ...]


def check_beside(path: Path, certificate: Certificate) -> Beside:
    """Compare a certificate at `path` with the files it names and with its SSH signature, where they are there."""
    checked: list[str] = []
    problems: list[str] = []
    missing: list[str] = []
    for name, digest in certificate.statement.subjects:
        where = PurePosixPath(name)
        if where.is_absolute() or ".." in where.parts or not where.suffix:
            missing.append(f"{name}: not a file beside the certificate")
            continue
        try:
            same = file_digest(path.parent / where) == digest
        except OSError:
            missing.append(f"{name}: not there")
            continue
        (checked if same else problems).append(f"{name}: {'same digest' if same else 'another content than certified'}")
    armour = path.with_name(path.name.partition(".")[0] + ".sshsig")
    if path.name.endswith(".intoto.jsonl"):
        try:
            held = check_sshsig(read_certificate(armour), read_certificate(path), certificate.key)
            (checked if held else problems).append(f"{armour.name}: {'holds' if held else 'does not hold'}")
        except LedgerFormatError as error:
            (problems if armour.exists() else missing).append(f"{armour.name}: {error}")
    return Beside(tuple(checked), tuple(problems), tuple(missing))


@dataclass(frozen=True, slots=True)
class Counted:
    """What a full verification read, all of it."""

    size: int
    root: bytes
    classes: ClassTrees
    kinds: Mapping[str, int]
    interrupted: bool
    """Recovered, or with an open intent."""
    last: str
    """Kind of the last record."""

    @property
    def word(self) -> str:
        if self.interrupted:
            return "interrupted"
        return "complete" if self.last == "run.end" else "unfinished"


def contradiction(
    folder: Path, pins: Sequence[Verifier], *, key: Verifier, origin: str, counted: Counted
) -> str | None:
    """For a full verification: does the run's own certificate say something else than its records?

    `key` is the run key of the last range. Raises `LedgerFormatError` when nothing can be said: there is no
    certificate or no pin, or the certificate is of an earlier state, which a recovery that was killed leaves behind.
    """
    path = folder / RUN_CERTIFICATE
    if not pins or not path.exists():
        raise LedgerFormatError("no certificate, or no pin")
    try:
        certificate = check_certificate(read_certificate(path), pins)
    except (LedgerTampered, LedgerFormatError) as error:
        return f"{RUN_CERTIFICATE}: {error}"
    size, root = counted.size, counted.root
    told: dict[str, Any] = certificate.statement.predicate
    if certificate.statement.predicate_type != RUN_PREDICATE or certificate.classes is None:
        return f"{RUN_CERTIFICATE} is no certificate of a run"
    if told.get("origin") == origin and certificate.classes.size < size:
        raise LedgerFormatError("the certificate is of an earlier state")
    if certificate.key != key:
        return f"{RUN_CERTIFICATE} is not signed by the key of the last range"
    raw = read_certificate(path)
    for name, other in ((BUNDLE, bundle(decode_envelope(raw.split(b"\n")[0]))), (ARMOUR, None)):
        try:
            found = read_certificate(folder / name)
            same = found == other if other is not None else check_sshsig(found, raw, key)
        except LedgerFormatError:
            same = not (folder / name).exists()  # that it is missing is said elsewhere
        if not same:
            return f"{name} is not that of {RUN_CERTIFICATE}"
    if (told.get("origin"), told.get("size"), told.get("root")) != (origin, size, b64encode(root)):
        return f"{RUN_CERTIFICATE} is about another ledger, or another state of this one"
    if (told.get("word"), told.get("counts")) != (counted.word, dict(counted.kinds)):
        return f"{RUN_CERTIFICATE} says {told.get('word')!a}, and counts the records otherwise than they are"
    if certificate.classes != counted.classes.note(origin, size, root):
        return f"{RUN_CERTIFICATE} counts the record classes otherwise than the records do"
    return None
