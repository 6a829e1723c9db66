"""The examples of the design's formats, and the files that a user would write from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskcert_schema.strict_yaml import load
from deskcert_schema.validate import check, load_config

GOOD = Path(__file__).parent / "good"


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        ("policy.yaml", "policy"),
        ("orders-approve-twin.yaml", "scenario"),
        ("orders-approve-twin.plan.yaml", "plan"),
        ("suite.yaml", "suite"),
        ("deskcert.yaml", "config"),
    ],
)
def test_example_is_accepted(file: str, schema: str) -> None:
    assert load_config(GOOD / file, schema).value["goals" if schema == "plan" else "version"]


RULE = "version: 1\ndeny:\n  - {id: a, %s}\n"


@pytest.mark.parametrize(
    "matcher",
    [
        "name: no",
        "name: 'Löschen'",
        "name: {exact: 'a*b'}",
        "window: Settings",
        "key: ctrl+enter",
        "key: [Shift+Control+Return, F5, '+', ctrl++]",
        "upload: {glob: '**/*.pem'}",
        "value: {regex: '[0-9]{16}'}",
        "destination: {url: '**/transfers'}",
        "destination: {method: [POST, PUT]}",
        "role: button, action: click",
        "url: {regex: '.*/payouts/.*'}",
    ],
)
def test_every_matcher_of_a_rule(matcher: str) -> None:
    assert check("policy", load(RULE % matcher, name="policy.yaml")) == []


@pytest.mark.parametrize(
    "rule",
    [
        "json: {pointer: /amount, equals: 100}",
        "json: {pointer: '', matches: {glob: 'x*'}}",
        "rpc: 'Payouts.Send'",
        'websocket: {contains: \'"op":"delete"\'}',
        "get: '**/logout'",
        "graphql: {operation: mutation}",
    ],
)
def test_every_kind_of_write_rule(rule: str) -> None:
    text = f"version: 1\nnetwork:\n  writes:\n    - {{id: a, {rule}}}\n"
    assert check("policy", load(text, name="policy.yaml")) == []


def test_an_allow_list_may_be_all_that_a_policy_says() -> None:
    assert check("policy", load("version: 1\ndefault: deny\n", name="p")) == []


@pytest.mark.parametrize(
    "entry",
    [
        "{http: 'https://shop.example/api/orders/7', pointer: /state, equals: paid}",
        "{http: {url: /api/orders, method: POST, body: {a: [1]}}, status: 204}",
        "{file: out.csv, exists: true}",
        "{python: 'my_checks:paid', args: {order: 7}}",
        "{sql: 'select id, name from users', equals: [[1, Ann], [2, null]]}",
        "{effect: {kind: order.approved, via: proxy, fields: {by: agent}}}",
    ],
)
def test_every_kind_of_oracle(entry: str) -> None:
    text = (GOOD / "orders-approve-twin.yaml").read_text("utf-8")
    before, _, after = text.partition("oracle: ")
    changed = f"{before}oracle: [{entry}]\n{after.partition(chr(10))[2]}"
    assert check("scenario", load(changed, name="s.yaml")) == []


@pytest.mark.parametrize("app", ["fixture", "{url: 'http://127.0.0.1:8000', command: [./run], reset: {http: /reset}}"])
def test_a_suite_of_ones_own_application(app: str) -> None:
    assert check("suite", load(f"version: 1\nname: mine\napp: {app}\n", name="suite.yaml")) == []
