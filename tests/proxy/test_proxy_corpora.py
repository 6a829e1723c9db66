"""Two corpora as data: ordinary requests that must pass, disguised forbidden ones that must not."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from proxy_rig import POLICY

from deskcert_proxy.classify import classify
from deskcert_proxy.request import Request
from deskcert_proxy.rules import Allow, Block, compile_network

HERE = Path(__file__).parent
RULES = compile_network(POLICY)


def entries(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").split("\n") if line]


def as_request(entry: dict[str, Any]) -> Request:
    body = base64.b64decode(entry["body_b64"]) if "body_b64" in entry else entry.get("body", "").encode()
    headers = [(name.lower(), value) for name, value in entry["headers"]]
    if not any(name == "host" for name, _ in headers):
        headers.append(("host", entry["url"].split("/")[2]))
    return Request(entry["method"], entry["url"], tuple(headers), body)


ORDINARY = entries("ordinary.jsonl")
DISGUISED = entries("disguised.jsonl")


@pytest.mark.parametrize("entry", ORDINARY, ids=lambda e: e["imitates"])
def test_ordinary_request_is_not_blocked(entry: dict[str, Any]) -> None:
    decision = RULES.decide(classify(as_request(entry)))
    assert isinstance(decision, Allow), decision


@pytest.mark.parametrize("entry", DISGUISED, ids=lambda e: e["imitates"])
def test_disguised_forbidden_request_is_blocked(entry: dict[str, Any]) -> None:
    decision = RULES.decide(classify(as_request(entry)))
    assert isinstance(decision, Block), "it would have been let through"
    if "rule" in entry:
        assert decision.rule == entry["rule"]


def test_corpora_are_large_and_say_what_they_imitate() -> None:
    assert len(ORDINARY) >= 200
    assert len(DISGUISED) >= 200
    for corpus in (ORDINARY, DISGUISED):
        names = [entry["imitates"] for entry in corpus]
        assert len(set(names)) == len(names)
        requests = {json.dumps({k: v for k, v in entry.items() if k != "imitates"}) for entry in corpus}
        assert len(requests) == len(corpus)
