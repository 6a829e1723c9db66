"""Programs that none of us wrote, from Debian's packages: observed, acted on, judged by their own files and output."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from desktop_rig import Desktop, Program
from guarded_pages import GuardedPage, walk
from web_pages import Witness

from deskcert.adapters.base import ObserveOptions
from deskcert.adapters.linux import AppSelector, LinuxAdapter, words
from deskcert.adapters.linux.bus import Answered, Deadline
from deskcert.adapters.linux.tree import ref_of
from deskcert.contract.evidence import Known

WAIT_MS = 30_000


@asynccontextmanager
async def running(desktop: Desktop, folder: Path, *command: str) -> AsyncIterator[tuple[Program, GuardedPage]]:
    """The program, and a guarded session on it."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed: see .ci/run")
    program = desktop.start(*command)
    adapter = await LinuxAdapter.open(
        AppSelector(pid=program.pid), bus_address=desktop.bus, display=desktop.display, wait_ms=WAIT_MS
    )
    try:
        yield program, GuardedPage(folder, adapter, None, timeout_ms=5_000)  # type: ignore[arg-type]
    finally:
        await adapter.close()
        program.go()
        program.kill()


async def until(look: Callable[[], Any], good: Callable[[Any], Any] = bool, seconds: float = 20) -> Any:
    """What `look` gives, once it is good. Nothing tells when a program's file or window has changed."""
    async with asyncio.timeout(seconds):
        for pause in itertools.chain((0.0,), itertools.repeat(0.05)):
            await asyncio.sleep(pause)
            found = look()
            found = await found if inspect.isawaitable(found) else found
            if good(found):
                return found
    raise AssertionError("unreachable")


async def seen(page: GuardedPage, name: str, *, there: bool = True) -> Any:
    """Looks until something called so can be seen, or cannot be any more."""

    async def shown() -> dict[str, Any] | None:
        await page.look()
        node = page.nodes.get(name)
        return None if node is None or "hidden" in node.get("states", ()) else node

    return await until(shown, lambda node: (node is not None) is there)


def may_have_gone(answer: dict[str, Any]) -> bool:
    """A program that ends at a click may do so before it has answered: then nobody can say that it acted."""
    if answer["ok"]:
        return True
    return bool(answer["error"]["disposition"] == {"delivery": "delivery_uncertain", "retry": "never_automatic"})


def by_role(data: dict[str, Any], role: str) -> dict[str, Any]:
    found = [n for n in walk(data["tree"]) if n["role"] == role and "ref_id" in n and "hidden" not in n["states"]]
    assert len(found) == 1, found
    return found[0]


async def test_a_text_is_edited_and_saved_through_the_menu_of_a_text_editor(desktop: Desktop, tmp_path: Path) -> None:
    file = desktop.home / "letter.txt"
    file.write_text("before\n")
    async with running(desktop, tmp_path, "mousepad", str(file)) as (_, page):
        field = by_role(await page.look(), "textbox")
        written = await page.ask("set-value", ref=field["ref_id"], value="Dear Jürgen,\n漢字 too.\n")
        assert written["data"]["disposition"]["delivery"] == "delivered_verified"
        assert file.read_text() == "before\n"
        title = (await page.adapter.window()).title
        assert title.startswith("*")
        # Closed, a menu's entries are there and would answer: nobody could see them.
        await page.look()
        hidden = await page("click", "Save", timeout_ms=0)
        assert hidden["error"]["code"] == "TIMEOUT"
        assert (await page("click", "File"))["ok"]
        await seen(page, "Save")
        assert (await page("click", "Save"))["data"]["disposition"]["delivery"] == "delivered_unverified"
        assert await until(lambda: file.read_text() == "Dear Jürgen,\n漢字 too.\n")
        assert not (await page.adapter.window()).title.startswith("*")


