#!/usr/bin/env python3
"""This zip is the evidence of one run of a UI agent, as deskcert recorded it, with the program that checks it.

    python3 verify.py PACK.zip --key VKEY        (any Python from 3.8 on; no network, nothing to install)

VKEY is the public key of the project, as `deskcert key show` prints it there. Get it from the project, never from this
zip: a pack with its own key verifies for a forger too. Take verify.py from a copy you trust; it compares the one in
the zip with itself.

What is checked, in this order:
 1. the zip has the one form that deskcert writes, so that no byte of it is without meaning;
 2. every line of run/ledger.jsonl is a record in its one spelling and has its number; the lines are the leaves of a
    Merkle tree (RFC 6962);
 3. the project key introduces the run key in record 0 (and, after a crash, in a record `recovery`), and each run key
    signs the tree within its own range of records and nowhere else (C2SP signed notes, Ed25519);
 4. every blob is what its record says, or a redaction signed by the project key says that it was deleted;
 5. the certificate (in-toto statements in DSSE) is signed by the run key and about this tree; its record classes, such
    as all denials, are counted again;
 6. policy.json, schemas/ and run/disclosures.jsonl are those that the records name.

An elided line, {"_elided":"<leaf hash>"}, hides a record and still leads to the signed root; how many there are is
said, and unless --allow-elided is given the answer is `unverifiable`.

Words: complete (exit 0); tampered, interrupted, unfinished (1); not a pack (2); unverifiable (3). What was not checked
is printed. This is integrity, not truth: whether what was recorded really happened, no signature can say.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import hashlib
import json
import re
import struct
import sys
import zlib
from typing import TYPE_CHECKING, Any

CLASSES = ("denied", "unsafe_retry", "refused", "uncertain", "blocked", "lost", "recovery", "redaction", "missing")
KIND_CLASS = {
    "action.denied": "denied",
    "action.refused": "refused",
    "net.blocked": "blocked",
    "component.lost": "lost",
    "recovery": "recovery",
    "redaction": "redaction",
    "blob.missing": "missing",
}
if TYPE_CHECKING:
    Point = tuple[int, int, int, int]  # x, y, z, t: extended coordinates

TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
RUN_PREDICATE = "deskcert:run-certificate/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
MARK = "\ufffd:"
SURROGATE = re.compile("[\ud800-\udfff]")
TIME = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]{6}Z", re.ASCII)


class NotAPack(Exception):
    """Exit 2."""


class Tampered(Exception):
    """Exit 1."""


def need(condition: object, sentence: str) -> None:
    if not condition:
        raise Tampered(sentence)


# -- Ed25519 (RFC 8032, section 6), verification only ------------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


def point_add(p: Point, q: Point) -> Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def point_mul(s: int, p: Point) -> Point:
    q = (0, 1, 1, 0)
    while s:
        if s & 1:
            q = point_add(q, p)
        p = point_add(p, p)
        s >>= 1
    return q


def recover_x(y: int, sign: int) -> int | None:
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    if square == 0:
        return None if sign else 0
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_ONE % P
    if (x * x - square) % P:
        return None
    return P - x if (x & 1) != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover_x(BASE_Y, 0) or 0
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def point_bytes(p: Point) -> bytes:
    inverse = pow(p[2], P - 2, P)
    x, y = p[0] * inverse % P, p[1] * inverse % P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")


def ed25519(public: bytes, message: bytes, signature: bytes) -> bool:
    """Does the signature hold?"""
    y = int.from_bytes(public, "little")
    x = recover_x(y & ((1 << 255) - 1), y >> 255)
    s = int.from_bytes(signature[32:], "little")
    if len(public) != 32 or len(signature) != 64 or x is None or s >= L:
        return False
    y &= (1 << 255) - 1
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    minus_a = (P - x, y, 1, (P - x) * y % P)
    return point_bytes(point_add(point_mul(s, BASE), point_mul(h, minus_a))) == signature[:32]


# -- text forms --------------------------------------------------------------------------------------------------------


def sha(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unb64(text: str) -> bytes:
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise Tampered("not base64: " + ascii(text[:40])) from None
    need(b64(data) == text, "base64 in another than its one spelling: " + ascii(text[:40]))
    return data


def refuse_number(text: str) -> None:
    raise ValueError(text)


def load(raw: bytes) -> Any:
    """JSON in the ledger's subset and in its one spelling."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_float=refuse_number, parse_constant=refuse_number)
        same = dump(value) == raw
    except (ValueError, RecursionError):
        raise Tampered("not JSON as deskcert writes it") from None
    need(same, "JSON in another than its one spelling")
    need(within(value, 0), "a number that is too large, or JSON that is too deep")
    need(MARK.encode() not in raw or marked(value), "a string that is marked as escaped and is not")
    return value


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def marked(value: object) -> bool:
    """Text that UTF-8 cannot carry (a page's lone surrogates) stands escaped, behind a mark: and nothing else does?"""
    if isinstance(value, dict):
        return all(marked(name) and marked(item) for name, item in value.items())
    if isinstance(value, list):
        return all(marked(item) for item in value)
    if not isinstance(value, str) or not value.startswith(MARK):
        return True
    body = value[len(MARK) :]
    text = re.sub(r"\\(?:\\|u(d[89a-f][0-9a-f]{2}))", lambda m: chr(int(m[1], 16)) if m[1] else "\\", body)
    again = SURROGATE.sub(lambda m: "\\u%04x" % ord(m.group()), text.replace("\\", "\\\\"))
    return again == body and (SURROGATE.search(text) is not None or text.startswith(MARK))


