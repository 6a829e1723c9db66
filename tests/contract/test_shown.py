"""What a page says is nothing for a terminal, a reader's eye or a model to obey."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskcert.contract.shown import shown_json, shown_text

OBEYED = {
    "an escape sequence": "\x1b[31m",
    "the same in one character": "\x9b31m",
    "a bell, a backspace, a carriage return": "\x07\x08\r",
    "delete": "\x7f",
    "an override of the direction": "\u202egnp.exe",
    "an isolate": "\u2067x\u2069",
    "separators that end a line of some readers": "\u2028\u2029\x85",
    "what nobody sees": "\u200b\u2060\ufeff\xad",
    "tags that repeat ASCII unseen": "\U000e0049\U000e0067",
    "half a pair": "\ud800",
}


@pytest.mark.parametrize("text", OBEYED.values(), ids=OBEYED)
def test_it_is_escaped_and_read_back_the_same(text: str) -> None:
    told = shown_json({"name": text})
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in told)
    assert json.loads(told) == {"name": text}
    assert not set(text) & set(shown_text(text)) - set("[31mx.gnpe")


@pytest.mark.parametrize("name", ["Überweisung 3 €", "می\u200cخواهم", "क\u094d\u200dष", "👩\u200d💻", "確認", "שמור"])
def test_what_people_write_stays_as_it_is(name: str) -> None:
    assert shown_json(name) == f'"{name}"'


@given(st.text())
def test_every_text_comes_back(text: str) -> None:
    assert json.loads(shown_json([text])) == [text]
