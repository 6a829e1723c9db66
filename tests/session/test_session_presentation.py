"""How a snapshot is shown: nested, compact, limited; the numbers are the same in every form."""

from __future__ import annotations

import json
import re

from guarded_world import walk

from deskcert.adapters.base import WindowState
from deskcert.session.presentation import Display, nested, shown_within, text_form
from deskcert.session.snapshots import Snapshot, numbered

PAGE = [
    {"d": 0, "role": "main", "name": "Orders"},
    {"d": 1, "role": "group"},
    {"d": 2, "role": "generic"},
    {
        "d": 3,
        "node": "n1",
        "role": "button",
        "name": "Approve",
        "actions": ["click", "press"],
        "box": [1500, 0, 90000, 24000],
    },
    {"d": 4, "role": "statictext", "text": "Approve"},
    {"d": 1, "role": "statictext", "text": 'says "hi"\nand more'},
    {"d": 1, "node": "n2", "role": "textbox", "name": "Note", "value": "draft", "states": ["editable", "required"]},
    {"d": 1, "node": "n3", "role": "textbox", "name": "Pin", "value": "1234", "states": ["secure"]},
    {"d": 1, "role": "group", "name": {"unknown": "no answer"}, "truncated": True},
    {"d": 1, "node": "n4", "role": "region", "name": "Map", "actions": ["focus"]},
    {"d": 1, "role": "iframe", "opaque": True},
]


def _snapshot(nodes=PAGE) -> Snapshot:
    found, count = numbered(nodes)
    return Snapshot("s1a2b", 3, WindowState("w", "Orders", "http://app/", "d1"), found, count, complete=False)


def _refs(tree) -> dict[str, str]:
    return {n["ref_id"]: n.get("name", "") for n in walk(tree) if "ref_id" in n}


def test_refs_go_to_what_can_be_acted_on_and_focus_alone_is_not_enough() -> None:
    assert list(_refs(nested(_snapshot(), Display())).values()) == ["Approve", "Note", "Pin"]


def test_what_cannot_be_retained_gets_no_ref() -> None:
    _, count = numbered(
        [{"d": 0, "role": "button", "name": "A"}, {"d": 0, "role": "button", "node": "n", "opaque": True}]
    )
    assert count == 0


def test_every_display_shows_the_same_numbers() -> None:
    whole = _refs(nested(_snapshot(), Display()))
    for display in (Display(interactive_only=True), Display(compact=True), Display(include_bounds=True)):
        assert _refs(nested(_snapshot(), display)) == whole
    assert _refs(nested(_snapshot(), Display(max_depth=1))).items() <= whole.items()
    in_text = re.findall(r"^ *(?:button|textbox) \"(\w+)\".* e(\d+)$", text_form(_snapshot(), Display()), re.MULTILINE)
    assert {f"@s1a2b:e{n}": name for name, n in in_text} == whole


def test_unknown_and_secure_and_cut_are_said() -> None:
    nodes = list(walk(nested(_snapshot(), Display())))
    by_name = {n.get("name"): n for n in nodes}
    assert "value" not in by_name["Pin"]
    assert "1234" not in json.dumps(nodes) + text_form(_snapshot(), Display())
    cut = next(n for n in nodes if n.get("unknown"))
    assert (cut["unknown"], cut["subtree_truncated"], "name" in cut) == (["name"], True, False)
    assert next(n for n in nodes if n["role"] == "iframe")["opaque"] is True


def test_a_depth_limit_marks_what_it_cut() -> None:
    tree = nested(_snapshot(), Display(max_depth=1))
    group = next(n for n in walk(tree) if n["role"] == "group")
    assert (group["children"], group["children_count"], group["subtree_truncated"]) == ([], 1, True)


def test_interactive_only_leaves_out_branches_without_a_ref_and_compact_what_says_nothing() -> None:
    roles = [n["role"] for n in walk(nested(_snapshot(), Display(interactive_only=True)))]
    assert roles == ["main", "group", "generic", "button", "textbox", "textbox", "group"]
    roles = [n["role"] for n in walk(nested(_snapshot(), Display(compact=True)))]
    assert roles == ["main", "button", "statictext", "textbox", "textbox", "group", "region", "iframe"]


def test_bounds_are_in_pixels_and_only_on_request() -> None:
    plain, asked = (
        next(n for n in walk(nested(_snapshot(), Display(include_bounds=b))) if n["role"] == "button")
        for b in (False, True)
    )
    assert "bounds" not in plain
    assert asked["bounds"] == {"x": 1.5, "y": 0, "width": 90, "height": 24}


def test_the_text_form_is_one_line_a_node_whatever_a_name_holds() -> None:
    assert text_form(_snapshot(), Display()).splitlines() == [
        '@s1a2b "Orders" INCOMPLETE',
        'main "Orders"',
        '  button "Approve" e1',
        '  "says \\"hi\\"\\nand more"',
        '  textbox "Note" [required] = "draft" e2',
        '  textbox "Pin" [secure] e3',
        "  group (unknown) … not read further",
        '  region "Map"',
        "  iframe … not read further",
    ]


def test_several_roots_of_any_depth_stand_side_by_side() -> None:
    nodes = [{"d": 1, "node": f"n{i}", "role": "button", "name": str(i)} for i in range(3)]
    tree = nested(_snapshot(nodes), Display())
    assert (tree["role"], [c["name"] for c in tree["children"]]) == ("window", ["0", "1", "2"])


def test_an_answer_fits_a_line_and_says_what_it_left_out() -> None:
    rows = [{"d": 1, "role": "cell", "name": f"a long cell number {i} " + "x" * 100} for i in range(9000)]
    buttons = [{"d": 1, "node": f"n{i}", "role": "button", "name": f"B{i}"} for i in range(50)]
    snapshot = _snapshot([{"d": 0, "role": "main"}, *rows, *buttons])
    tree, text, cut = shown_within(snapshot, Display())
    assert cut
    assert tree["subtree_truncated"] is True
    assert (
        len(json.dumps(tree, ensure_ascii=False).encode()) + len(json.dumps(text, ensure_ascii=False).encode())
        < 1 << 20
    )
    tree, text, cut = shown_within(_snapshot([{"d": 0, "role": "main"}, *rows[:10], *buttons]), Display())
    assert not cut
    assert len(_refs(tree)) == 50
