"""A case file verifies by itself; any byte of it changed and it does not, or says what is missing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from deskcert.audit.case import check_case, write_case
from deskcert_ledger import LedgerError, ProjectKey
from deskcert_schema.errors import UsageError


@pytest.fixture(scope="module")
def made(run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any], int]:
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]
    typed = next(r["seq"] for r in lines if r.get("command") == "set-value")
    path = tmp_path_factory.mktemp("case") / "case.zip"
    write_case(run, typed, path)
    return path, [ProjectKey.load(run.parent / "key").verifier], typed


def again(path: Path, out: Path, change: dict[str, bytes | None]) -> Path:
    """A copy with files replaced, added or (None) left out."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        files = {n: old.read(n) for n in old.namelist()} | {n: c for n, c in change.items() if c is not None}
        for name, content in files.items():
            if change.get(name, b"") is not None:
                new.writestr(name, content)
    return out


def test_it_holds_the_record_what_belongs_to_it_and_no_typed_value(
    run: Path, made: tuple[Path, list[Any], int]
) -> None:
    path, pins, typed = made
    found = check_case(path, pins)
    lines = [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]
    result = next(r["seq"] for r in lines if r.get("of") == typed)
    assert {0, lines[typed]["snapshot_seq"], typed, result, len(lines) - 1} == set(found.records)
    assert found.missing_blobs == ()
    with zipfile.ZipFile(path) as pack:
        content = b"".join(pack.read(n) for n in pack.namelist())
        assert not [n for n in pack.namelist() if "disclosures" in n]
    assert b"call twelve" in (run / "disclosures.jsonl").read_bytes() or (run / "disclosures.jsonl").stat().st_size
    assert b"call twelve" not in content


def test_every_file_counts(made: tuple[Path, list[Any], int], tmp_path: Path) -> None:
    path, pins, _ = made
    with zipfile.ZipFile(path) as pack:
        for name in pack.namelist():
            if name == "README.txt":
                continue
            content = bytearray(pack.read(name))
            for place in range(0, len(content), max(1, len(content) // 12)):
                content[place] ^= 1
                with pytest.raises(LedgerError):
                    check_case(again(path, tmp_path / "changed.zip", {name: bytes(content)}), pins)
                content[place] ^= 1
            if not name.startswith("blobs/"):
                with pytest.raises(LedgerError):
                    check_case(again(path, tmp_path / "short.zip", {name: None}), pins)


def test_a_blob_left_out_is_named(made: tuple[Path, list[Any], int], tmp_path: Path) -> None:
    path, pins, _ = made
    with zipfile.ZipFile(path) as pack:
        blob = next(n for n in pack.namelist() if n.startswith("blobs/"))
    assert check_case(again(path, tmp_path / "c.zip", {blob: None}), pins).missing_blobs == (blob[6:],)


def test_nothing_else_may_be_in_it(made: tuple[Path, list[Any], int], tmp_path: Path) -> None:
    path, pins, _ = made
    with pytest.raises(LedgerError, match="not part of a case"):
        check_case(again(path, tmp_path / "more.zip", {"../evil.sh": b"x"}), pins)


def test_another_key_proves_nothing(made: tuple[Path, list[Any], int], tmp_path: Path) -> None:
    other = ProjectKey.load_or_create(tmp_path / "key")
    with pytest.raises(LedgerError):
        check_case(made[0], [other.verifier])


def test_no_such_record(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no record 999"):
        write_case(run, 999, tmp_path / "c.zip")
