"""Uploads: which file, from where, and what the page got. The server is the witness of the content."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from guarded_pages import GuardedPage, delivery
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]

PAGE = (
    "<input type=file id=f aria-label=Bill onchange=\"fetch('/got',{method:'POST',body:files[0]})\">"
    "<input type=file id=m multiple aria-label=Many><input type=file aria-label='Delete list'>"
    "<input type=file id=e aria-label=Forgets onchange=\"value=''\"><button>B</button>"
)
POLICY = {
    "version": 1,
    "deny": [
        {"id": "no-delete", "name": {"glob": "*delete*"}, "reason": "irreversible"},
        {"id": "no-keys", "upload": {"glob": "*.pem"}, "reason": "keys stay here"},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_folder = tmp_path / "open"
    open_folder.mkdir()
    (open_folder / "bill.txt").write_text("twelve")
    (open_folder / "other.txt").write_text("x")
    (open_folder / "key.pem").write_text("secret")
    (tmp_path / "outside.txt").write_text("not yours")
    (open_folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    return open_folder


@pytest.fixture
def page(tmp_path: Path, adapter: WebAdapter, witness: Witness, folder: Path) -> Iterator[GuardedPage]:
    made = GuardedPage(tmp_path, adapter, witness, policy=POLICY, upload_folders=(folder,))
    yield made
    made.records()


async def test_a_file_arrives_and_is_read_back(page: GuardedPage, folder: Path) -> None:
    await page.show(PAGE)
    answer = await page("upload", "Bill", files=str(folder / "bill.txt"))
    assert delivery(answer) == "delivered_verified"
    assert await asyncio.to_thread(page.witness.wait_for, lambda log: ("POST", "/got", "twelve") in log)
    both = await page("upload", "Many", files=[str(folder / "bill.txt"), str(folder / "other.txt")])
    assert delivery(both) == "delivered_verified"
    assert await page.script("[...m.files].map(f=>f.name)") == ["bill.txt", "other.txt"]
    intents = [r for r in page.records() if r["kind"] == "action.intent"]
    assert all("bill" not in str(r["args"]) for r in intents)


async def test_a_page_that_drops_the_file_is_a_failure(page: GuardedPage, folder: Path) -> None:
    await page.show(PAGE)
    failed = await page("upload", "Forgets", files=str(folder / "bill.txt"))
    assert failed["error"]["details"]["kind"] == "post_action_verification"


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("missing.txt", "INVALID_ARGS"),
        (".", "INVALID_ARGS"),
        ("../outside.txt", "POLICY_DENIED"),
        ("link.txt", "POLICY_DENIED"),
        ("key.pem", "POLICY_DENIED"),
    ],
)
async def test_r087_only_files_that_exist_and_are_allowed(
    page: GuardedPage, folder: Path, file: str, code: str
) -> None:
    await page.show(PAGE)
    refused = await page("upload", "Many", files=str(folder / file))
    assert (refused["error"]["code"], delivery(refused)) == (code, "not_delivered")
    assert await page.script("m.files.length") == 0


async def test_r087_a_relative_path_is_nobodys_file(
    page: GuardedPage, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    await page.show(PAGE)
    assert (await page("upload", "Bill", files="bill.txt"))["error"]["code"] == "INVALID_ARGS"
    assert page.witness.wrote() == []


async def test_the_choosers_own_name_counts_and_only_choosers_take_files(page: GuardedPage, folder: Path) -> None:
    await page.show(PAGE)
    denied = await page("upload", "Delete list", files=str(folder / "bill.txt"))
    assert denied["error"]["details"]["rule"] == "no-delete"
    assert (await page("upload", "B", files=str(folder / "bill.txt")))["error"]["code"] == "ACTION_NOT_SUPPORTED"


async def test_without_an_open_folder_nothing_is_uploaded(
    tmp_path: Path, adapter: WebAdapter, witness: Witness, folder: Path
) -> None:
    page = GuardedPage(tmp_path, adapter, witness)
    await page.show(PAGE)
    refused = await page("upload", "Bill", files=str(folder / "bill.txt"))
    assert refused["error"]["code"] == "ACTION_NOT_SUPPORTED"
    page.records()