async def test_a_dialog_that_was_closed_still_answers_and_is_not_acted_on(desktop: Desktop, tmp_path: Path) -> None:
    async with running(desktop, tmp_path, "mousepad", str(desktop.home / "other.txt")) as (_, page):
        await page.look()
        assert (await page("click", "Help"))["ok"]
        await seen(page, "About")
        assert (await page("click", "About"))["ok"]
        button = await seen(page, "Close")
        old = button["ref_id"]
        closed = await page.ask("click", ref=old)
        assert closed["ok"], closed

        await seen(page, "Close", there=False)
        refused = await page.ask("click", ref=old, timeout_ms=0)
        assert refused["error"]["code"] in ("TIMEOUT", "STALE_REF")
        assert refused["error"]["disposition"]["delivery"] == "not_delivered"


async def test_a_calculator_calculates(desktop: Desktop, tmp_path: Path) -> None:
    async with running(desktop, tmp_path, "gnome-calculator") as (_, page):
        # GTK 4 doubles the name of a button with a label inside.
        for name in ("7 7", "× ×", "6 6", "= ="):
            await page.look()
            answer = await page("click", name if name in page.nodes else name.split()[0])
            assert answer["ok"], (name, answer)
        field = next(
            n for n in walk((await page.look())["tree"]) if n["role"] == "textbox" and "editable" in n["states"]
        )
        wanted = {"ref": field["ref_id"], "property": "value"}
        assert await until(lambda: page.ask("get", **wanted), lambda answer: answer["data"].get("value") == "42")


async def test_an_entry_dialog_gives_back_what_was_set_and_its_end_is_seen(desktop: Desktop, tmp_path: Path) -> None:
    async with running(desktop, tmp_path, "zenity", "--entry", "--title=Name", "--text=Who?") as (program, page):
        field = by_role(await page.look(), "textbox")
        await page.ask("set-value", ref=field["ref_id"], value="Jürgen 漢")
        typed = await page.ask("type", ref=field["ref_id"], text=" und Söhne")
        assert typed["data"]["disposition"]["delivery"] == "delivered_verified", typed
        ok = page.nodes["OK"]["ref_id"]
        assert may_have_gone(await page.ask("click", ref=ok))
        assert await asyncio.to_thread(program.process.wait, 20) == 0
        assert await asyncio.to_thread(program.wait_for, lambda lines: "Jürgen 漢 und Söhne" in lines)
        again = await page.ask("click", ref=ok)
        assert (again["error"]["code"], again["error"]["disposition"]["delivery"]) == ("STALE_REF", "not_delivered")
        look = await page.ask("snapshot")
        assert look["error"]["code"] == "APP_UNRESPONSIVE"


async def test_a_file_is_chosen_in_the_toolkits_own_file_dialog(desktop: Desktop, tmp_path: Path) -> None:
    for name in ("alpha.txt", "beta.txt"):
        (desktop.home / name).write_text(name)
    command = ("zenity", "--file-selection", f"--filename={desktop.home}/")
    async with running(desktop, tmp_path, *command) as (program, page):
        await seen(page, "beta.txt")
        chosen = await page("click", "beta.txt")
        assert chosen["ok"], chosen
        await page.look()
        assert may_have_gone(await page("click", "Open" if "Open" in page.nodes else "OK"))
        assert await asyncio.to_thread(program.process.wait, 20) == 0
        assert await asyncio.to_thread(program.wait_for, lambda lines: f"{desktop.home}/beta.txt" in lines)


async def test_rows_that_the_toolkits_cache_leaves_out_are_found(desktop: Desktop, tmp_path: Path) -> None:
    rows = [f"row {i}" for i in range(120)]
    command = ("zenity", "--list", "--column=Entry", "--height=400", *rows)
    async with running(desktop, tmp_path, *command) as (_, page):
        adapter = page.adapter
        assert isinstance(adapter, LinuxAdapter)
        observation = await adapter.observe(ObserveOptions(budget_ms=20_000))
        found = [n.get("name") for n in observation.nodes if n["role"] == "cell"]
        assert found == rows
        assert observation.complete
        source = adapter._app.root._replace(path="/org/a11y/atspi/cache")
        cached = await adapter._bus.ask(source, "org.a11y.atspi.Cache", "GetItems", Deadline(5_000))
        assert isinstance(cached, Known)
        assert not {str(item[6]) for item in cached.value} & set(rows)


