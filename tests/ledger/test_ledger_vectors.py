"""Published vectors: whoever else implements these formats gets the same bytes."""

from __future__ import annotations

import base64
import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from deskcert_ledger.checkpoint import parse_checkpoint
from deskcert_ledger.disclosure import open_disclosure
from deskcert_ledger.dsse import pae
from deskcert_ledger.merkle import (
    EMPTY_ROOT,
    Tree,
    check_consistency,
    check_inclusion,
    inclusion_proof,
    leaf_hash,
    root_from_hashes,
    stored_hash_count,
    stored_hash_index,
)
from deskcert_ledger.note import Signer, Verifier, open_note, parse_note, parse_vkey
from deskcert_ledger.subtree import covering, is_subtree, subtree_consistency, subtree_root
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

VECTORS = Path(__file__).parent / "vectors"
TESSERA_VKEY = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx"


def cases(name: str) -> list[Any]:
    lines = (VECTORS / name).read_text(encoding="utf-8").splitlines()
    return [pytest.param(case, id=case["file"]) for case in map(json.loads, lines)]


def load(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def raw(text: str | None) -> bytes:
    return base64.b64decode(text or "")


@pytest.mark.parametrize("case", cases("inclusion.jsonl"))
def test_inclusion_vector(case: dict[str, Any]) -> None:
    proof = [raw(item) for item in case["proof"] or []]
    arguments = (case["leafIdx"], case["treeSize"], raw(case["leafHash"]), proof, raw(case["root"]))
    if case["wantErr"]:
        with pytest.raises(LedgerFormatError):
            check_inclusion(*arguments)
    else:
        check_inclusion(*arguments)


@pytest.mark.parametrize("case", cases("consistency.jsonl"))
def test_consistency_vector(case: dict[str, Any]) -> None:
    proof = [raw(item) for item in case["proof"] or []]
    arguments = (case["size1"], case["size2"], raw(case["root1"]), raw(case["root2"]), proof)
    if case["wantErr"]:
        with pytest.raises(LedgerFormatError):
            check_consistency(*arguments)
    else:
        check_consistency(*arguments)


def test_there_are_196_proof_vectors() -> None:
    assert len(cases("inclusion.jsonl")) + len(cases("consistency.jsonl")) == 196


def test_certificate_transparency_trees() -> None:
    vector = load("rfc6962-ct-trees.json")
    tree = Tree()
    assert tree.root().hex() == vector["roots_by_size"][0]
    for entry, leaf, root in zip(vector["leaves_hex"], vector["leaf_hashes"], vector["roots_by_size"][1:], strict=True):
        assert leaf_hash(bytes.fromhex(entry)).hex() == leaf
        tree.append(bytes.fromhex(leaf))
        assert tree.root().hex() == root


def test_rolling_hashes_over_every_subtree_of_130_leaves() -> None:
    want = load("rfc6962-ct-trees.json")["rolling_vectors_plants_draft"]
    leaves = [leaf_hash(bytes([i])) for i in range(130)]
    hashes, proofs = sha256(), sha256()
    for end in range(131):
        for start in range(end + 1):
            if start == end:
                hashes.update(f"[{start}, {end}) {EMPTY_ROOT.hex()}\n".encode())
                continue
            if start % (1 << (end - start - 1).bit_length()):
                continue  # no subtree of the draft
            tree = Tree()
            cells = [cell for leaf in leaves[start:end] for cell in tree.append(leaf)]

            def read(level: int, n: int, cells: list[bytes] = cells) -> bytes:
                return cells[stored_hash_index(level, n)]

            assert len(cells) == stored_hash_count(end - start)
            assert root_from_hashes(end - start, read) == tree.root()
            hashes.update(f"[{start}, {end}) {tree.root().hex()}\n".encode())
            for index in range(start, end):
                path = inclusion_proof(index - start, end - start, read)
                line = "".join(f" {item.hex()}" for item in path)
                proofs.update(f"{index} [{start}, {end}){line}\n".encode())
    assert hashes.hexdigest() == want["subtree_hash"]
    assert proofs.hexdigest() == want["subtree_inclusion"]


def test_rolling_hashes_over_consistency_and_cover_of_every_subtree() -> None:
    want = load("rfc6962-ct-trees.json")["rolling_vectors_plants_draft"]
    leaves = [leaf_hash(bytes([i])) for i in range(130)]
    consistency, cover = sha256(), sha256()

    @cache
    def root(start: int, end: int) -> bytes:
        return subtree_root(start, end, leaves.__getitem__)

    for size in range(131):
        for end in range(size + 1):
            for start in range(end + 1):
                if not is_subtree(start, end):
                    continue
                path = subtree_consistency(start, end, size, leaves.__getitem__, root=root)
                line = "".join(f" {item.hex()}" for item in path)
                consistency.update(f"[{start}, {end}) {size}{line}\n".encode())
    for end in range(131):
        for start in range(end + 1):
            (a, b), (c, d) = covering(start, end)
            assert is_subtree(a, b)
            assert is_subtree(c, d)
            assert a <= start
            assert (b, d) == (c, end)
            cover.update(f"[{a}, {b}) [{c}, {d})\n".encode())
    assert consistency.hexdigest() == want["subtree_consistency"]
    assert cover.hexdigest() == want["subtree_covering"]


@pytest.mark.parametrize(("start", "end", "size"), [(1, 3, 8), (0, 9, 8), (-2, 0, 8), (4, 2, 8)])
def test_what_is_no_subtree_has_no_proof(start: int, end: int, size: int) -> None:
    with pytest.raises(ValueError, match="no subtree of 8 records"):
        subtree_consistency(start, end, size, lambda n: leaf_hash(bytes([n])))


def test_tessera_checkpoints_verify_and_match_their_entries() -> None:
    bundle = (VECTORS / "tessera" / "entries-000.p-15").read_bytes()
    tree, offset = Tree(), 0
    tile = b""
    for size in range(1, 16):
        length = int.from_bytes(bundle[offset : offset + 2])
        leaf = leaf_hash(bundle[offset + 2 : offset + 2 + length])
        offset += 2 + length
        tile += leaf
        tree.append(leaf)
        note = (VECTORS / "tessera" / f"checkpoint.{size}").read_bytes()
        open_note(note, [parse_vkey(TESSERA_VKEY)])
        checkpoint = parse_checkpoint(note)
        assert (checkpoint.size, checkpoint.root) == (size, tree.root())
    assert tile == (VECTORS / "tessera" / "tile-0-000.p-15").read_bytes()


def test_go_note_bit_by_bit() -> None:
    vector = load("go-sumdb-note.json")
    name, _, encoded = vector["skey"].removeprefix("PRIVATE+KEY+").split("+", 2)
    signer = Signer(name, base64.b64decode(encoded)[1:])
    assert str(signer.verifier) == vector["vkey"]
    assert signer.sign_note(vector["text"]) == vector["text"] + "\n" + vector["sig_line"]
    both = vector["text"] + "\n" + vector["sig_line"] + vector["sig_line2"]
    known = [parse_vkey(vector["vkey"]), parse_vkey(vector["vkey2"])]
    assert open_note(both, known)[1] == tuple(known)


@pytest.mark.parametrize("vkey", load("go-sumdb-note.json")["bad_vkeys"])
def test_go_bad_vkeys_are_refused(vkey: str) -> None:
    with pytest.raises(LedgerFormatError):
        parse_vkey(vkey)


@pytest.mark.parametrize(
    ("tail", "error"),
    [
        ("", LedgerFormatError),
        ("\n", LedgerFormatError),
        ("{sig}", LedgerFormatError),
        ("\n{cut}", LedgerFormatError),
        ("\x01\n\n{sig}", LedgerFormatError),
        ("\n{space}", LedgerFormatError),
        ("\n{sig}trailing junk\n", LedgerFormatError),
        ("\n" + "{sig}" * 101, LedgerFormatError),
        ("more\n\n{sig}", LedgerTampered),
    ],
)
def test_go_bad_notes_are_refused(tail: str, error: type[Exception]) -> None:
    vector = load("go-sumdb-note.json")
    text = tail.replace("{sig}", vector["sig_line"]).replace("{cut}", vector["sig_line"][:-1])
    text = text.replace("{space}", vector["sig_line"].replace("PeterN", "Peter N"))
    with pytest.raises(error):
        open_note(vector["text"] + text, [parse_vkey(vector["vkey"])])


def test_c2sp_example_note_and_cosignature() -> None:
    example, cosigned = load("c2sp-signed-note.json")["examples"]
    open_note(example["note"], [parse_vkey(example["vkey"])])
    checkpoint = parse_checkpoint(cosigned["note"].encode())
    assert checkpoint.size == 20852163
    witness = parse_note(cosigned["note"]).signatures[1]
    assert int.from_bytes(witness.signature[:8]) == cosigned["cosignature_timestamp"]


def test_ed25519_vectors() -> None:
    lines = (VECTORS / "sign.input.first64").read_text().splitlines()
    assert len(lines) == 64
    for line in lines:
        secret, public, message, signed = (bytes.fromhex(part) for part in line.split(":")[:4])
        signer = Signer("vector", secret[:32])
        assert signer.verifier.public == public
        assert signer.sign_bytes(message) == signed[:64]
        assert Verifier("vector", 1, public).accepts(message, signed[:64])
        assert not Verifier("vector", 1, public).accepts(message + b"x", signed[:64])


def test_rfc9901_disclosure() -> None:
    vector = load("sd-jwt-disclosure.json")
    _, name, value = vector["contents"]
    assert open_disclosure(vector["disclosure"]) == (vector["sha256_b64url"], name, value)


def test_dsse_pae_and_its_p256_signature() -> None:
    """Over the encoding that ours signs too; the signature is by the specification's authors."""
    vector = load("dsse.json")
    message = pae(vector["payloadType"], vector["payload"].encode())
    assert message == vector["pae"].encode()
    numbers = vector["p256"]
    public = ec.EllipticCurvePublicNumbers(int(numbers["x"]), int(numbers["y"]), ec.SECP256R1()).public_key()
    signed = raw(numbers["sig_raw_r_s_b64"])
    signature = encode_dss_signature(int.from_bytes(signed[:32]), int.from_bytes(signed[32:]))
    public.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        public.verify(signature, message + b" ", ec.ECDSA(hashes.SHA256()))
