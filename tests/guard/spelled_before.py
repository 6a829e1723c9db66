"""How the guard reads texts, addresses, roles, keys and policies: answers in full, for `spelled.json`.

`python tests/guard/decided_before.py` writes that file anew, too.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from deskcert.adapters.base import Dialog, Dispatch, DispatchEnd, RequestSeen, WindowState
from deskcert.guard import names
from deskcert.guard.answers import request_json
from deskcert.guard.confusables import ascii_table, prototype_table
from deskcert.guard.delivery import judge_dispatch
from deskcert.guard.desktop_subject import DESKTOP_COMMANDS, WITHOUT_ELEMENT, desktop_subject
from deskcert.guard.patterns import TextPattern, UrlPattern, url_spellings
from deskcert.guard.policy import PAGE_COMMANDS, decide, page_subject
from deskcert.guard.rules import compile_policy, key_of, merge, role_of
from deskcert.guard.verification import Verification
from deskcert_schema.disposition import Delivery, Disposition, strongest
from deskcert_schema.errors import DeskcertError
from deskcert_schema.vocabulary import VerificationScope

TEXTS = (
    *("Delete account", "DELETE  account", "delete\taccount ", "Delete", "account", "", " ", "\u200b", "…", "\u2800x"),
    *("D\u0435lete acc\u043eunt", "De1ete account", "DeIete acc0unt", "D e l e t e account", "D e l e t e", "D e l"),
    *(
        "D\u200be\u00adlete account",
        "Ｄｅｌｅｔｅ account",
        "𝐃elete account",
        "\u202etnuocca eteleD\u202c",
        "tnuocca eteleD",
    ),
    *(
        "\u2067Delete account\u2069",
        "🗑 Delete account…",
        "→ «Delete account» ←",
        "'Delete account'",
        "(Delete account)",
    ),
    *("D̶e̶l̶e̶t̶e̶ account", "Déléte account"),
    *("Delete\u2009account", "De\u2009lete\u2009account", "De\u202flete account"),
    *(
        "Delete account!",
        "Undelete account",
        "Delete accounts",
        "\u05d0\u05d1 (x) Delete account",
        "\u05d0\u05d1[1]<2>{3}",
    ),
    *(
        "IlIlIlIlIl0O",
        "Bill 10",
        "B1ll",
        "IO1l|0o",
        "O0",
        "l0 O1 a1 1a",
        "Rn m",
        "vv w W",
        "RNI",
        "LIlL",
        "1l|L",
        "A1B",
    ),
    *(
        "ſtraße",
        "STRASSE",
        "ﬁle",
        "İstanbul",
        "ŉ",
        "x\ud800y",
        "\ue000Delete\ue001",
        "a\nb\r\nc",
        "1,000",
        "½",
        "À",
        "A\u0300",
    ),
    *(
        "i I l",
        "in Is",
        "_i",
        "D-e-l",
        "a b c d",
        "ab c d e f",
        "a b c de",
        "…Delete...",
        "..",
        "Delete\u00a0account\u3000",
    ),
    *("𝟘𝟙", "Ⅷ", "ℂ", "\u0130", "\u0131", "ß", "ǅ", "㎏", "\u3164", "\uff5c", "¦", "׀", "\u01c0", "wow VV", "ww"),
)
PATTERNS: dict[str, Any] = {
    "exact": "Delete account",
    "exact, spelled out": {"exact": "Delete account"},
    "exact, look-alike": "D\u0435lete acc\u043eunt",
    "exact, one word": "Delete",
    "exact, spaced": "D e l e t e",
    "exact, capitals": "BILL 10",
    "exact, not Latin": "\u05d0\u05d1 (x) Delete account",
    "glob": {"glob": "*delete*"},
    "glob of one": {"glob": "?elete account"},
    "glob of anything": {"glob": "*"},
    "glob of a letter": {"glob": "?"},
    "glob of blanks": {"glob": "* ?"},
    "glob of a number": {"glob": "*10"},
    "regex": {"regex": "delete\\s+account"},
    "regex of a number": {"regex": "^b[il1]+ ?10$"},
    "regex of capitals": {"regex": "ILIL"},
    "regex of zero": {"regex": "100|0o"},
    "regex of anything": {"regex": ""},
    "regex, broken": {"regex": "("},
    "glob, broken": {"glob": ""},
    "two kinds": {"glob": "a", "regex": "b"},
    "another kind": {"like": "a"},
    "a number": {"glob": 3},
    "a list": ["a"],
    "nothing": None,
    "nothing to read": "\u200b",
    "only blanks": " ",
    "regex of a text": {"regex": "x"},
}
URLS = (
    *(
        "http://h/payouts",
        "http://h/payouts/",
        "http://h/payouts/7",
        "http://h/payouts/7/edit",
        "http://h/a/payouts/x/y",
    ),
    *(
        "http://h/payouts?x=1#y",
        "http://h/payouts#a#b",
        "http://h/payouts?a?b",
        "http://h//payouts//7",
        "http://h/p%61youts/7",
    ),
    *(
        "http://h/p%2561youts",
        "http://h\\payouts\\7",
        "http://h/payouts;s=1/7",
        "http://h/payouts;s=1?q;r",
        "HTTP://H/PAYOUTS/7",
    ),
    *(
        "https://h/payouts",
        "http://h/",
        "http://h",
        "about:blank",
        "",
        "http://h/payouts/%2e%2e/x",
        "http://h/a.b",
        "http://h/aXb",
    ),
)
URL_PATTERNS: dict[str, Any] = {
    "glob of everything": "**",
    "glob of a folder": "**/payouts/**",
    "glob of one level": "http://h/payouts/*",
    "glob in the middle": "http://h/*/7",
    "glob, plain": "http://h/payouts",
    "glob, spelled out": {"glob": "**/payouts"},
    "exact": {"exact": "http://h/payouts"},
    "exact with a star": {"exact": "http://h/*"},
    "exact with a dot": {"exact": "http://h/a.b"},
    "regex": {"regex": "payouts/\\d+$"},
    "regex of two": {"regex": "edit|about"},
    "regex, broken": {"regex": "("},
    "nothing": "",
}
ROLES = (
    *(
        "textfield",
        "text",
        "entry",
        "edit",
        "textarea",
        "hyperlink",
        "pushbutton",
        "push button",
        "menu item",
        "check box",
    ),
    *(
        "radio",
        "radiobutton",
        "radio button",
        "dropdown",
        "select",
        "toggle",
        "image",
        "graphic",
        "tabitem",
        "incrementor",
    ),
    *(" Push Button ", "button", "LINK", "", "something"),
)
KEYS = (
    *(
        "a",
        "A",
        "Enter",
        "Return",
        " ",
        "Space",
        "Spacebar",
        "Control+a",
        "Ctrl+A",
        "Command+Return",
        "cmd+super+x",
        "Option+1",
    ),
    *("Shift+Control+Return", "Meta+Shift+Alt+Ctrl+x", "+", "Ctrl++", "Shift + Tab", "Ctrl", "Hyper+x", "", "x+Ctrl"),
)
DENY = {"id": "a", "name": "Delete"}
DOCUMENTS: dict[str, Any] = {
    "plain": {"version": 1, "deny": [DENY]},
    "nothing": {"version": 1},
    "empty lists": {"version": 1, "deny": [], "allow": []},
    "only allows": {"version": 1, "allow": [DENY]},
    "an allow list": {"version": 1, "default": "deny", "allow": [DENY]},
    "an empty allow list": {"version": 1, "default": "deny"},
    "twice": {"version": 1, "deny": [DENY, DENY]},
    "twice in two lists": {"version": 1, "default": "deny", "deny": [DENY], "allow": [DENY, {"id": "b", "role": "x"}]},
    "an unknown key": {"version": 1, "deny": [DENY | {"zeta": 1, "colour": 2}]},
    "without an id": {"version": 1, "deny": [{"name": "x"}]},
    "an id of nothing": {"version": 1, "deny": [{"id": "", "name": "x"}]},
    "an id that is a number": {"version": 1, "deny": [{"id": 3, "name": "x"}]},
    "without a matcher": {"version": 1, "deny": [{"id": "a", "reason": "r", "effect": "deny"}]},
    "an unknown effect": {"version": 1, "deny": [DENY | {"effect": "forbid"}]},
    "every effect": {
        "version": 1,
        "deny": [{"id": e, "name": "x", "effect": e} for e in ("deny", "record_only", "require_confirmation")],
    },
    "everything": {
        "version": 1,
        "deny": [
            {
                "id": "a",
                "reason": "r",
                "name": "n",
                "role": ["Push Button", "link"],
                "action": ["Click", "press"],
                "url": "**/x",
                "window": {"glob": "*w*"},
                "destination": {"method": ["post", "PUT"], "url": "**/y"},
                "value": "v",
                "key": ["Control+W", "F5"],
                "upload": "u",
                "download": {"regex": "d"},
            }
        ],
    },
    "one of each": {
        "version": 1,
        "deny": [{"id": "a", "role": "edit", "action": "Click", "key": "Return", "destination": {"method": "post"}}],
    },
    **{
        f"broken {key}": {"version": 1, "deny": [{"id": "a", "name": "n", key: bad}]}
        for key, bad in (
            *(
                ("name", {"regex": "("}),
                ("url", {"regex": "("}),
                ("window", 3),
                ("value", ""),
                ("upload", []),
                ("download", {}),
            ),
            *(
                ("destination", "x"),
                ("destination", {}),
                ("destination", {"verb": "x"}),
                ("destination", {"url": {"regex": "("}}),
            ),
        )
    },
    **{
        f"broken destination {bad}": {"version": 1, "deny": [{"id": "a", "destination": bad}]}
        for bad in ({}, {"verb": "x"}, {"url": {"regex": "("}}, {"method": "PUT", "verb": "x"})
    },
    "broken second": {"version": 1, "deny": [DENY, {"id": "b", "name": 3}]},
    "broken allow": {"version": 1, "default": "deny", "allow": [DENY, {"id": "b", "name": 3}]},
}
ADDED: dict[str, Any] = {
    "nothing": {},
    "a rule": {"deny": [{"id": "b", "name": "x"}]},
    "the same rule": {"deny": [DENY]},
    "the same allow rule": {"allow": [{"id": "z", "name": "y"}]},
    "an allow rule": {"allow": [{"id": "c", "name": "x"}]},
    "default": {"default": "deny"},
    "default allow": {"default": "allow"},
    "network": {"network": {"hosts": ["h"], "writes": [{"path": "/x"}], "mode": "m"}},
    "hosts": {"network": {"hosts": ["i"]}},
    "no rules": {"deny": None, "allow": [], "network": None},
}
GROUND: dict[str, Any] = {
    "plain": {"version": 1, "deny": [DENY]},
    "with a network": {"version": 1, "deny": [DENY], "network": {"hosts": ["o"], "mode": "n"}},
    "allow list": {"version": 1, "default": "deny", "allow": [{"id": "z", "name": "q"}]},
}


def plain(value: Any) -> Any:
    """Any value of the guard as JSON."""
    match value:
        case Enum():
            return value.value
        case str() | int() | None | bool():
            return value
        case Mapping():
            return {str(plain(k)): plain(v) for k, v in sorted(value.items(), key=lambda kv: str(kv[0]))}
        case frozenset() | set():
            return sorted(plain(v) for v in value)
        case list() | tuple():
            return [plain(v) for v in value]
        case _ if dataclasses.is_dataclass(value):
            names = [f.name for f in dataclasses.fields(value)]
            return {type(value).__name__: {n: plain(getattr(value, n)) for n in names if getattr(value, n) is not None}}
    return repr(value)


def _told(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except DeskcertError as error:
        return f"{type(error).__name__}: {error}"


def _hit(found: Any) -> str:
    if isinstance(found, bool):
        return "yes" if found else "no "
    return " ".join([found.match.value, found.form, *([found.why] if getattr(found, "why", None) else [])])


def _texts(apply: Callable[[str], Any]) -> dict[str, Any]:
    return {ascii(text): ascii(apply(text)) for text in TEXTS if text is not None}


def _patterns(how: str) -> dict[str, Any]:
    def hits(raw: Any) -> Any:
        pattern = TextPattern.read(raw, "here")
        found = {ascii(t): _hit(getattr(pattern, how)(t)) for t in TEXTS}
        return {t: said for t, said in found.items() if not said.startswith("no ")} | {"repr": repr(pattern)}

    return {name: _told(lambda raw=raw: hits(raw)) for name, raw in PATTERNS.items()}


def _urls() -> dict[str, Any]:
    def hits(raw: Any) -> Any:
        pattern = UrlPattern.read(raw, "here")
        return [[u, pattern.matches(u).value, pattern.plainly(u)] for u in URLS if pattern.matches(u).value != "no"]

    return {name: _told(lambda raw=raw: hits(raw)) for name, raw in URL_PATTERNS.items()}


def _policies() -> dict[str, Any]:
    return {name: _told(lambda d=d: plain(compile_policy(d, digest="x"))) for name, d in DOCUMENTS.items()}


def _merged() -> dict[str, Any]:
    pairs = itertools.product(GROUND.items(), ADDED.items())
    return {f"{g} and {a}": _told(lambda x=x, y=y: merge(x, y)) for (g, x), (a, y) in pairs}


def _without_element() -> Any:
    subjects = [plain(page_subject(c, {"url": "http://h/a"}, None)) for c in sorted(PAGE_COMMANDS)]
    desktop = [plain(desktop_subject(c, {"url": "desktop://clipboard/"})) for c in sorted(DESKTOP_COMMANDS)]
    return [sorted(WITHOUT_ELEMENT), subjects, desktop]


def _allowed_pages() -> Any:
    """A command on a page has no control, so that a rule about names or roles lets none through."""
    found = []
    for rule in (
        {"id": "a", "url": "**/free/**"},
        {"id": "a", "url": "**/free/**", "name": "Go"},
        {"id": "a", "url": "**/free/**", "role": "link"},
        {"id": "a", "action": ["navigate", "back"]},
        {"id": "a", "window": "Free"},
        {"id": "a", "window": "Free", "url": "**/free/**", "action": "navigate"},
        *({"id": "a", key: "x"} for key in ("value", "upload", "download", "key")),
        {"id": "a", "destination": {"method": "GET"}},
    ):
        rules = compile_policy({"version": 1, "default": "deny", "allow": [rule]}, digest="x")
        for command in ("navigate", "back", "reload"):
            for url, title in (
                ("http://h/free/a", "Free"),
                ("http://h/free/", None),
                ("http://h/b", "Free"),
                ("x", "No"),
            ):
                window = WindowState("w1", title, "http://h/free/w", "d1") if title is not None else None
                subject = page_subject(command, {"url": url}, window)
                found.append([rule.get("id"), command, url, title, plain(decide(rules, subject))])
    return found


def _dispatches() -> dict[str, str]:
    """Every combination of what may be known of a dispatch."""
    dialog, found = Dialog("d1", "confirm", "?"), {}
    yes = (False, True)
    for end, reached, late, unsupported, sent, open_ in itertools.product(DispatchEnd, yes, yes, yes, yes, yes):
        for satisfied in (None, True, False):
            read = Verification(VerificationScope.ELEMENT_VALUE, "c", satisfied)
            events = ("pointerdown",) if sent else ()
            dispatch = Dispatch(
                end, reached, events, dialog=dialog if open_ else None, late=late, unsupported=unsupported
            )
            judged = judge_dispatch(dispatch, read)
            words = [str(judged.ok), judged.code, judged.kind, judged.delivery]
            name = f"{end} {reached:d}{late:d}{unsupported:d}{sent:d}{open_:d} {satisfied}"
            found[name] = " ".join(str(w) for w in words if w is not None)
    return found


SPELLED: dict[str, Callable[[], Any]] = {
    "fold": lambda: _texts(names.fold),
    "skeleton": lambda: _texts(names.skeleton),
    "readings": lambda: _texts(names.readings),
    "bare": lambda: _texts(names.bare),
    "tight": lambda: _texts(names.tight),
    "display": lambda: _texts(names.display),
    "look-alike": lambda: _texts(names.ascii_look_alike),
    "forms": lambda: _texts(lambda t: sorted({r for pairs in names.forms(t).values() for _, r in pairs})),
    "labels": lambda: _texts(
        lambda t: [[form, *(label for label, _ in pairs)] for form, pairs in names.forms(t).items()]
    ),
    "names": lambda: _patterns("of_name"),
    "plain names": lambda: _patterns("plainly"),
    "addresses": _urls,
    "spellings of addresses": lambda: {url: url_spellings(url) for url in URLS},
    "roles": lambda: {role: role_of(role) for role in ROLES},
    "keys": lambda: {key: key_of(key) for key in KEYS},
    "policies": _policies,
    "merged": _merged,
    "commands without an element": _without_element,
    "pages of an allow list": _allowed_pages,
    "dispatches": _dispatches,
    "requests": lambda: [request_json(RequestSeen("POST", "u", "causal", "answered", s)) for s in (None, 0, 200)],
    "deliveries": lambda: [
        [d.value, Disposition(d).as_json(), [strongest(d, e).value for e in Delivery]] for d in Delivery
    ],
    "tables": lambda: [
        [len(table), sorted(table)[:3], sum(ord(c) for target in table.values() for c in target)]
        for table in (prototype_table(), ascii_table())
    ],
}
