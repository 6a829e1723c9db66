"""(3) The policy: every activation path is asked, unknown evidence denies, allow lists let only the plain through."""

from __future__ import annotations

from typing import Any

import pytest

from deskcert.adapters.base import Action, WindowState
from deskcert.contract.evidence import (
    ABSENT,
    ActivationPath,
    Destination,
    Evidence,
    Field,
    HitTest,
    Known,
    NameSources,
    Unknown,
)
from deskcert.guard.patterns import Match
from deskcert.guard.policy import (
    Allow,
    Deny,
    Source,
    compile_policy,
    decide,
    merge,
    navigation_subject,
    subject_of,
    value_facts,
)
from deskcert.guard.rules import key_of
from deskcert_schema.errors import ConfigError
from deskcert_schema.vocabulary import DetailKind

WINDOW = WindowState("w1", "Orders - Shop", "http://h/orders", "d1")
UNREAD = Unknown("no answer")


def button(
    name: str = "Save",
    *,
    role: str = "button",
    paths: tuple[ActivationPath, ...] = (),
    destination: Field[Destination] = ABSENT,
    editable: bool = False,
    url: str = "http://h/orders",
    **names: Field[str],
) -> Evidence:
    sources = NameSources(**({"accessible": Known(name)} | names))  # type: ignore[arg-type]
    states: dict[str, Field[bool]] = {"visible": Known(True), "enabled": Known(True), "editable": Known(editable)}
    where = ("d1", "n1", role, sources, (), url, destination, paths, states)
    return Evidence(*where, ("click", "press", "set-value"), (0, 0, 1, 1), HitTest("pass"), ABSENT, "00")


def path(why: str, name: Field[str], role: str = "button", to: Field[Destination] = ABSENT) -> ActivationPath:
    return ActivationPath(why, role, NameSources(accessible=name), to)


def ask(rule: dict[str, Any], evidence: Evidence, action: Action | None = None, **document: Any) -> Allow | Deny:
    policy = compile_policy({"version": 1, "deny": [{"id": "r", "reason": "why"} | rule], **document}, digest="0" * 64)
    action = action or Action("click")
    return decide(policy, subject_of(action, evidence, WINDOW, value_facts(policy, action.value)))


def denied(verdict: Allow | Deny) -> bool:
    return isinstance(verdict, Deny)


@pytest.mark.parametrize("source", ["accessible", "text", "title", "alt", "value", "description", "placeholder"])
def test_every_name_source_is_asked(source: str) -> None:
    verdict = ask({"name": "Delete account"}, button("Go", **{source: Known("Delete account")}))
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.kind, verdict.source) == (
        "r",
        DetailKind.FORBIDDEN_NAME,
        Source("target", source, "fold"),
    )


@pytest.mark.parametrize(
    "why", ["label_control", "label", "ancestor", "descendant", "default_submitter", "access_key", "focused"]
)
def test_every_activation_path_is_asked(why: str) -> None:
    verdict = ask({"name": "Delete account"}, button("Go", paths=(path(why, Known("DeIete account")),)))
    assert isinstance(verdict, Deny)
    assert verdict.source.via == why


def test_the_role_may_be_that_of_any_element_of_one_control() -> None:
    rule = {"name": "Delete account", "role": "button"}
    inside = button("Delete account", role="generic", paths=(path("ancestor", Known("x")),))
    assert denied(ask(rule, inside))
    assert denied(ask(rule, button("x", paths=(path("descendant", Known("Delete account"), "img"),))))


def test_a_default_submitter_is_a_control_of_its_own() -> None:
    field = button("Name", role="textbox", editable=True, paths=(path("default_submitter", Known("Save")),))
    assert not denied(ask({"name": "Name", "role": "button"}, field, Action("press", key="Enter")))
    assert denied(ask({"name": "Save", "role": "button"}, field, Action("press", key="Enter")))


@pytest.mark.parametrize(("said", "meant"), [("textfield", "textbox"), ("hyperlink", "link"), ("pushbutton", "button")])
def test_role_words_of_the_desktop_mean_the_same(said: str, meant: str) -> None:
    assert denied(ask({"role": said}, button(role=meant)))


def test_enter_on_a_control_is_a_click_for_a_rule_about_clicks() -> None:
    rule = {"name": "Save", "action": "click"}
    assert denied(ask(rule, button(), Action("press", key="Enter")))
    assert denied(ask(rule, button(), Action("press", key="Space")))
    assert not denied(ask(rule, button(editable=True), Action("press", key="Enter")))
    assert not denied(ask({"name": "Save", "action": ["press"]}, button(), Action("click")))


TRANSFER = Destination(form_action="http://h/transfers", form_method="post")


def test_where_it_leads() -> None:
    rule = {"destination": {"method": "POST", "url": "**/transfers"}}
    verdict = ask(rule, button(destination=Known(TRANSFER)))
    assert isinstance(verdict, Deny)
    assert (verdict.kind, verdict.source.field) == (DetailKind.FORBIDDEN_DESTINATION, "destination.form_action")
    assert not denied(ask(rule, button(destination=Known(Destination(link="http://h/transfers")))))
    assert denied(
        ask({"destination": {"url": "**/transfers"}}, button(destination=Known(Destination(link="http://h/transfers"))))
    )
    assert denied(ask(rule, button(paths=(path("default_submitter", Known("x"), to=Known(TRANSFER)),))))


