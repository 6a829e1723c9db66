"""(3) The policy about files: what an upload sends, what a click or an address would bring."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from test_guard_policy import WINDOW, ask, button, denied

from deskcert.adapters.base import Action
from deskcert.contract.evidence import Destination, Known
from deskcert.guard.patterns import Match
from deskcert.guard.policy import Allow, Deny, Source, Subject, compile_policy, decide, subject_of, value_facts

PRIVATE = {"upload": {"glob": "*/private/*"}}
KEYS = {"download": {"glob": "*.key"}}


def sends(*paths: str) -> Action:
    return Action("upload", value=json.dumps([{"path": path, "bytes": 4} for path in paths]))


def bringing(*names: str) -> Subject:
    plain = subject_of(Action("click"), button("File"), WINDOW, {})
    return replace(plain, files=tuple(("link", name) for name in names))


def of_rule(rule: dict[str, Any], subject: Subject, *, allow: bool = False) -> Allow | Deny:
    rules = {"default": "deny", "allow": [{"id": "r"} | rule]} if allow else {"deny": [{"id": "r"} | rule]}
    return decide(compile_policy({"version": 1} | rules, digest="0" * 64), subject)


def test_one_private_file_among_those_sent_is_enough() -> None:
    policy = compile_policy({"version": 1, "deny": [{"id": "r"} | PRIVATE]}, digest="0" * 64)
    for paths, forbidden in ((("/srv/public/a", "/srv/private/b"), True), (("/srv/public/a",), False)):
        action = sends(*paths)
        verdict = decide(
            policy, subject_of(action, button(), WINDOW, value_facts(policy, action.value, action.command))
        )
        assert denied(verdict) is forbidden
        if isinstance(verdict, Deny):
            assert verdict.source == Source("target", "upload", "glob")


def test_a_rule_about_uploads_says_nothing_about_the_same_text_typed() -> None:
    policy = compile_policy({"version": 1, "deny": [{"id": "r"} | PRIVATE]}, digest="0" * 64)
    typed = subject_of(Action("set-value", value="/srv/private/b"), button(editable=True), WINDOW, {"r": Match.YES})
    assert not denied(decide(policy, typed))
    sent = subject_of(sends("/srv/private/b"), button(), WINDOW, {"r": Match.YES})
    assert denied(decide(policy, sent))


def test_an_upload_that_is_allowed_is_that_upload() -> None:
    policy = compile_policy({"version": 1, "default": "deny", "allow": [{"id": "r"} | PRIVATE]}, digest="0" * 64)
    for path, allowed in (("/srv/private/b", True), ("/srv/public/b", False)):
        action = sends(path)
        facts = value_facts(policy, action.value, action.command)
        assert denied(decide(policy, subject_of(action, button(), WINDOW, facts))) is not allowed


@pytest.mark.parametrize("names", [("site.key",), ("a.pdf", "site.key"), ("site.key", "a.pdf")])
def test_a_click_that_brings_a_forbidden_file_among_others_is_denied(names: tuple[str, ...]) -> None:
    verdict = of_rule(KEYS, bringing(*names))
    assert isinstance(verdict, Deny)
    assert (verdict.source.via, verdict.source.field) == ("link", "download")


@pytest.mark.parametrize("names", [(), ("a.pdf",), ("a.pdf", "b.pdf")])
def test_a_click_that_brings_other_files_or_none_is_not(names: tuple[str, ...]) -> None:
    assert not denied(of_rule(KEYS, bringing(*names)))


def test_a_name_that_cannot_be_compared_is_not_taken_for_another_one() -> None:
    slow, endless = {"download": {"regex": "(a|aa)+b"}}, "a" * 200
    for names in ((endless, "a.pdf"), ("a.pdf", endless)):
        verdict = of_rule(slow, bringing(*names))
        assert isinstance(verdict, Deny)
        assert verdict.source.form == "regex"


@pytest.mark.parametrize(
    ("names", "allowed"), [(("site.key",), True), (("site.key", "a.pdf"), False), (("a.pdf",), False), ((), False)]
)
def test_a_download_is_allowed_where_every_file_is(names: tuple[str, ...], allowed: bool) -> None:
    assert denied(of_rule(KEYS, bringing(*names), allow=True)) is not allowed


@pytest.mark.parametrize(("method", "hit"), [("GET", True), ("POST", False)])
def test_a_link_is_a_get(method: str, hit: bool) -> None:
    away = button("Out", destination=Known(Destination(link="http://h/out")))
    assert denied(ask({"destination": {"method": method}}, away)) is hit


@pytest.mark.parametrize(
    ("told", "asked", "hit"), [(None, "GET", True), ("post", "POST", True), ("post", "GET", False)]
)
def test_a_form_is_sent_as_it_says_and_by_get_where_it_says_nothing(told: str | None, asked: str, hit: bool) -> None:
    form = button("Send", destination=Known(Destination(form_action="http://h/s", form_method=told)))
    assert denied(ask({"destination": {"method": asked}}, form)) is hit