def within(value: object, depth: int) -> bool:
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return depth < 32 and all(within(item, depth + 1) for item in items)
    return not isinstance(value, int) or -(2**53) < value < 2**53


class Key:
    """A verifier key: name+id+base64(1 || public)."""

    def __init__(self, text: str) -> None:
        parts = text.strip().split("+", 2)
        need(len(parts) == 3, "not a verifier key: " + ascii(text[:80]))
        data = unb64(parts[2])
        self.name, self.id, self.public, self.text = parts[0], bytes.fromhex(parts[1]), data[1:], text.strip()
        whole = sha(self.name.encode() + b"\n" + data)[:4]
        need(len(data) == 33 and data[0] == 1 and whole == self.id, "a key that does not fit its id")
        self.hint = self.name + "+" + parts[1]

    def holds(self, message: bytes, signature: bytes) -> bool:
        return ed25519(self.public, message, signature)


class Note:
    """A C2SP signed note."""

    def __init__(self, raw: bytes) -> None:
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise Tampered("a note that is not UTF-8") from None
        head, _, block = text.rpartition("\n\n")
        need(head and block.endswith("\n") and not re.search("[\x00-\x09\x0b-\x1f]", text), "not a signed note")
        self.text = head + "\n"
        self.signatures: list[tuple[str, bytes, bytes]] = []
        for line in block[:-1].split("\n"):
            found = re.fullmatch("\u2014 ([^ +]+) ([A-Za-z0-9+/=]+)", line)
            if not found:
                raise Tampered("not a signature line: " + ascii(line[:60]))
            data = unb64(found.group(2))
            self.signatures.append((found.group(1), data[:4], data[4:]))

    def check(self, key: Key, what: str) -> list[str]:
        """Does `key` sign it? The names of other signers are remembered, as not checked."""
        mine = [item for item in self.signatures if item[:2] == (key.name, key.id)]
        need(mine and key.holds(self.text.encode(), mine[0][2]), what + " is not signed by " + ascii(key.name))
        return [item[0] for item in self.signatures if item[:2] != (key.name, key.id)]


# -- the tree ----------------------------------------------------------------------------------------------------------


