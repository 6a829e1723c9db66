"""What is made of a toolkit's answers, three-valued. No desktop is needed."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from deskcert.adapters.base import Dispatch, DispatchEnd
from deskcert.adapters.linux.bus import ObjectRef
from deskcert.adapters.linux.facts import Facts, Toolkit, action_for, capabilities
from deskcert.adapters.linux.keys import _same_keys
from deskcert.adapters.linux.processes import process
from deskcert.adapters.linux.reading import box_of, state_bits
from deskcert.adapters.linux.tree import context_of, visibility
from deskcert.adapters.linux.walk import Branch
from deskcert.adapters.linux.words import State
from deskcert.contract.evidence import ABSENT, Known, Unknown
from deskcert.guard.delivery import judge_dispatch
from deskcert.guard.verification import NO_CLAIM
from deskcert_schema.disposition import Delivery
from deskcert_schema.vocabulary import Code

REF = ObjectRef(":1.7", "/x/1")
LATE = Unknown("late")
BUTTON, TEXT, PASSWORD, PANEL, CELL, DIALOG = 43, 61, 40, 39, 56, 16


def bits(*states: State) -> Known[int]:
    return Known(sum(1 << s for s in states))


SEEN = bits(State.SENSITIVE, State.SHOWING, State.VISIBLE)


def button(**more: object) -> Facts:
    return replace(Facts(REF, role=Known(BUTTON), states=SEEN, name=Known("Buy")), **more)  # type: ignore[arg-type]


def test_a_weaker_name_proves_nothing_where_a_stronger_one_could_not_be_read() -> None:
    assert button(name=LATE, label=Known("Buy")).accessible_name() == LATE
    assert button(name=Known("  "), label=LATE).accessible_name() == LATE
    assert button(name=Known(""), label=Known("Note")).accessible_name() == Known("Note")
    assert button(name=Known("New      ")).accessible_name() == Known("New")
    assert button(name=ABSENT).accessible_name() == ABSENT


def test_unread_states_are_neither_held_nor_not_held() -> None:
    facts = button(states=LATE)
    assert facts.enabled() == LATE
    assert not facts.gone
    assert visibility(facts, Known(True), Toolkit()).visible == LATE
    assert visibility(button(), LATE, Toolkit()).visible == LATE
    assert visibility(button(), Known(False), Toolkit()).visible == Known(False)
    assert button(role=ABSENT).gone
    assert button(states=bits(State.DEFUNCT)).gone


def test_gtk4_shows_only_windows_and_the_rest_by_visible() -> None:
    facts = button(states=bits(State.SENSITIVE, State.VISIBLE))
    assert visibility(facts, Known(True), Toolkit()).visible == Known(False)
    assert visibility(facts, Known(True), Toolkit(tells_showing=False)).visible == Known(True)


def test_an_action_is_chosen_by_its_name_never_by_its_place() -> None:
    assert action_for("click", button(actions=Known((("Set Focus", ""), ("Press", ""))))) == 1
    assert action_for("click", button(actions=Known((("clipboard.copy", ""), ("win.close", ""))))) is None
    assert action_for("click", button(actions=LATE)) is None
    cell = button(role=Known(CELL), actions=Known((("Edit", ""), ("Activate", ""))))
    assert action_for("click", cell) is None  # activating a row is a double click
    assert action_for("double-click", cell) == 1


def test_a_disabled_control_keeps_what_it_would_take() -> None:
    resting = button(states=bits(State.SHOWING, State.VISIBLE))
    assert "click" in capabilities(resting, Toolkit(), headed=False, in_selection=False)
    assert capabilities(button(role=LATE), Toolkit(), headed=True, in_selection=True) == ()


def test_a_secure_field_has_no_value_even_where_one_was_read() -> None:
    assert button(role=Known(PASSWORD), text=Known("hunter2")).value() == ABSENT
    assert button(role=Known(TEXT), text=LATE).value() == LATE


def test_context_is_labels_outermost_first() -> None:
    dialog = button(role=Known(DIALOG), name=Known("Sure?"))
    group = button(role=Known(PANEL), name=Known("Customer"))
    plain = button(role=Known(PANEL), name=Known(" "))
    assert context_of([group, plain, dialog], "Order 1") == (
        ("dialog", "Sure?"),
        ("group", "Customer"),
        ("row", "Order 1"),
    )
    assert Branch(group).labels() == []


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ((-(2**31), -(2**31), 1, 1), (0, 0, 0, 0)),
        ((-1, -1, -1, -1), (0, 0, 0, 0)),
        ((-5, 3, 10, 20), (-5, 3, 10, 20)),
    ],
)
def test_a_place_that_is_none_has_no_area(raw: tuple[int, ...], found: tuple[int, ...]) -> None:
    assert box_of(Known(raw)) == Known(found)
    assert box_of(LATE) == LATE


def test_states_come_in_two_words() -> None:
    assert state_bits([1 << 8, 1 << 9]) == (1 << State.ENABLED) | (1 << 41)


def test_a_binding_is_the_same_however_it_is_spelt() -> None:
    assert _same_keys("<Primary>s", "ctrl+s")
    assert _same_keys("Alt+Y", "alt+y")
    assert not _same_keys("<Alt>f:s", "alt+f")
    assert not _same_keys("<Primary><Shift>s", "ctrl+s")


def test_a_process_is_its_number_and_its_start() -> None:
    mine = process(os.getpid())
    assert mine is not None
    assert mine.alive
    assert not replace(mine, start=mine.start - 1).alive
    assert mine.generation(":1.7") == f":1.7#{mine.pid}@{mine.start}"
    assert process(2**22 + 7) is None


def test_what_a_platform_cannot_do_is_not_delivered_and_not_a_lost_component() -> None:
    found = judge_dispatch(Dispatch(DispatchEnd.NOT_SENT, reached=False, unsupported=True), NO_CLAIM)
    assert (found.ok, found.code, found.kind) == (False, Code.ACTION_NOT_SUPPORTED, None)
    assert found.delivery is Delivery.NOT_DELIVERED
    # An adapter that says both is not believed in the comfortable half.
    both = Dispatch(DispatchEnd.NOT_SENT, reached=True, unsupported=True)
    assert judge_dispatch(both, NO_CLAIM).delivery is Delivery.DELIVERED_UNVERIFIED
