"""Parsers of untrusted bytes: a value or the documented error, and nothing else."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deskcert_ledger import ProjectKey
from deskcert_ledger.b64 import b64decode, b64encode, b64url_decode, b64url_encode
from deskcert_ledger.checkpoint import Checkpoint, Damage, checkpoint_text, parse_checkpoint, read_checkpoints
from deskcert_ledger.cosignature import Witness, cosigned_at
from deskcert_ledger.disclosure import Secret, commit, open_disclosure
from deskcert_ledger.keys import default_key_path, load_pins
from deskcert_ledger.merkle import Tree, check_consistency, check_inclusion, consistency_proof, inclusion_proof

from deskcert_ledger.merkle import leaf_hash, stored_hash_index  # isort: skip
from deskcert_ledger.note import NoteSignature, Signer, open_note, parse_note, parse_vkey
from deskcert_ledger.reader import parse_record
from deskcert_schema.errors import LedgerFormatError, LedgerTampered, UsageError

SIGNER = Signer("deskcert/test", b"\1" * 32)


@given(st.binary(max_size=80))
def test_base64_round_trip(data: bytes) -> None:
    assert b64decode(b64encode(data)) == data
    assert b64url_decode(b64url_encode(data)) == data


@given(st.text(max_size=24) | st.text(st.sampled_from("AQgw=+/-_ \n"), max_size=12))
@example("QR==")  # the spare bits are not zero
def test_base64_has_one_spelling(text: str) -> None:
    for decode, encode in ((b64decode, b64encode), (b64url_decode, b64url_encode)):
        try:
            data = decode(text)
        except LedgerFormatError:
            continue
        assert encode(data) == text


def test_spare_bits_in_base64_are_refused() -> None:
    assert base64.b64decode("QR==") == base64.b64decode("QQ==")
    with pytest.raises(LedgerFormatError):
        b64decode("QR==")


@given(st.binary(max_size=300))
def test_parsers_answer_or_refuse(raw: bytes) -> None:
    for parse in (parse_note, parse_checkpoint, lambda data: parse_record(data, 0)):
        try:
            parse(raw)
        except LedgerFormatError:
            continue
    text = raw.decode("latin-1")
    for parse_text in (parse_vkey, open_disclosure, parse_note):
        try:
            parse_text(text)
        except LedgerFormatError:
            continue


@given(st.lists(st.integers(1, 60), max_size=5, unique=True), st.binary(max_size=60), st.integers(0, 10**6))
def test_notes_are_found_around_damage(sizes: list[int], junk: bytes, place: int) -> None:
    notes = [SIGNER.sign_note(checkpoint_text("deskcert/test", size, bytes(32))).encode() for size in sizes]
    at = place % (len(notes) + 1)
    raw = b"".join([*notes[:at], junk, *notes[at:]])
    found = list(read_checkpoints(BytesIO(raw), limit=len(raw)))
    good = [item.size for item in found if isinstance(item, Checkpoint)]
    lost = sum(item.length for item in found if isinstance(item, Damage))
    assert lost + sum(len(item.raw) for item in found if isinstance(item, Checkpoint)) == len(raw)
    assert [size for size in good if size in sizes] == good
    assert not junk or not junk.endswith(b"\n") or set(sizes) <= set(good)
    assert junk or good == sizes


@pytest.mark.parametrize("position", range(len(SIGNER.sign_note("text\n"))))
def test_no_byte_of_a_note_can_be_changed(position: int) -> None:
    note = SIGNER.sign_note("text\n")
    for other in ("\0", "\n", "A", "—", " ", chr(ord(note[position]) ^ 1)):
        changed = note[:position] + other + note[position + 1 :]
        if changed != note:
            with pytest.raises((LedgerFormatError, LedgerTampered)):
                open_note(changed, [SIGNER.verifier])


def test_a_note_by_nobody_known_is_refused() -> None:
    with pytest.raises(LedgerTampered):
        open_note(SIGNER.sign_note("text\n"), [Signer("deskcert/test", b"\2" * 32).verifier])


@given(st.integers(1, 70), st.data())
def test_proofs_hold_and_only_for_their_leaf(size: int, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(1, size))
    tree, roots, cells = Tree(), [], []
    for number in range(size):
        cells += tree.append(leaf_hash(str(number).encode()))
        roots.append(tree.root())

    def read(level: int, n: int) -> bytes:
        return cells[stored_hash_index(level, n)]

    proof = inclusion_proof(index, size, read)
    check_inclusion(index, size, leaf_hash(str(index).encode()), proof, roots[-1])
    with pytest.raises(LedgerFormatError):
        check_inclusion(index, size, leaf_hash(b"other"), proof, roots[-1])
    if size > 1:
        with pytest.raises(LedgerFormatError):
            check_inclusion((index + 1) % size, size, leaf_hash(str(index).encode()), proof, roots[-1])
    check_consistency(old, size, roots[old - 1], roots[-1], consistency_proof(old, size, read))
    if old < size:
        with pytest.raises(LedgerFormatError):
            check_consistency(old, size, leaf_hash(b"x"), roots[-1], consistency_proof(old, size, read))


@given(st.text(max_size=30), st.text(max_size=300))
def test_a_commitment_opens_to_what_was_hidden(name: str, value: str) -> None:
    made = commit(name, Secret(value), lambda count: b"s" * count)
    line = made.sidecar.decode()
    disclosure = line.split('"disclosure":"')[1].split('"')[0]
    assert open_disclosure(disclosure) == (made.digest, name, value)
    assert repr(Secret(value)) == "Secret(…)"


def test_a_secret_without_opening_leaves_none() -> None:
    made = commit("value", Secret("4111", openable=False), lambda count: b"s" * count)
    assert made.sidecar == b""
    assert len(made.digest) == 43


class TestCosignature:
    WITNESS = Witness("witness.example/w1", b"\3" * 32)
    TEXT = checkpoint_text("deskcert/test", 5, bytes(32))

    def test_says_when_and_leaves_the_logs_signature_as_it_is(self) -> None:
        note = parse_note(SIGNER.sign_note(self.TEXT) + self.WITNESS.cosign(self.TEXT, 1679315147))
        assert cosigned_at(note, self.WITNESS.verifier) == 1679315147
        assert note.holds(SIGNER.verifier)
        assert parse_vkey(str(self.WITNESS.verifier)) == self.WITNESS.verifier

    def test_a_changed_time_or_text_does_not_hold(self) -> None:
        line = self.WITNESS.cosign(self.TEXT, 1679315147)
        other = checkpoint_text("deskcert/test", 6, bytes(32))
        with pytest.raises(LedgerTampered):
            cosigned_at(parse_note(SIGNER.sign_note(other) + line), self.WITNESS.verifier)
        signature = parse_note(SIGNER.sign_note(self.TEXT) + line).signatures[1]
        later = NoteSignature(signature.name, signature.key_id, b"\0" * 8 + signature.signature[8:]).line()
        with pytest.raises(LedgerTampered):
            cosigned_at(parse_note(SIGNER.sign_note(self.TEXT) + later), self.WITNESS.verifier)

    def test_is_no_signature_of_the_log_and_its_key_no_pin(self) -> None:
        note = parse_note(SIGNER.sign_note(self.TEXT) + self.WITNESS.cosign(self.TEXT, 1))
        assert not note.holds(self.WITNESS.verifier)
        assert cosigned_at(parse_note(SIGNER.sign_note(self.TEXT)), self.WITNESS.verifier) is None
        with pytest.raises(LedgerFormatError):
            cosigned_at(note, SIGNER.verifier)
        with pytest.raises(UsageError):
            load_pins([str(self.WITNESS.verifier)])


class TestProjectKey:
    def test_is_made_once_private_and_read_again(self, tmp_path: Path) -> None:
        path = tmp_path / "suite" / ".deskcert" / "key"
        first = ProjectKey.load_or_create(path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert ProjectKey.load_or_create(path).vkey == first.vkey == ProjectKey.load(path).vkey
        assert first.vkey.startswith("deskcert/suite+")
        assert [item.name for item in path.parent.iterdir()] == ["key"]

    def test_read_by_others_is_refused_with_the_command(self, tmp_path: Path) -> None:
        path = tmp_path / "key"
        ProjectKey.load_or_create(path)
        path.chmod(0o644)
        with pytest.raises(UsageError, match=f"chmod 600 {path}"):
            ProjectKey.load(path)

    @pytest.mark.parametrize("text", ["", "rubbish", "PRIVATE+KEY+a+00000000+AAAA\n", "PRIVATE+KEY+a\n", "\xff"])
    def test_a_file_that_is_no_key_is_a_usage_error(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "key"
        path.write_text(text, encoding="latin-1")
        path.chmod(0o600)
        with pytest.raises(UsageError, match="not a project key"):
            ProjectKey.load(path)

    def test_is_where_the_variable_says(self, tmp_path: Path) -> None:
        assert default_key_path(tmp_path, {}) == tmp_path / ".deskcert" / "key"
        assert default_key_path(tmp_path, {"DESKCERT_KEY_FILE": "/k"}) == Path("/k")

    def test_pins_are_keys_or_files_and_never_private(self, tmp_path: Path, key: ProjectKey) -> None:
        file = tmp_path / "pin.txt"
        file.write_text(f"# ours\n{key.vkey}\n")
        assert load_pins([key.vkey]) == load_pins([str(file)]) == (key.verifier,)
        for wrong in (str(tmp_path / ".deskcert" / "key"), "nofile", "a+b+c", str(tmp_path)):
            with pytest.raises(UsageError):
                load_pins([wrong])