class Tree:
    """RFC 6962: the right edge of a growing tree."""

    def __init__(self) -> None:
        self.size = 0
        self.edge: list[bytes] = []

    def append(self, leaf: bytes) -> None:
        bits = self.size
        while bits & 1:
            leaf = sha(b"\x01" + self.edge.pop() + leaf)
            bits >>= 1
        self.edge.append(leaf)
        self.size += 1

    def root(self) -> bytes:
        if not self.edge:
            return sha(b"")
        root = self.edge[-1]
        for left in reversed(self.edge[:-1]):
            root = sha(b"\x01" + left + root)
        return root


def classes_of(record: dict[str, Any]) -> list[str]:
    kind = record["kind"]
    if kind == "action.result":
        return ["uncertain"] if record.get("delivery") in ("unknown", "delivery_uncertain") else []
    if kind == "action.denied" and record.get("detail_kind") == "unsafe_retry":
        return ["denied", "unsafe_retry"]
    return [KIND_CLASS[kind]] if kind in KIND_CLASS else []


# -- the zip: stored, sorted, without dates, one spelling --------------------------------------------------------------


def zip_entry(name: str, data: bytes) -> tuple[bytes, tuple[bytes, bytes]]:
    """The bytes of one file in the zip, and its line of the directory but for the offset."""
    raw = name.encode("ascii")
    middle = struct.pack("<HHHHIIIHH", 0, 0, 0, 0x21, zlib.crc32(data), len(data), len(data), len(raw), 0)
    local = b"PK\x03\x04" + struct.pack("<H", 20) + middle + raw
    return local, (b"PK\x01\x02" + struct.pack("<HH", 3 << 8 | 20, 20) + middle, raw)


def zip_directory(entries: list[tuple[bytes, bytes, int]], start: int) -> bytes:
    """The end of the zip. `entries`: (half, raw name, offset)."""
    central = b"".join(
        half + struct.pack("<HHHII", 0, 0, 0, 0o100644 << 16, offset) + raw for half, raw, offset in entries
    )
    count = len(entries)
    return central + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, count, count, len(central), start, 0)


def read_zip(raw: bytes) -> dict[str, bytes]:
    """Name -> content. The directory is not read but made again and compared."""
    files: dict[str, bytes] = {}
    entries: list[tuple[bytes, bytes, int]] = []
    at, last = 0, ""
    while raw[at : at + 4] == b"PK\x03\x04":
        if len(raw) < at + 30:
            raise NotAPack("a zip that is cut off")
        size, _, name_length = struct.unpack_from("<IIH", raw, at + 18)
        name = raw[at + 30 : at + 30 + name_length].decode("ascii", "replace")
        begin = at + 30 + name_length
        data = raw[begin : begin + size]
        need(name.isascii() and name > last, "files of the zip are not in order")
        local, (half, raw_name) = zip_entry(name, data)
        need(raw[at:begin] == local, "the head of " + name + " is not as deskcert writes it")
        files[name], last = data, name
        entries.append((half, raw_name, at))
        at = begin + size
    if not entries:
        raise NotAPack("not a pack: no zip")
    need(raw[at:] == zip_directory(entries, at), "the directory of the zip is not as deskcert writes it")
    return files


# -- the run -----------------------------------------------------------------------------------------------------------