def test_typing_leads_nowhere_and_enter_does() -> None:
    rule = {"destination": {"method": "POST"}}
    field = button(role="textbox", editable=True, destination=Known(TRANSFER))
    assert not denied(ask(rule, field, Action("set-value", value="x")))
    assert not denied(ask(rule, field, Action("click")))
    assert denied(ask(rule, field, Action("press", key="Enter")))


def test_no_link_and_no_form_is_absent_not_unknown() -> None:
    assert not denied(ask({"destination": {"url": "**"}}, button(destination=ABSENT)))


@pytest.mark.parametrize(
    ("rule", "evidence"),
    [
        ({"name": "Delete"}, button("x", accessible=UNREAD)),
        ({"name": "Delete"}, button("x", title=UNREAD)),
        ({"name": "Delete"}, button("x", paths=(path("ancestor", UNREAD),))),
        ({"destination": {"url": "**/x"}}, button(destination=UNREAD)),
        ({"name": {"regex": "^(a|a)*$"}}, button("a" * 40 + "!")),
    ],
)
def test_unknown_evidence_where_a_rule_needs_it_denies(rule: dict[str, Any], evidence: Evidence) -> None:
    verdict = ask(rule, evidence)
    assert isinstance(verdict, Deny)
    assert verdict.kind is DetailKind.UNKNOWN_EVIDENCE


@pytest.mark.parametrize(
    "rule",
    [
        {"name": "Delete", "role": "link"},
        {"name": "Delete", "action": "set-value"},
        {"name": "Delete", "url": "**/payouts"},
        {"name": "Delete", "key": "enter"},
        {"destination": {"url": "**/x"}, "name": "Delete", "window": "Payouts"},
    ],
)
def test_unknown_evidence_matters_only_where_the_rest_of_the_rule_holds(rule: dict[str, Any]) -> None:
    assert not denied(ask(rule, button(accessible=UNREAD, destination=UNREAD)))


def test_a_known_hit_decides_whatever_else_is_unknown() -> None:
    verdict = ask({"name": "Delete"}, button(accessible=UNREAD, text=Known("Delete")))
    assert isinstance(verdict, Deny)
    assert verdict.kind is DetailKind.FORBIDDEN_NAME


def test_effects() -> None:
    assert ask({"name": "Save", "effect": "record_only"}, button()) == Allow(("r",), 1)
    verdict = ask({"name": "Save", "effect": "require_confirmation"}, button())
    assert isinstance(verdict, Deny)
    assert verdict.kind is DetailKind.CONFIRMATION_REQUIRED


def test_typed_values_and_keys() -> None:
    field = button(role="textbox", editable=True)
    verdict = ask({"value": {"regex": "[0-9]{16}"}}, field, Action("set-value", value="card 4111111111111111"))
    assert isinstance(verdict, Deny)
    assert verdict.kind is DetailKind.FORBIDDEN_VALUE
    assert not denied(ask({"value": {"regex": "[0-9]{16}"}}, field, Action("set-value", value="card")))
    assert denied(ask({"key": "Return"}, button(), Action("press", key="Enter")))
    assert denied(ask({"key": ["escape", "control+Enter"]}, button(), Action("press", key="Ctrl+enter")))
    assert not denied(ask({"key": "ctrl+enter"}, button(), Action("press", key="Enter")))
    assert key_of("shift+Control+A") == "ctrl+shift+a"


def test_url_and_window() -> None:
    assert denied(ask({"url": "**/orders"}, button()))
    assert denied(ask({"url": "**/payouts/**"}, button(url="http://h/payouts/frame")))
    assert not denied(ask({"url": "**/payouts/**"}, button()))
    assert denied(ask({"window": {"glob": "orders*"}}, button()))
    assert not denied(ask({"window": "Orders"}, button()))


def test_the_address_of_a_page_command() -> None:
    document = {
        "version": 1,
        "deny": [{"id": "r", "url": "**/admin/**"}, {"id": "d", "destination": {"url": "**/logout"}}],
    }
    policy = compile_policy(document, digest="0" * 64)
    for url, rule in [("http://h/admin/x", "r"), ("http://h/logout?x", "d"), ("http://h/%61dmin", "r")]:
        verdict = decide(policy, navigation_subject(url, WINDOW))
        assert isinstance(verdict, Deny)
        assert (verdict.rule, verdict.kind) == (rule, DetailKind.FORBIDDEN_DESTINATION)
    assert isinstance(decide(policy, navigation_subject("http://h/orders", WINDOW)), Allow)
    names = compile_policy({"version": 1, "deny": [{"id": "r", "name": "Delete", "url": "**"}]}, digest="0" * 64)
    assert isinstance(decide(names, navigation_subject("http://h/orders", WINDOW)), Allow)


