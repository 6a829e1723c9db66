"""`deskcert replay --live`: each run again, on a fresh application of its own."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from deskcert.contract.shown import shown_json
from deskcert_schema.errors import HarnessError, UsageError

__all__ = ["replay_live", "replay_until"]


def replay_until(
    folders: Sequence[Path], seq: int, *, suite: str | None, allowed: Sequence[str], out: Path | None
) -> int:
    """Drive one run again as far as record `seq` and stop there: in a browser that can be seen where there is a screen,
    and as a picture and a tree in any case. 0 when the place was reached."""
    from deskcert.adapters.web.find_browser import find_browser
    from deskcert.replay.live import Until, drive

    if len(folders) != 1:
        raise UsageError("--until stops in one run: name one.")
    (folder,) = folders
    base = (Path(tempfile.mkdtemp(prefix="deskcert-until-")) if out is None else out).resolve()
    again = base / folder.name
    again.mkdir(parents=True, exist_ok=True)
    try:
        find_browser(os.environ, headed=True)
        headed = True
    except HarnessError as exc:
        headed = False
        click.echo(f"not visible: {exc}", err=True)
    held = headed and sys.stdin.isatty()
    picture, tree, release = again / f"until-{seq}.png", again / f"until-{seq}.txt", again / "release"
    if held:
        click.echo(f"Stopping at record {seq}. Press Enter to go on from there and end.", err=True)
        threading.Thread(target=_let_go, args=(release,), daemon=True).start()
    done = drive(
        folder,
        again,
        suite=suite,
        allowed=allowed,
        until=Until(seq, headed, picture, tree, release if held else None),
    )
    for note in done.notes:
        click.echo(f"note: {note}")
    if not picture.is_file():
        click.echo(f"record {seq} was not reached; the new run is {done.again}", err=True)
        return 1
    click.echo(f"as of record {seq}: picture {picture}, tree {tree}; the new run is {done.again}")
    return 0


def _let_go(release: Path) -> None:
    sys.stdin.readline()
    release.touch()


def replay_live(
    folders: Sequence[Path],
    *,
    suite: str | None,
    allowed: Sequence[str],
    offline: bool,
    out: Path | None,
    as_json: bool,
) -> int:
    """0 where every run came out the same, 1 otherwise. Without `out` the new runs go into a temporary folder."""
    from deskcert.replay.live import drive
    from deskcert.replay.offline import drive_offline, tape_of

    base = Path(tempfile.mkdtemp(prefix="deskcert-live-")) if out is None else out
    unlike = 0
    for folder in folders:
        if offline:
            done = drive_offline(folder, base / folder.name, tape=tape_of(folder))
        else:
            done = drive(folder, base / folder.name, suite=suite, allowed=allowed)
        unlike += bool(done.differences)
        if as_json:
            told = {"run": folder.name, "again": str(done.again), "notes": list(done.notes)}
            click.echo(shown_json(told | {"differences": [d.as_json() for d in done.differences]}))
            continue
        _show(folder, done)
    if not as_json:
        same = len(folders) - unlike
        click.echo(f"{same} of {len(folders)} came out as recorded; the new runs are in {base}")
    return 1 if unlike else 0


def _show(folder: Path, done: object) -> None:
    from deskcert.replay.live import Outcome
    from deskcert.report.visible import visible

    assert isinstance(done, Outcome)
    click.echo(f"{visible(folder.name)}: {'as recorded' if not done.differences else 'otherwise'}")
    for note in done.notes:
        click.echo(f"  note: {visible(note)}")
    for d in done.differences:
        click.secho(f"  record {d.seq}: {visible(d.what)}", bold=True)
        click.secho(f"    - {visible(d.recorded)}", fg="red")
        click.secho(f"    + {visible(d.now)}", fg="green")
        if d.why:
            click.echo(f"    why: {visible(d.why)}")
