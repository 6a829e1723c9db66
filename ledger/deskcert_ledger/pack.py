"""`ledger export --to pack`: one run as one zip that checks itself with any Python from 3.8 on.

    README.txt · verify.py            what it is, and its single-file verifier (`pack_verifier.py`)
    run/ledger.jsonl                  the lines; elided ones as `{"_elided":…}`
    run/checkpoints · checkpoint      the last note of each key's range: all whose signatures a verification needs
    run/blobs/… · disclosures.jsonl   what the lines name; openings only when they are asked for
    run/redactions.jsonl · run.*      redactions; the certificate
    policy.json · schemas/…           as record 0 names them

Files are sorted, stored, without dates: the same run gives the same bytes on every machine, and a verifier makes the
zip's own structure again and compares, so that no byte is without meaning.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Final

from deskcert_ledger import elision, pack_verifier
from deskcert_ledger.blob import BLOB_FOLDER, NAMES_THE_GONE, blob_path
from deskcert_ledger.checkpoint import Checkpoint, read_checkpoints
from deskcert_ledger.files import open_regular, read_bounded
from deskcert_ledger.line import encode
from deskcert_ledger.reader import Record, read_records
from deskcert_ledger.redaction import REDACTIONS, commitments, found_in
from deskcert_ledger.run_certificate import RUN_FILES
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS, DISCLOSURES, LEDGER
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

__all__ = ["make_pack"]

_NEVER_ELIDED: Final = frozenset({"run.start", "run.end", "recovery"})
_MAX_BYTES = 2**32 - 1


def make_pack(folder: Path, *, elide: Collection[str] = (), openings: bool = False) -> bytes:
    """The zip's bytes. `elide`: kinds of records whose content is left out; `openings`: with the openings of secrets.

    Raises `LedgerFormatError` (no sealed ledger, or one too large for a zip) and `LedgerTampered` when the pack would
    not verify: nothing that is not evidence leaves as a pack.
    """
    refused = sorted(_NEVER_ELIDED.intersection(elide))
    if refused:
        raise LedgerFormatError(f"records of kind {refused[0]} cannot be elided: they say whose ledger this is")
    contents = dict(_contents(folder, frozenset(elide), openings=openings))
    if sum(map(len, contents.values())) > _MAX_BYTES:
        raise LedgerFormatError(
            "the run is too large for a pack: 4 GiB; export it without its blobs' records (--elide)"
        )
    raw = _zip(contents)
    try:
        word, said = pack_verifier.verify(raw, None, allow_elided=True)
    except (pack_verifier.NotAPack, pack_verifier.Tampered) as error:
        raise LedgerTampered(f"{folder} does not verify: {error}") from error
    if word not in ("unverifiable", "complete"):
        raise LedgerTampered(f"{folder} does not verify: {said[0]}")
    return raw


def _zip(contents: dict[str, bytes]) -> bytes:
    parts: list[bytes] = []
    entries: list[tuple[bytes, bytes, int]] = []
    at = 0
    for name in sorted(contents):
        local, (half, raw_name) = pack_verifier.zip_entry(name, contents[name])
        entries.append((half, raw_name, at))
        parts += (local, contents[name])
        at += len(local) + len(contents[name])
    return b"".join([*parts, pack_verifier.zip_directory(entries, at)])


def _contents(folder: Path, elided: frozenset[str], *, openings: bool) -> Iterator[tuple[str, bytes]]:
    yield "verify.py", (files("deskcert_ledger") / "pack_verifier.py").read_bytes()
    yield "README.txt", (pack_verifier.__doc__ or "").encode()
    lines: list[bytes] = []
    blobs: dict[str, None] = {}
    digests: set[str] = set()
    borders: list[int] = []
    for record in read_records(folder):
        if record.kind in elided:
            lines.append(elision.elide(record.line))
            continue
        lines.append(record.line)
        if record.seq == 0:
            yield from _named_by_start(record)
        if record.kind == "recovery":
            borders.append(record.seq)
        if record.kind not in NAMES_THE_GONE:
            for what, name in found_in(folder, record.data):
                digests.add(name) if what == "opening" else blobs.setdefault(name)
    yield f"run/{LEDGER}", b"\n".join(lines) + b"\n"
    yield from _notes(folder, borders)
    for name in blobs:
        if blob_path(folder, name).exists():
            yield f"run/{BLOB_FOLDER}/{name}", _whole(blob_path(folder, name))
    if openings:
        kept = b"".join(line for digest, line in commitments(folder) if digest in digests)
        yield f"run/{DISCLOSURES}", kept
    for name in (REDACTIONS, *RUN_FILES):
        if (folder / name).exists():
            yield f"run/{name}", _whole(folder / name)


def _notes(folder: Path, borders: list[int]) -> Iterator[tuple[str, bytes]]:
    """Of each key's range the last note; the final one as it stands in `checkpoint`, with its cosignatures."""
    try:
        final = _whole(folder / CHECKPOINT)
        with open_regular(folder / CHECKPOINTS) as file:
            kept = _last_of_each(file, borders)
    except FileNotFoundError as error:
        raise LedgerFormatError(f"{folder} is not sealed: it has no `{Path(str(error.filename)).name}`") from error
    except OSError as error:
        name = Path(str(error.filename)).name
        raise LedgerFormatError(f"{folder}: `{name}` cannot be read: {error.strerror}") from error
    yield f"run/{CHECKPOINTS}", b"".join([*kept, final])
    yield f"run/{CHECKPOINT}", final


def _last_of_each(file: BinaryIO, borders: Sequence[int]) -> list[bytes]:
    """The last note up to each border, in constant memory."""
    kept: dict[int, bytes] = {}
    for note in read_checkpoints(file, limit=1 << 62):
        border = bisect_left(borders, note.size) if isinstance(note, Checkpoint) else len(borders)
        if isinstance(note, Checkpoint) and border < len(borders):
            kept[border] = note.raw
    return [kept[border] for border in sorted(kept)]


def _whole(path: Path) -> bytes:
    """Raises `LedgerFormatError` for what is no file, or too large for a zip; `FileNotFoundError`."""
    try:
        raw = read_bounded(path, _MAX_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LedgerFormatError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > _MAX_BYTES:
        raise LedgerFormatError(f"{path} is too large for a pack: 4 GiB")
    return raw


def _named_by_start(start: Record) -> Iterator[tuple[str, bytes]]:
    """The policy as it stands there, and the schemas if this version's are the ones that are named."""
    from deskcert_schema.validate import SCHEMAS, digest

    policy: Any = start.data.get("policy")
    if isinstance(policy, dict) and "content" in policy:
        yield "policy.json", encode(policy["content"], limit=_MAX_BYTES) + b"\n"
    schema = start.data.get("schema")
    if isinstance(schema, dict) and schema.get("digest") == digest():
        for name in SCHEMAS:
            yield f"schemas/{name}.json", (files("deskcert_schema") / "schemas" / f"{name}.json").read_bytes()