def allow_only(rule: dict[str, Any], evidence: Evidence, action: Action | None = None) -> Allow | Deny:
    document = {"version": 1, "default": "deny", "allow": [{"id": "a"} | rule]}
    policy = compile_policy(document, digest="0" * 64)
    action = action or Action("click")
    return decide(policy, subject_of(action, evidence, WINDOW, value_facts(policy, action.value)))


def test_an_allow_list_denies_all_else() -> None:
    assert not denied(allow_only({"name": "save"}, button("Save")))
    verdict = allow_only({"name": "save"}, button("Delete"))
    assert isinstance(verdict, Deny)
    assert (verdict.rule, verdict.kind) == ("default-deny", DetailKind.NOT_ALLOWED)


@pytest.mark.parametrize(
    "evidence",
    [
        button("S\u0430ve"),
        button("Save", text=Known("Delete account")),
        button("Save", text=UNREAD),
        button("Save", paths=(path("ancestor", Known("Delete account")),)),
        button("Save", paths=(path("default_submitter", Known("Delete account")),)),
        button("", accessible=ABSENT),
    ],
)
def test_an_allow_list_lets_nothing_doubtful_through(evidence: Evidence) -> None:
    assert denied(allow_only({"name": "Save"}, evidence))


def test_an_allow_list_asks_every_matcher_plainly() -> None:
    to = Known(Destination(link="http://h/a"))
    assert not denied(allow_only({"destination": {"url": "http://h/a"}}, button(destination=to)))
    assert denied(allow_only({"destination": {"url": "http://h/b"}}, button(destination=to)))
    assert denied(allow_only({"destination": {"url": "http://h/a"}}, button(destination=UNREAD)))
    assert denied(allow_only({"action": "click"}, button(), Action("press", key="Enter")))
    assert denied(allow_only({"role": "link"}, button()))
    assert denied(allow_only({"url": "http://h/payouts"}, button()))
    assert denied(allow_only({"window": "Payouts"}, button()))
    assert denied(allow_only({"key": "space"}, button(), Action("press", key="Enter")))
    field = button(editable=True)
    assert denied(allow_only({"value": "a"}, field, Action("set-value", value="b")))
    assert not denied(allow_only({"value": "a"}, field, Action("set-value", value="a")))


def test_a_deny_rule_beats_the_allow_list() -> None:
    document = {
        "version": 1,
        "default": "deny",
        "allow": [{"id": "a", "role": "button"}],
        "deny": [{"id": "r", "name": "Save"}],
    }
    verdict = decide(compile_policy(document, digest=""), subject_of(Action("click"), button(), WINDOW))
    assert isinstance(verdict, Deny)
    assert verdict.rule == "r"


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"version": 1}, "empty"),
        ({"version": 1, "deny": []}, "empty"),
        ({"version": 1, "allow": [{"id": "a", "name": "x"}]}, "empty"),
        ({"deny": [{"id": "a", "name": "x"}, {"id": "a", "role": "link"}]}, "twice"),
        ({"deny": [{"id": "a", "name": "x"}], "allow": [{"id": "a", "role": "link"}]}, "twice"),
        ({"deny": [{"id": "a", "reason": "x"}]}, "no matcher"),
        ({"deny": [{"name": "x"}]}, "needs an id"),
        ({"deny": [{"id": "a", "nmae": "x"}]}, "unknown key"),
        ({"deny": [{"id": "a", "name": "x", "effect": "warn"}]}, "effect"),
        ({"deny": [{"id": "a", "destination": {}}]}, "destination"),
        ({"deny": [{"id": "a", "url": 7}]}, "url"),
        ({"deny": [{"id": "a", "url": {"regex": "("}}]}, "regular expression"),
    ],
)
def test_a_policy_that_cannot_be_applied_is_refused(document: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        compile_policy(document, digest="")


def test_a_scenario_only_adds() -> None:
    suite = {"version": 1, "deny": [{"id": "a", "name": "x"}], "network": {"hosts": ["h"], "writes": [{"id": "w"}]}}
    added = {"deny": [{"id": "b", "name": "y"}], "network": {"writes": [{"id": "v"}]}, "default": "deny"}
    merged = merge(suite, added)
    assert [r["id"] for r in merged["deny"]] == ["a", "b"]
    assert merged["network"] == {"hosts": ["h"], "writes": [{"id": "w"}, {"id": "v"}]}
    assert merged["default"] == "deny"
    assert merge(suite, {"default": "allow"}).get("default") is None
    with pytest.raises(ConfigError, match="'a' is used twice"):
        merge(suite, {"deny": [{"id": "a", "name": "z"}]})
    assert len(suite["deny"]) == 1


def test_value_facts_stand_for_the_value() -> None:
    policy = compile_policy({"deny": [{"id": "a", "value": {"glob": "4111*"}}, {"id": "b", "name": "x"}]}, digest="")
    assert value_facts(policy, "4111 x") == {"a": Match.YES}
    assert value_facts(policy, "5") == {"a": Match.NO}
    assert value_facts(policy, None) == {"a": Match.NO}
