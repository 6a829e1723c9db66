"""A case file: the least of a run that shows one record, for a ticket. It verifies by itself, without the run.

    case.json              what it is about, which records, which blobs
    proofs/<seq>.tlog-proof   each record with what leads from it to the signed root
    blobs/<sha256>            what those records name: trees, long fields
    README.txt

Openings of secrets are never in it: what was typed stays a commitment.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from deskcert_ledger import read_records
from deskcert_ledger.blob import blob_path, is_reference
from deskcert_ledger.files import open_regular
from deskcert_ledger.proof import Prover, check_proof
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, UsageError

__all__ = ["Checked", "Written", "check_case", "write_case"]

VERSION: Final = 1
_WHEN: Final = (1980, 1, 1, 0, 0, 0)
"""Equal cases give equal files."""
_MOST_BYTES: Final = 1 << 30
_README: Final = """\
A case file of deskcert about record {seq} of the run {run}.

Check it:  deskcert case --check {name} --key KEY     (KEY: the project's public key, from `deskcert key show`)

Each file under proofs/ is one record of the run with its inclusion proof and the signed checkpoint
(C2SP tlog-proof); each file under blobs/ is named by the SHA-256 of its content, and a record names it.
What was typed stands as a commitment: no opening is in this file.
"""


@dataclass(frozen=True, slots=True)
class Checked:
    run: str
    seq: int
    """What the case is about."""
    records: tuple[int, ...]
    blobs: int
    size: int
    """Records of the whole run, under the checkpoint."""
    missing_blobs: tuple[str, ...]
    """Named by a record and not in the case."""


@dataclass(frozen=True, slots=True)
class Written:
    records: tuple[int, ...]
    missing_blobs: tuple[tuple[int, str], ...]
    """Record and blob that it names, which is not there or is another."""


def write_case(folder: Path, seq: int, out: Path, also: Sequence[int] = ()) -> Written:
    """Write the case of record `seq` to `out`; `also`: further records, such as those that prove a finding.

    Raises `UsageError` for no such record, the ledger's errors for one not to be proven.
    """
    told = {r.seq: r.data | {"kind": r.kind} for r in read_records(folder)}
    if seq not in told:
        raise UsageError(f"{folder} has no record {seq}: it has {len(told)}, the first is 0.")
    chosen = _closure(told, {seq, *also})
    named: dict[str, int] = {}
    for n in chosen:
        for name in _blobs(told[n]):
            named.setdefault(name, n)
    missing: list[tuple[int, str]] = []
    about = {"version": VERSION, "run": str(told[0].get("run", folder.name)), "seq": seq, "records": list(chosen)}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as pack, Prover(folder) as prover:
        _add(pack, "README.txt", _README.format(seq=seq, run=about["run"], name=out.name).encode())
        _add(pack, "case.json", json.dumps(about, indent=1).encode())
        for n in chosen:
            _add(pack, f"proofs/{n}.tlog-proof", prover.prove(n).encode())
        for name in sorted(named):
            content = _content(folder, name)
            if content is None:
                missing.append((named[name], name))
            else:
                _add(pack, f"blobs/{name}", content)
    return Written(chosen, tuple(sorted(missing)))


def _content(folder: Path, name: str) -> bytes | None:
    """None for what is not there, is no file, or is another: a case with it would not hold what it says."""
    try:
        with open_regular(blob_path(folder, name)) as file:
            content = file.read()
    except OSError:
        return None
    return content if sha256(content).hexdigest() == name else None


def _closure(told: Mapping[int, Mapping[str, Any]], wanted: set[int]) -> tuple[int, ...]:
    """With each record what it cannot be read without: its intent or result, what the agent saw, its requests."""
    chosen = {0, max(told)} | {n for n in wanted if n in told}
    results = {d["of"]: n for n, d in told.items() if d["kind"] == "action.result"}
    for n in list(chosen):
        chosen |= {told[n]["of"]} if told[n].get("of") in told else set()
    for n in list(chosen):
        chosen |= {m for m in (results.get(n), told[n].get("snapshot_seq")) if isinstance(m, int) and m in told}
        chosen |= {m for m, d in told.items() if d["kind"].startswith("net.") and d.get("intent") == n and n > 0}
    chosen |= {m for m, d in told.items() if d["kind"] == "picture" and d.get("of") in chosen}
    return tuple(sorted(chosen))


def _blobs(value: Any) -> Iterator[str]:
    if is_reference(value):
        yield value["blob"]
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _blobs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _blobs(inner)


def _add(pack: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _WHEN)
    info.compress_type = zipfile.ZIP_DEFLATED
    pack.writestr(info, content)


def check_case(path: Path, pins: Sequence[Any]) -> Checked:
    """Raises `LedgerFormatError` for no case, `LedgerTampered` for one that does not hold what it says."""
    try:
        with zipfile.ZipFile(path) as pack:
            if sum(item.file_size for item in pack.infolist()) > _MOST_BYTES:
                raise LedgerFormatError("a case of more than a gibibyte")
            names = pack.namelist()
            if len(set(names)) != len(names):
                raise LedgerTampered("a file stands in it twice")
            return _check({name: pack.read(name) for name in names}, pins)
    except (zipfile.BadZipFile, OSError, KeyError, ValueError, NotImplementedError) as exc:
        raise LedgerFormatError(f"{path} is no case file: {exc}") from exc


def _check(files: Mapping[str, bytes], pins: Sequence[Any]) -> Checked:
    about = json.loads(files["case.json"])
    if about.get("version") != VERSION:
        raise LedgerFormatError(f"a case of version {about.get('version')!r}; this reader knows {VERSION}")
    logs: set[tuple[str, int]] = set()
    named: set[str] = set()
    for seq in about["records"]:
        proven = check_proof(files[f"proofs/{seq}.tlog-proof"], pins)
        if proven.record.seq != seq:
            raise LedgerTampered(f"proofs/{seq}.tlog-proof proves record {proven.record.seq}")
        if seq == 0 and proven.record.data.get("run") != about["run"]:
            raise LedgerTampered(f"it says that it is of {about['run']}, and record 0 says otherwise")
        logs.add((proven.origin, proven.size))
        named |= set(_blobs(proven.record.data))
    if about["seq"] not in about["records"] or 0 not in about["records"] or len(logs) != 1:
        raise LedgerTampered("its records are not those of one run, or not the one that it is about")
    held = {name.removeprefix("blobs/") for name in files if name.startswith("blobs/")}
    for name in sorted(held):
        if name not in named or sha256(files[f"blobs/{name}"]).hexdigest() != name:
            raise LedgerTampered(f"blobs/{name[:16]}… is not what a record names")
    known = {"README.txt", "case.json", *(f"proofs/{n}.tlog-proof" for n in about["records"])}
    if extra := sorted(set(files) - known - {f"blobs/{n}" for n in held}):
        raise LedgerTampered(f"{extra[0]} is not part of a case")
    ((_, size),) = logs
    missing = tuple(sorted(named - held))
    return Checked(about["run"], about["seq"], tuple(about["records"]), len(held), size, missing)