class Run:
    """What is known of the run while its records are read."""

    def __init__(self, files: dict[str, bytes], pin: Key | None) -> None:
        self.files, self.pin = files, pin
        self.tree, self.classes = Tree(), {name: Tree() for name in CLASSES}
        self.key: Key | None = None
        self.origin = ""
        self.first: dict[str, Any] = {}
        self.elided = self.epochs = 0
        self.open: set[int] = set()
        self.last_kind = ""
        self.blobs: dict[str, tuple[int, int]] = {}  # name -> size, first record that names it
        self.unsigned: list[tuple[int, int]] = []  # records that nobody had signed until a recovery
        self.kinds: dict[str, int] = {}
        self.digests: set[str] = set()
        self.seen_deleted: set[str] = set()
        self.seen_missing: set[str] = set()
        self.strangers: list[str] = []
        self.done: set[str] = set()
        self.signed = (0, b64(sha(b"")))

    def run_key(self) -> Key:
        if self.key is None:
            raise Tampered("no run key")
        return self.key

    def take(self, name: str) -> bytes | None:
        """A file of the pack; what was never taken in the end has no business there."""
        self.done.add(name)
        return self.files.get(name)

    def read(self) -> None:
        raw = self.take("run/ledger.jsonl")
        if raw is None:
            raise NotAPack("not a pack: no run/ledger.jsonl")
        need(raw.endswith(b"\n"), "the ledger does not end with a whole line")
        notes = self.notes()
        for line in raw[:-1].split(b"\n"):
            self.line(line)
            while notes and self.tree.size == notes[0][0]:
                size, root, note = notes.pop(0)
                need(b64(self.tree.root()) == root, "another tree than was signed, at size %d" % size)
                self.strangers += note.check(self.run_key(), "the checkpoint of size %d" % size)
                self.signed = (size, root)
        need(not notes, "a checkpoint vouches for more records than there are")
        need(self.signed[0] == self.tree.size, "records that no checkpoint covers")

    def notes(self) -> list[tuple[int, str, Note]]:
        raw = self.take("run/checkpoints") or b""
        final = self.take("run/checkpoint") or b""
        need(final and raw.endswith(final), "the last note of run/checkpoints is not run/checkpoint")
        found: list[tuple[int, str, Note]] = []
        for part in re.findall(b"[^\n]+\n[^\n]+\n[^\n]+\n\n(?:\xe2\x80\x94 [^\n]+\n)+", raw):
            note = Note(part)
            origin, size, root = note.text[:-1].split("\n")
            need(re.fullmatch("[1-9][0-9]{0,15}", size) and len(unb64(root)) == 32, "not a checkpoint")
            need(not found or found[-1][0] < int(size), "checkpoints out of order")
            found.append((int(size), root, note))
            self.origin = self.origin or origin
            need(origin == self.origin, "a checkpoint of another origin")
        again = b"".join(
            note.text.encode()
            + b"\n"
            + b"".join(
                "\u2014 {} {}\n".format(name, b64(key + signature)).encode() for name, key, signature in note.signatures
            )
            for _, _, note in found
        )
        need(again == raw, "bytes among the checkpoints that are no note")
        return found

    def line(self, line: bytes) -> None:
        seq = self.tree.size
        found = re.fullmatch(rb'\{"_elided":"([A-Za-z0-9+/]{43}=)"\}', line)
        if found:
            need(self.key is not None, "the first record is elided")
            self.elided += 1
            self.last_kind = ""
            self.tree.append(unb64(found.group(1).decode()))
            return
        try:
            record = load(line)
        except Tampered as error:
            raise Tampered("record %d: %s" % (seq, error)) from None
        whole = isinstance(record, dict) and (record.get("v"), record.get("seq")) == (1, seq)
        need(whole and len(line) <= 65535, "record %d: not the record of that number" % seq)
        sorts = [type(record.get(name)) for name in ("v", "seq", "m", "t", "w", "kind")]
        need(sorts == [int, int, int, str, str, str], "record %d: not a record" % seq)  # true is no 1 here
        need(
            TIME.fullmatch(record["t"]) and record["m"] >= 0 and record["w"] and record["kind"],
            "record %d: not a record" % seq,
        )
        self.record(seq, record)
        leaf = sha(b"\x00" + line)
        self.tree.append(leaf)
        for name in classes_of(record):
            self.classes[name].append(sha(b"\x00" + seq.to_bytes(8, "big") + leaf))

    def record(self, seq: int, record: dict[str, Any]) -> None:
        kind = self.last_kind = record["kind"]
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        if seq == 0:
            need(
                kind == "run.start" and record.get("origin") == self.origin, "the first record is no start of this run"
            )
            self.first = record
            self.epoch(record)
        elif kind == "recovery":
            need(self.signed == (record.get("size"), record.get("root")), "a recovery from another checkpoint")
            self.unsigned.append((self.signed[0], seq))
            self.epoch(record)
        elif kind == "action.intent":
            self.open.add(seq)
        elif kind == "action.result" and type(record.get("of")) is int:
            self.open.discard(record["of"])
        elif kind == "redaction":
            self.seen_deleted.update(map(str, record.get("blobs") or []))
        elif kind == "blob.missing":
            self.seen_missing.add(str(record.get("blob")))
        if kind not in ("redaction", "blob.missing"):
            self.named_in(record, seq)

    def epoch(self, record: dict[str, Any]) -> None:
        """A run key begins: the project key introduces it."""
        self.epochs += 1
        vkey, intro = str(record.get("vkey")), str(record.get("key_intro"))
        self.key = Key(vkey)
        need(self.key.name == self.origin, "the run key has another name than the origin")
        note = Note(intro.encode())
        need(note.text == "deskcert run key\n%s\n%s\n" % (self.origin, vkey), "an introduction of another key")
        if self.pin:
            note.check(self.pin, "the introduction of the run key")

    def named_in(self, value: Any, seq: int) -> None:
        """Blobs and commitments within a record or a blob."""
        if isinstance(value, dict):
            name = value.get("blob")
            if set(value) == {"blob", "bytes"} and isinstance(name, str) and re.fullmatch("[0-9a-f]{64}", name):
                self.blobs.setdefault(name, (value["bytes"], seq))
                return
            for key, item in value.items():
                if key == "_sd" and isinstance(item, list):
                    self.digests.update(map(str, item))
                else:
                    self.named_in(item, seq)
        elif isinstance(value, list):
            for item in value:
                self.named_in(item, seq)

    # -- beside the ledger ---------------------------------------------------------------------------------------------

    def check_blobs(self) -> tuple[int, int]:
        """How many are there, how many were deleted."""
        deleted = self.redactions() | self.seen_deleted
        gone = 0
        for name, (size, seq) in self.blobs.items():
            data = self.take("run/blobs/" + name)
            if data is None:
                late = name in self.seen_missing and any(first <= seq < end for first, end in self.unsigned)
                need(name in deleted or late, "blob %s... is missing" % name[:12])
                gone += 1
                continue
            same = hashlib.sha256(data).hexdigest() == name and len(data) == size
            need(same, "blob %s... is not what its record says" % name[:12])
            self.commitments_in(data[16:])
        return len(self.blobs) - gone, gone

    def commitments_in(self, content: bytes) -> None:
        if b'"_sd":' in content:
            for found in re.findall(rb'"_sd":\[([^\]]*)\]', content):
                self.digests.update(re.findall("[A-Za-z0-9_-]{43}", found.decode("ascii", "replace")))

    def redactions(self) -> set[str]:
        raw = self.take("run/redactions.jsonl")
        if raw is None:
            return set()
        need(raw.endswith(b"\n"), "redactions do not end with a whole line")
        deleted: set[str] = set()
        before = "0" * 64
        for number, line in enumerate(raw[:-1].split(b"\n")):
            value = load(line)
            need(isinstance(value, dict) and list(value) == ["note"], "not a redaction")
            note = Note(str(value["note"]).encode())
            told = load(note.text.encode().split(b"\n")[4]) if note.text.count("\n") == 5 else {}
            head = "deskcert redaction\n%s\n%d %s\n%d %s\n" % (self.origin, number, before, *self.signed)
            need(told and note.text == head + dump(told).decode() + "\n", "a redaction of another run or place")
            need(len(note.signatures) == 1, "a redaction with a signature that is not known here")
            if self.pin:
                note.check(self.pin, "a redaction")
            deleted.update(map(str, told["blobs"]))
            before = hashlib.sha256(line).hexdigest()
        return deleted

    def check_certificate(self) -> bool:
        raw = self.take("run/run.intoto.jsonl")
        bundle, armour = self.take("run/run.sigstore.json"), self.take("run/run.sshsig")
        if raw is None:
            need(bundle is None and armour is None, "parts of a certificate without it")
            return False
        lines = raw.split(b"\n")
        need(len(lines) == 3 and lines[2] == b"", "a certificate has two lines")
        own, tests = (self.statement(line) for line in lines[:2])
        told = own["predicate"]
        need(own["predicateType"] == RUN_PREDICATE and tests["predicateType"] == TEST_RESULT, "not these statements")
        need(own["subject"] == tests["subject"], "two statements about two things")
        whole = (self.origin, self.tree.size, b64(self.tree.root()), self.run_key().text)
        need((told["origin"], told["size"], told["root"], told["vkey"]) == whole, "a certificate of another ledger")
        self.strangers += Note(told["checkpoint"].encode()).check(self.run_key(), "the certificate's checkpoint")
        note = Note(told["classes_note"].encode())
        self.strangers += note.check(self.run_key(), "the note of record classes")
        if not self.elided:
            word = "complete" if self.last_kind == "run.end" else "unfinished"
            word = "interrupted" if self.open or self.epochs > 1 else word
            need(
                (told["word"], told["counts"]) == (word, self.kinds),
                "the certificate counts other records than there are",
            )
            ledger = hashlib.sha256(self.files["run/ledger.jsonl"]).hexdigest()
            need(own["subject"] == [{"name": "ledger.jsonl", "digest": {"sha256": ledger}}], "of another ledger file")
            counted = "".join("%s %d %s\n" % (name, t.size, b64(t.root())) for name, t in self.classes.items())
            text = "deskcert record classes\n%s\n%d %s\n%s" % (*whole[:3], counted)
            need(note.text == text, "the certificate counts the record classes otherwise than the records do")
        need(bundle is not None and armour is not None, "a certificate without its bundle or its SSH signature")
        if bundle is not None:
            public = {"publicKey": {"hint": self.run_key().hint}, "tlogEntries": []}
            kind = "application/vnd.dev.sigstore.bundle.v0.3+json"
            value = {"mediaType": kind, "verificationMaterial": public, "dsseEnvelope": load(lines[0])}
            need(bundle == dump(value) + b"\n", "the Sigstore bundle is not the certificate's")
        if armour is not None:
            self.check_sshsig(armour, raw)
        return True

    def statement(self, line: bytes) -> Any:
        envelope = load(line)
        shape = isinstance(envelope, dict) and list(envelope) == ["payload", "payloadType", "signatures"]
        need(shape and envelope["payloadType"] == PAYLOAD_TYPE, "not an envelope")
        signatures = envelope["signatures"]
        need(len(signatures) == 1 and list(signatures[0]) == ["keyid", "sig"], "not one signature")
        need(signatures[0]["keyid"] == self.run_key().hint, "signed by another key")
        payload = unb64(envelope["payload"])
        kind = PAYLOAD_TYPE.encode()
        message = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
        need(self.run_key().holds(message, unb64(signatures[0]["sig"])), "the certificate's signature does not hold")
        return load(payload)

    def check_sshsig(self, armour: bytes, message: bytes) -> None:
        def string(data: bytes) -> bytes:
            return struct.pack(">I", len(data)) + data

        lines = armour.decode("ascii", "replace").split("\n")
        signature = unb64("".join(lines[1:-2]))[-64:]
        public = string(b"ssh-ed25519") + string(self.run_key().public)
        middle = string(b"deskcert") + string(b"") + string(b"sha512")
        blob = b"SSHSIG" + struct.pack(">I", 1) + string(public) + middle
        text = b64(blob + string(string(b"ssh-ed25519") + string(signature)))
        parts = [text[at : at + 70] for at in range(0, len(text), 70)]
        again = "\n".join(["-----BEGIN SSH SIGNATURE-----", *parts, "-----END SSH SIGNATURE-----", ""]).encode()
        signed = b"SSHSIG" + middle + string(hashlib.sha512(message).digest())
        need(armour == again and self.run_key().holds(signed, signature), "the SSH signature does not hold")

    def check_openings(self) -> None:
        raw = self.take("run/disclosures.jsonl")
        for line in (raw or b"").split(b"\n")[:-1]:
            value = load(line)
            need(isinstance(value, dict) and list(value) == ["digest", "disclosure"], "not an opening")
            digest = base64.urlsafe_b64encode(sha(value["disclosure"].encode())).decode().rstrip("=")
            need(value["digest"] == digest and digest in self.digests, "an opening that no record names")
        need(not raw or raw.endswith(b"\n"), "openings do not end with a whole line")

    def check_beside(self) -> None:
        policy = self.take("policy.json")
        if policy is not None:
            content = self.first.get("policy")
            told = content.get("content") if isinstance(content, dict) else None
            need(policy == dump(told) + b"\n", "policy.json is not the policy of record 0")
        names = sorted(name for name in self.files if name.startswith("schemas/"))
        if names:
            total = hashlib.sha256()
            for name in names:
                data = self.take(name) or b""
                total.update(("%s\n%d\n" % (name[8:], len(data))).encode() + data)
            schema = self.first.get("schema")
            told = schema.get("digest") if isinstance(schema, dict) else None
            need(total.hexdigest() == told, "schemas/ are not the schemas of record 0")
        self.check_openings()
        with open(__file__, "rb") as file:
            own = file.read()
        need(self.take("verify.py") == own, "verify.py in the zip is another program than this one")
        need(self.take("README.txt") == (__doc__ or "").encode(), "README.txt is another text than this program's")
        left = sorted(set(self.files) - self.done)
        need(not left, "files that nothing names: " + ", ".join(left[:5]))


