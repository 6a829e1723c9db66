"""Pointer, keys and pictures under X11, where the session is headed. The window's own log is the witness."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from desktop_rig import Desktop
from guarded_pages import GuardedPage
from linux_stage import LinuxStage

from deskcert_schema.vocabulary import Mode


@pytest_asyncio.fixture
async def stage(desktop: Desktop) -> AsyncIterator[LinuxStage]:
    opened = await LinuxStage.open(desktop, headed=True)
    yield opened
    await opened.close()


@pytest.fixture
def guarded(tmp_path: Path, stage: LinuxStage) -> GuardedPage:
    options = {"mode": Mode.HEADED, "timeout_ms": 5_000}
    return GuardedPage(tmp_path, stage.adapter, None, **options)  # type: ignore[arg-type]


async def test_a_physical_click_lands_on_the_element_and_says_that_it_was_physical(
    stage: LinuxStage, guarded: GuardedPage
) -> None:
    await guarded.look()
    clicked = await guarded("click", "Buy")
    assert clicked["ok"], clicked
    assert [step["mechanism"] for step in clicked["data"]["steps"]] == ["physical_synthetic"]
    assert await stage.until("buy")
    assert await stage.effects() == ["buy"]


async def test_what_another_window_covers_is_not_clicked(stage: LinuxStage, guarded: GuardedPage) -> None:
    await guarded.look()
    other = stage.desktop.window()  # without a window manager it comes to the same place, in front
    assert other.wait_for(lambda lines: "ready" in lines, 60)
    refused = await guarded("click", "Buy", timeout_ms=1_000)
    other.kill()
    assert refused["error"]["code"] == "TIMEOUT", refused
    checks = refused["error"]["details"]["last_report"]["checks"]
    assert [c["occluder"]["name"] for c in checks if "occluder" in c] == ["Orders"]
    assert await stage.effects() == []
    assert other.effects() == []


async def test_a_pointer_does_each_thing_that_it_is_asked_for(stage: LinuxStage, guarded: GuardedPage) -> None:
    await stage.do("pad")
    for command, args, effects in (
        ("hover", {}, ["over"]),
        ("double-click", {}, ["down LeftButton", "double LeftButton"]),
        ("right-click", {}, ["down RightButton"]),
        ("scroll", {"direction": "down", "amount": 2}, ["wheel down"] * 2),
        ("scroll", {"direction": "up", "amount": 1}, ["wheel up"]),
        ("triple-click", {}, ["down LeftButton", "double LeftButton", "down LeftButton"]),
    ):
        await guarded.look()
        before = len(await stage.effects())
        done = await guarded(command, "Pad", **args)
        assert done["ok"], (command, done)
        assert done["data"]["disposition"]["delivery"] == "delivered_unverified"
        assert [step["mechanism"] for step in done["data"]["steps"]] == ["physical_synthetic"]
        wanted = [f"pad {effect}" for effect in effects]
        assert await stage.count(before + len(wanted)), (command, await stage.effects())
        assert (await stage.effects())[before:] == wanted, command


async def test_keys_go_to_the_element_that_was_named(stage: LinuxStage, guarded: GuardedPage) -> None:
    await guarded.look()
    for key in ("a", "shift+b", "home", "delete"):
        pressed = await guarded("press", "Note", key=key)
        assert pressed["ok"], pressed
        assert [step["mechanism"] for step in pressed["data"]["steps"]] == ["physical_synthetic"]
    assert await stage.until("note B")
    assert await stage.effects() == ["note a", "note aB", "note B"]


async def test_a_picture_shows_the_window_with_the_target_framed(stage: LinuxStage, guarded: GuardedPage) -> None:
    await guarded.look(include_bounds=True)
    plain = await guarded.ask("screenshot")
    framed = await guarded.ask("screenshot", ref=guarded.nodes["Buy"]["ref_id"])
    assert (plain["data"]["outlined"], framed["data"]["outlined"]) == (False, True)
    width, height, before = pixels(plain["data"]["data"])
    _, _, after = pixels(framed["data"]["data"])
    changed = {i // 3 for i in range(0, len(before), 3) if before[i : i + 3] != after[i : i + 3]}
    box = guarded.nodes["Buy"]["bounds"]
    left, top = int(box["x"]), int(box["y"])
    right, bottom = left + int(box["width"]), top + int(box["height"])
    assert len(before) == width * height * 3
    assert changed
    for place in changed:
        x, y = place % width, place // width
        assert left - 3 <= x < right + 3
        assert top - 3 <= y < bottom + 3
        assert not (left <= x < right and top <= y < bottom)


def pixels(picture: str) -> tuple[int, int, bytes]:
    raw = base64.b64decode(picture)
    assert raw.startswith(b"\x89PNG\r\n\x1a\n")
    place, chunks = 8, dict[bytes, bytes]()
    while place < len(raw):
        (length,) = struct.unpack(">I", raw[place : place + 4])
        chunks[raw[place + 4 : place + 8]] = raw[place + 8 : place + 8 + length]
        place += length + 12
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = zlib.decompress(chunks[b"IDAT"])
    step = 1 + width * 3
    return width, height, b"".join(rows[i * step + 1 : (i + 1) * step] for i in range(height))
