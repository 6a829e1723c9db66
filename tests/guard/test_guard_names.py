"""(3) Names are compared as a person reads them: evasions are denied, ordinary names are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskcert.guard.confusables import prototype_table
from deskcert.guard.names import FORMS, display, fold, skeleton
from deskcert.guard.patterns import Match, TextPattern, UrlPattern
from deskcert_schema.errors import ConfigError

POLICIES = ["delete account", "Delete account", "DELETE ACCOUNT", "pay now", "Pay now", "send payout"]
GLOBS = ["*payout*", "delete account*", "*pay now*", "remove user ?"]
REGEXES = [r"^delete (my )?account$", r"\bpay\s?out\b", r"[0-9]{5,}", r"^pay now$", r"password"]
DENIED_BY_DESIGN = {
    "Pay out-of-pocket costs": r"\bpay\s?out\b",
    "Delete account history export": "delete account*",
    "Delete accounts list": "delete account*",
    "Pay Nowak": "*pay now*",
}
"""Ordinary, but what the rule says in so many words."""


def names() -> list[str]:
    lines = (Path(__file__).parent / "ordinary_names.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t")[0] for line in lines if not line.startswith("#")]


def hit(raw: object, name: str) -> Match:
    return TextPattern.read(raw, "deny[0].name").of_name(name).match


@pytest.mark.parametrize("raw", [*POLICIES, *({"glob": g} for g in GLOBS), *({"regex": r} for r in REGEXES)], ids=str)
def test_no_ordinary_name_is_denied(raw: object) -> None:
    source = raw if isinstance(raw, str) else next(iter(raw.values()))  # type: ignore[attr-defined]
    pattern = TextPattern.read(raw, "deny[0].name")
    denied = [n for n in names() if pattern.of_name(n).match is not Match.NO and DENIED_BY_DESIGN.get(n) != source]
    assert denied == []


def test_the_corpus_is_large_and_of_many_scripts() -> None:
    assert len(set(names())) >= 500
    assert len({ord(c) >> 8 for n in names() for c in n}) >= 29


EVASIONS = {
    "plain": "Delete account",
    "capitals": "DELETE ACCOUNT",
    "zero width space": "De\u200blete account",
    "zero width joiner and word joiner": "D\u200de\u2060lete account",
    "soft hyphen": "De\u00adlete account",
    "variation selector": "Delete\ufe0f account",
    "Hangul filler": "Del\u3164ete account",
    "tag characters": "Delete\U000e0041\U000e007f account",
    "control character": "De\u0007lete account",
    "Cyrillic e": "D\u0435lete account",
    "all Cyrillic that can be": "D\u0435l\u0435t\u0435 \u0430\u0441\u0441\u043eunt",
    "Greek o": "Delete acc\u03bfunt",
    "fullwidth": "\uff24\uff45\uff4c\uff45\uff54\uff45 account",
    "mathematical bold": "\U0001d403\U0001d41e\U0001d425\U0001d41e\U0001d42d\U0001d41e account",
    "no-break spaces": "DELETE\u00a0\u00a0account",
    "ideographic space and tab": "Delete\u3000\taccount",
    "Braille blank": "Delete\u2800account",
    "line break": "Delete\naccount",
    "right-to-left override": "\u202etnuocca eteleD\u202c",
    "override in an isolate": "\u2068\u202etnuocca eteleD\u202c\u2069",
    "override of one word": "\u202eeteleD\u202c account",
    "capital I for l": "DeIete account",
    "digit 1 for l": "De1ete account",
    "vertical bar for l": "De|ete account",
    "digit 0 for o": "Delete acc0unt",
    "Cherokee capitals": "\u13a0elete account",
    "strike-through": "D\u0336e\u0336l\u0336e\u0336t\u0336e\u0336 account",
    "letter spacing": "D e l e t e  account",
    "hair spaces": "D\u200ae\u200al\u200ae\u200at\u200ae account",
    "icon font glyph": "\ue925 Delete account",
    "one bold letter": "Delete \U0001d41account",
}


@pytest.mark.parametrize("name", EVASIONS.values(), ids=EVASIONS.keys())
@pytest.mark.parametrize(
    "raw", ["delete account", {"glob": "*lete acc*"}, {"regex": "^delete account$"}], ids=["exact", "glob", "regex"]
)
def test_r012_what_reads_as_forbidden_is_forbidden(raw: object, name: str) -> None:
    if raw == {"regex": "^delete account$"} and name.startswith("\ue925"):
        name = name[2:]  # anchored: an icon before the text is another text
    assert hit(raw, name) is Match.YES


@pytest.mark.parametrize(
    "name", ["5 \u03bcm speichern", "\u0394v berechnen", "Сохранить", "حفظ", "確認", "naïve façade"]
)
def test_r014_letters_of_other_scripts_alone_are_no_offence(name: str) -> None:
    assert hit("delete", name) is Match.NO
    assert hit("pay now", name) is Match.NO


@pytest.mark.parametrize("name", ["Remove user", "Rernove user", "rernove user", "REMOVE USER", "ReMove us\u0435r"])
@pytest.mark.parametrize("pattern", ["Remove user", "remove user", "REMOVE USER", "Rernove user"])
def test_a_pattern_that_contains_m_also_reads_rn(pattern: str, name: str) -> None:
    assert hit(pattern, name) is Match.YES


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("Remove", "REM0VE"),
        ("remove all", "REMOVE AlI"),
        ("invite", "lnvite"),
        ("Invite", "1nvite"),
        ("cancel invoice", "Cancel INVOlCE"),
        ("mail", "MAlL"),
        ("withdraw", "vvithdraw"),
        ("Withdraw", "VVithdraw"),
        ("D\u0435lete", "Delete"),
        ("(pay)", "\u202e(yap)\u202c"),
        ("שלום", "שלום"),
        ("Straße", "STRASSE"),
        ("iptal", "Iptal"),
    ],
)
def test_mixed_disguises(pattern: str, name: str) -> None:
    assert hit(pattern, name) is Match.YES


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("mail", "Mall"),
        ("mail", "MALL"),
        ("fail", "Fall"),
        ("delete", "Deleted"),
        ("pay", "Pay now"),
        ("bill", "Ball"),
    ],
)
def test_another_word_is_another_word(pattern: str, name: str) -> None:
    assert hit(pattern, name) is Match.NO


ORNAMENTED = [
    "\U0001f5d1\ufe0f Delete account",
    "Delete account \u25b8",
    "Delete account\u2026",
    "\u201cDelete account\u201d",
]


@pytest.mark.parametrize("raw", ["Delete account", {"glob": "delete accoun?"}], ids=str)
@pytest.mark.parametrize("name", [*ORNAMENTED, "D e l e t e a c c o u n t"])
def test_signs_around_a_name_and_blanks_between_all_letters_do_not_hide_it(raw: object, name: str) -> None:
    assert hit(raw, name) is Match.YES


@pytest.mark.parametrize(
    "name", ["Delete account?", "\u2605 Delete account \u2605 more", "D e l e t e", "\u2026", "Delete \u25b8"]
)
def test_signs_are_taken_off_at_the_ends_only_and_letters_joined_only_where_all_stand_alone(name: str) -> None:
    assert hit("Delete account", name) is Match.NO


def test_wildcards_stay_wildcards_in_every_form() -> None:
    assert hit({"glob": "*payout*"}, "Send p\u0430yout to 3 people") is Match.YES
    assert hit({"glob": "user ?"}, "User 7") is Match.YES
    assert hit({"glob": "user ?"}, "User 77") is Match.NO
    assert hit("pay*", "Payout") is Match.NO
    assert hit("pay*", "Pay*") is Match.YES


def test_a_regex_reads_digits_only_where_digits_are() -> None:
    assert hit({"regex": "[0-9]{4}"}, "4O1l") is Match.YES
    assert hit({"regex": "[0-9]{3}"}, "Hello Lolly") is Match.NO


def test_a_regex_that_takes_too_long_says_unknown() -> None:
    found = TextPattern.read({"regex": "^(a|a)*$"}, "deny[0]").of_name("a" * 40 + "!")
    assert found.match is Match.UNKNOWN
    assert "longer" in found.why


def test_fold_and_skeleton_reach_a_fixed_point() -> None:
    for name in [*names(), *EVASIONS.values()]:
        for form, apply in FORMS.items():
            once = apply(name)
            if form in ("fold", "skeleton", "deep"):
                assert apply(once) == once, (form, name)


def test_the_table_is_one_prototype_a_character() -> None:
    table = prototype_table()
    same = {"l": "I1|\u0406\u04c0", "O": "0\u041e\u039f", "a": "\u0430\u03b1", "rn": "m", "e": "\u0435", "p": "\u0440"}
    for prototype, characters in same.items():
        for char in characters:
            assert table[ord(char)] == prototype, char
    assert all(t.translate(table) == t for t in table.values())
    assert not any("\u200e" in t for t in table.values())


def test_display_is_the_order_on_the_screen() -> None:
    assert display("Delete") == ()
    assert fold(display("\u202etnuocca eteleD\u202c")[0]) == "delete account"
    isolated = "\u2067" + "\u202etnuocca\u202c" + "\u2069 \u2066\u202eeteleD\u202c\u2069"
    assert any("delete" in fold(shown) for shown in display(isolated))
    assert skeleton("\u202e") == ""


TURNED = {
    "an override": "\u202etnuocca eteled\u202c",
    "an override that is never ended": "\u202etnuocca eteled",
    "an override of each word, which turn their order too": "\u202etnuocca\u202c \u202eeteled\u202c",
    "an override in an isolate": "\u2066\u202etnuocca eteled\u202c\u2069",
    "an isolate inside an override": "\u202et\u2066n\u2069uocca eteled\u202c",
    "half of the word turned": "del\u202eete\u202c account",
    "left to right over what is left to right": "\u202ddelete account\u202c",
    "marks that turn nothing": "delete\u200e \u200eaccount\u200f",
    "isolates around the words": "\u2068delete\u2069 \u2068account\u2069",
}


@pytest.mark.parametrize("name", TURNED.values(), ids=TURNED)
def test_a_name_is_judged_in_the_order_in_which_it_is_read(name: str) -> None:
    assert hit("delete account", name) is Match.YES
    assert hit({"regex": "delete\\s+account"}, name) is Match.YES


@pytest.mark.parametrize(
    ("regex", "name"),
    [
        ("^delete", "D\u0435lete"),
        ("del[e3]te", "dеl3te"),
        ("pay\\s?now", "\u0440\u0430y now"),
        ("(remove|erase) all", "eras\u0435 \u0430ll"),
        ("[A-Z]{3}-1", "\u0410\u0412\u0421-1"),
        ("user 10", "user l0"),
    ],
)
def test_a_regex_reads_look_alikes(regex: str, name: str) -> None:
    assert hit({"regex": regex}, name) is Match.YES


@pytest.mark.parametrize("raw", ["", " ", "\u200b", {"glob": ""}, {"regex": "("}, {"glob": "a", "regex": "b"}, 3, None])
def test_a_pattern_that_could_never_match_is_refused(raw: object) -> None:
    with pytest.raises(ConfigError, match="deny\\[0\\]"):
        TextPattern.read(raw, "deny[0].name")


@pytest.mark.parametrize(
    ("glob", "url", "expected"),
    [
        ("**/payouts/**", "http://h/payouts/7", True),
        ("**/payouts/**", "http://h/payouts", True),
        ("**/payouts/**", "http://h/payouts?x=1#y", True),
        ("**/payouts/**", "http://h/p%61youts/7", True),
        ("**/payouts/**", "http://h//PAYOUTS//7", True),
        ("**/payouts/**", "http://h/payouts;jsessionid=1/7", True),
        ("**/payouts/**", "http://h/payoutsx/7", False),
        ("**/payouts/**", "http://h/orders?next=payouts", False),
        ("**/transfers", "http://h/a/transfers/", True),
        ("**/transfers", "http://h/transfers/7", False),
        ("http://h/*/edit", "http://h/7/edit", True),
        ("http://h/*/edit", "http://h/7/8/edit", False),
        ("**/find?q=*", "http://h/find?q=x", True),
        ("**/find?q=*", "http://h/findXq=x", False),
    ],
)
def test_url_globs(glob: str, url: str, expected: bool) -> None:
    assert (UrlPattern.read(glob, "deny[0].url").matches(url) is Match.YES) is expected