def verify(raw: bytes, pin: Key | None, allow_elided: bool = False) -> tuple[str, list[str]]:
    """(word, sentences about what was checked and what was not)."""
    run = Run(read_zip(raw), pin)
    run.read()
    there, gone = run.check_blobs()
    certified = run.check_certificate()
    run.check_beside()
    said = ["origin %s" % ascii(run.origin)]
    said.append("%d records, root %s" % (run.tree.size, b64(run.tree.root())))
    said.append("checked: %d blobs; %d run keys" % (there, run.epochs))
    if certified:
        counts = ", ".join("%s %d" % (name, tree.size) for name, tree in run.classes.items() if tree.size)
        said.append("checked: the certificate" + ("" if run.elided else "; classes: " + (counts or "all empty")))
    if gone:
        said.append("not checked: %d blobs that were redacted, or lost before a recovery" % gone)
    if run.elided:
        said.append("not checked: what %d elided lines say" % run.elided)
    if not certified:
        said.append("not checked: whether each record class is complete (no certificate)")
    said += ["not checked: a cosignature by " + ascii(name) for name in sorted(set(run.strangers))]
    said.append("not checked: whether what was recorded is true")
    if pin is None:
        return "unverifiable", [*said, "not checked: whose run this is; give --key"]
    if run.elided and not allow_elided:
        return "unverifiable", [*said, "elided lines are accepted with --allow-elided"]
    if run.open or run.epochs > 1:
        return "interrupted", said
    return ("complete" if run.last_kind == "run.end" else "unfinished"), said


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check a deskcert pack. README.txt says what is checked.")
    parser.add_argument("pack")
    parser.add_argument("--key", help="the project's public key, from the project itself")
    parser.add_argument("--allow-elided", action="store_true")
    given = parser.parse_args(arguments)
    try:
        with open(given.pack, "rb") as file:
            raw = file.read()
        pin = Key(given.key) if given.key else None
    except (OSError, Tampered, ValueError) as error:
        print("usage: %s" % error, file=sys.stderr)
        return 2
    try:
        word, said = verify(raw, pin, given.allow_elided)
    except NotAPack as error:
        word, said = "not a pack", [str(error)]
    except Tampered as error:
        word, said = "tampered", [str(error)]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        word, said = "tampered", ["not what deskcert writes: %r" % error]
    print(word)
    for sentence in said:
        print("  " + sentence.encode("ascii", "backslashreplace").decode())
    return {"complete": 0, "not a pack": 2, "unverifiable": 3}.get(word, 1)


if __name__ == "__main__":
    sys.exit(main())
