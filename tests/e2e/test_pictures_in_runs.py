"""Pictures as evidence: each belongs to a record, shows the target outlined and no field, and decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_campaigns import Campaign, Certify, of_kind, records, run_deskcert

from deskcert.session.pictures import fields_of
from deskcert_ledger import load_blob
from deskcert_schema.errors import AdapterError

pytestmark = pytest.mark.web

MASK = [0x8A, 0x8F, 0x98]
FRAME = [0xFF, 0x00, 0xAA]
READ = """async ([data, points]) => {
  const picture = await createImageBitmap(await (await fetch('data:image/png;base64,' + data)).blob());
  const pen = new OffscreenCanvas(picture.width, picture.height).getContext('2d');
  pen.drawImage(picture, 0, 0);
  return points.map(([x, y]) => [...pen.getImageData(x, y, 1, 1).data].slice(0, 3));
}"""


@pytest.fixture(scope="module")
def pictured(certify: Certify) -> Campaign:
    only = ("--suite", "builtin:core", "--only", "payout-send-refused")
    return certify("--agent", "builtin:boundary_prober", *only, "--screenshots", "all")


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    from deskcert.adapters.web.find_browser import find_browser

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def colours(page: Any, run: Path, picture: dict[str, Any], points: list[list[float]]) -> list[list[int]]:
    found: list[list[int]] = page.evaluate(READ, [load_blob(run, picture["image"])["data"], points])
    return found


def middle(box: list[int]) -> list[float]:
    x, y, width, height = (value / 1000 for value in box)
    return [x + width / 2, y + height / 2]


def test_each_act_has_its_picture_and_fields_are_masked_in_all(pictured: Campaign, page: Any) -> None:
    (run,) = pictured.runs
    pictures = {r["of"]: r for r in of_kind(run, "picture")}
    acts = [r for r in records(run) if r["kind"] in {"action.intent", "action.denied", "action.refused"}]
    assert acts
    assert {r["seq"] for r in acts} <= set(pictures)
    typed = next(r for r in acts if r["command"] == "set-value")
    clicks = [r for r in acts if r["command"] == "click" and r["kind"] == "action.denied"]
    for act in [typed, *clicks]:
        box = act["evidence"]["box"]
        edge = [box[0] / 1000 - 2, middle(box)[1]]
        where = [middle(typed["evidence"]["box"]), edge]
        assert colours(page, run, pictures[act["seq"]], where) == [MASK, FRAME]
    # What was typed stands in no picture: every part of the field is painted over.
    x, y, width, height = (value / 1000 for value in typed["evidence"]["box"])
    inside = [[x + width * i / 40, y + height * j / 8] for i in range(1, 40) for j in range(1, 8)]
    assert {tuple(c) for c in colours(page, run, pictures[clicks[0]["seq"]], inside)} == {tuple(MASK)}


def test_a_run_with_pictures_verifies_and_is_decided_again_the_same(pictured: Campaign) -> None:
    (run,) = pictured.runs
    assert run_deskcert("ledger", "verify", str(run), cwd=pictured.cwd).returncode == 0
    assert run_deskcert("replay", str(run), cwd=pictured.cwd).returncode == 0


def test_the_report_shows_what_the_window_showed(pictured: Campaign, page: Any) -> None:
    (run,) = pictured.runs
    denied = of_kind(run, "action.denied")[0]["seq"]
    done = run_deskcert("report", str(pictured.out), "-o", "report.html", cwd=pictured.cwd)
    assert done.returncode == 0, done.stderr
    page.goto(f"{(pictured.cwd / 'report.html').as_uri()}#run=0&seq={denied}")
    page.wait_for_selector("img.shown")
    page.wait_for_function("() => document.querySelector('img.shown').naturalWidth > 300")


def test_a_case_carries_the_picture_of_its_record(pictured: Campaign) -> None:
    (run,) = pictured.runs
    denied = of_kind(run, "action.denied")[0]["seq"]
    picture = next(r for r in of_kind(run, "picture") if r["of"] == denied)
    done = run_deskcert("case", str(run), str(denied), "-o", "case.zip", cwd=pictured.cwd)
    assert done.returncode == 0, done.stderr
    import zipfile

    with zipfile.ZipFile(pictured.cwd / "case.zip") as case:
        assert f"blobs/{picture['image']['blob']}" in case.namelist()
        assert picture["seq"] in json.loads(case.read("case.json"))["records"]


def test_no_picture_is_taken_unless_asked_for(certify: Certify) -> None:
    plain = certify("--agent", "builtin:careful", "--suite", "builtin:core", "--only", "orders-approve-twin")
    assert of_kind(plain.runs[0], "picture") == []


FIELD = {"role": "textbox", "states": ["editable"], "box": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("nodes", "masks"),
    [
        ([{"d": 0, "role": "button", "states": [], "box": [9, 9, 9, 9]}], []),
        ([{"d": 0, **FIELD}], [(1, 2, 3, 4)]),
        ([{"d": 0, "role": "iframe", "box": [5, 6, 7, 8]}, {"d": 1, **FIELD}, {"d": 1, **FIELD}], [(5, 6, 7, 8)]),
        ([{"d": 0, "role": "iframe", "box": [5, 6, 7, 8]}, {"d": 0, **FIELD}], [(1, 2, 3, 4)]),
        ([{"d": 0, "role": "generic", "states": {"unknown": "why"}, "box": [1, 1, 1, 1]}], [(1, 1, 1, 1)]),
    ],
)
def test_fields_are_masked_and_a_frame_with_fields_as_a_whole(nodes: list[Any], masks: list[Any]) -> None:
    assert list(fields_of(nodes)) == masks


def test_a_field_at_an_unknown_place_means_no_picture() -> None:
    with pytest.raises(AdapterError, match="which part of the page"):
        list(fields_of([{"d": 0, "role": "textbox", "states": ["editable"]}]))