async def test_a_closed_menus_entry_would_act_if_it_were_asked_past_the_guard(desktop: Desktop, tmp_path: Path) -> None:
    """The premise of the hidden ones' refusal: GTK 3 itself does not mind."""
    file = desktop.home / "past.txt"
    async with running(desktop, tmp_path, "mousepad", str(file)) as (_, page):
        field = by_role(await page.look(), "textbox")
        await page.ask("set-value", ref=field["ref_id"], value="written")
        seen_now = await page.adapter.observe(ObserveOptions())
        save = next(n for n in seen_now.nodes if n.get("name") == "Save" and n["role"] == "menuitem")
        assert "hidden" in save["states"]
        adapter: Any = page.adapter
        ref = ref_of(save["node"], adapter._app)
        answer = await adapter._bus.send(ref, words.ACTION, "DoAction", Deadline(5_000), signature="i", body=[0])
        assert answer == Answered((True,))
        assert await until(lambda: file.exists() and file.read_text() == "written")


PAGE = """<!doctype html><title>Till</title><h1>Till</h1>
<script>const tell = what => fetch('/hit?' + what, {method: 'POST', keepalive: true});</script>
<button onclick="tell('pay'); this.textContent = 'Paid'">Pay</button>
<label>Name <input onchange="tell('name=' + encodeURIComponent(value))"></label>
<label><input type=checkbox onchange="tell('gift=' + checked)"> Gift</label>
<label>Secret <input type=password value=hunter2></label>
<details ontoggle="fetch('/hit?open='+this.open,{method:'POST'})"><summary>More</summary>Much more</details>
<div style="height:3000px"></div><button onclick="this.textContent='Seen at '+(scrollY>0)">Far</button>"""


async def test_a_whole_chromium_is_read_and_acted_on_through_the_desktop(
    desktop: Desktop, tmp_path: Path, witness: Witness
) -> None:
    witness.pages["/page"] = PAGE
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    flags = ("--no-sandbox", "--no-first-run", "--disable-gpu", "--force-renderer-accessibility", profile)
    async with running(desktop, tmp_path, "chromium", *flags, f"--app={witness.url}/page") as (_, page):
        await seen(page, "Pay")
        shown = await page.look(budget_ms=10_000)
        assert "hunter2" not in repr(shown)
        old = page.nodes["Pay"]["ref_id"]
        clicked = await page("click", "Pay")
        assert clicked["ok"], str(clicked)[:900]
        assert await asyncio.to_thread(witness.wait_for, lambda log: ("POST", "/hit?pay", "") in log)
        await seen(page, "Paid")
        assert (await page.ask("click", ref=old))["error"]["code"] == "STALE_REF"
        ticked = await page("check", "Gift")
        assert ticked["data"]["disposition"]["delivery"] == "delivered_verified", ticked
        assert await asyncio.to_thread(witness.wait_for, lambda log: ("POST", "/hit?gift=true", "") in log)
        opened = await page("expand", "More")
        assert opened["data"]["verification"]["claim"] == "expanded is true", opened
        assert opened["data"]["disposition"]["delivery"] == "delivered_verified", opened
        closed = await page("collapse", "More")
        assert closed["data"]["disposition"]["delivery"] == "delivered_verified", closed
        there = await page("scroll-to", "Far")
        assert there["ok"], there
        assert (await page("click", "Far"))["ok"]
        await seen(page, "Seen at true")
        opens = [("POST", f"/hit?open={is_}", "") for is_ in ("true", "false")]
        assert witness.wrote() == [("POST", "/hit?pay", ""), ("POST", "/hit?gift=true", ""), *opens]
