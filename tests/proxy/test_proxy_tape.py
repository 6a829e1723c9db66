"""Flows kept for replay: without their secrets, as salted blobs; and a replay that never forwards."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml
from mitmproxy.http import Response
from proxy_rig import POLICY, Origin, Reply, make_ledger, request_bytes, send_raw
from test_proxy_alone import kinds, port_of, program

from deskcert_ledger import read_records
from deskcert_proxy.redaction import REDACTED, Redaction
from deskcert_proxy.replay import match_key, read_tape
from deskcert_proxy.request import Request
from deskcert_proxy.supervisor import ProxyRun
from deskcert_proxy.tape import Tape
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

JSON = ("Content-Type", "application/json")
FORM = ("Content-Type", "application/x-www-form-urlencoded")
SECRETS = ["s3cr3t-cookie", "s3cr3t-query", "s3cr3t-json", "s3cr3t-form", "s3cr3t-page", "s3cr3t-answer", "s3cr3t-own"]
PAGE = b'<form><input type=hidden name=csrf_token value="s3cr3t-page"><p>kept</p></form>'
ANSWER = json.dumps({"session_token": "s3cr3t-answer", "shown": "kept"}).encode()
OWN = POLICY | {"network": POLICY["network"] | {"secrets": [{"glob": "*badge*"}]}}


def requests(url: str, *, secrets: str = "s3cr3t") -> list[bytes]:
    """Those that a page might send; again with other secrets, which must not matter."""
    return [
        request_bytes("GET", f"{url}/page?token={secrets}-query&a=1", b"", [("Cookie", f"session={secrets}-cookie")]),
        request_bytes("POST", url + "/api/login", b'{"user":"a","password":"%s-json"}' % secrets.encode(), [JSON]),
        request_bytes("POST", url + "/api/form", b"a=1&user[password]=%s-form" % secrets.encode(), [FORM]),
        request_bytes("POST", url + "/api/own", b'{"badge_number":"%s-own","a":1}' % secrets.encode(), [JSON]),
    ]


async def ask(port: int, data: bytes) -> Reply:
    return await asyncio.to_thread(send_raw, port, data)


@pytest.fixture(scope="module")
def origin() -> Iterator[Origin]:
    found = Origin()
    found.pages = {"/page": ("text/html", PAGE), "/api/login": ("application/json", ANSWER)}
    yield found
    found.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tape(origin: Origin, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tape")
    ledger = make_ledger(folder)
    async with await ProxyRun.start(ledger, OWN, folder=folder / "proxy", tape=folder / "tape") as proxy:
        for data in requests(origin.url):
            assert (await ask(proxy.port, data)).status == 200
    ledger.seal()
    return folder / "tape"


def test_tape_holds_no_secret_and_the_server_got_all_of_them(tape: Path, origin: Origin) -> None:
    files = [path for path in tape.rglob("*") if path.is_file()]
    assert len(files) == 1 + 4
    kept = b"".join(path.read_bytes() for path in files)
    plain = b"".join(json.dumps([k, [a.body.decode() for a in v]]).encode() for k, v in read_tape(tape).items())
    assert [secret for secret in SECRETS if secret.encode() in kept + plain] == []
    assert b"kept" in plain
    assert {path.stat().st_mode & 0o077 for path in files} == {0}
    assert origin.hits[1].body == b'{"user":"a","password":"s3cr3t-json"}'
    index = [json.loads(line) for line in (tape / "flows.jsonl").read_text().splitlines()]
    assert [(line["method"], line["status"]) for line in index] == [("GET", 200)] + [("POST", 200)] * 3


def test_flows_that_are_alike_have_different_blobs(tmp_path: Path) -> None:
    kept = Tape(tmp_path, Redaction.of(OWN))
    for flow in ("one", "two"):
        kept.sent(flow, Request("GET", "http://127.0.0.1/page", ()))
        kept.done(flow, Response.make(200, b"alike"))
    assert len(list((tmp_path / "blobs").iterdir())) == 2
    (answers,) = read_tape(tmp_path).values()
    assert [answer.body for answer in answers] == [b"alike"] * 2


async def test_changed_flow_is_found(tape: Path, tmp_path: Path) -> None:
    tape = Path(shutil.copytree(tape, tmp_path / "copy"))
    blob = next((tape / "blobs").iterdir())
    data = bytearray(blob.read_bytes())
    data[-5] ^= 1
    blob.write_bytes(data)
    with pytest.raises(LedgerTampered):
        read_tape(tape)


async def test_command_replays_and_forwards_nothing(tape: Path, tmp_path: Path, origin: Origin) -> None:
    recorded = len(origin.hits)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(OWN))
    options = ["--policy", "policy.yaml", "--ledger", "led", "--listen", "127.0.0.1:0", "--replay", str(tape)]
    with program(tmp_path, "-m", "deskcert.cli.main", "proxy", *options) as process:
        port = port_of(process)
        page, login, form, own = [await ask(port, data) for data in requests(origin.url, secrets="other")]
        again = await ask(port, requests(origin.url)[0])
        never = await ask(port, request_bytes("POST", origin.url + "/api/x", b"1"))
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
    assert b"<p>kept</p>" in page.body
    assert page.headers["content-length"] == str(len(page.body))
    assert json.loads(login.body) == {"session_token": REDACTED, "shown": "kept"}
    assert (form.status, own.status) == (200, 200)
    assert (again.status, never.status) == (502, 502)
    assert len(origin.hits) == recorded  # nothing went on to the server
    assert kinds(tmp_path / "led") == [("net.blocked", "net-replay")] * 2
    missed = [r.data["why"] for r in read_records(tmp_path / "led") if r.kind == "net.blocked"]
    assert missed == ["asked more often than it was", "not on the tape"]


def test_body_that_cannot_be_read_is_withheld_and_pictures_are_kept() -> None:
    redaction = Redaction.of(OWN)
    assert redaction.body(b'{"password":"a","password":"b"}', "application/json", ()).withheld
    assert redaction.body(b'{"a":1}', "application/json", ("br",)).withheld
    assert redaction.body(b"\xff\xfe{\0", "text/plain", ()).withheld
    assert not redaction.body(b"\x89PNG\xff", "image/png", ()).withheld
    packed = redaction.body(gzip.compress(b'{"password":"a"}'), "application/json", ("gzip",))
    assert (json.loads(packed.data), packed.coded) == ({"password": REDACTED}, False)
    same = gzip.compress(b'{"a":1}')
    assert redaction.body(same, "application/json", ("gzip",)).data == same


def test_damaged_tape_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "flows.jsonl").write_text("{}\n")
    with pytest.raises(LedgerFormatError, match="line 1"):
        read_tape(tmp_path)
    assert match_key("get", "http://a/#x", b"") == match_key("GET", "http://a/", b"")
