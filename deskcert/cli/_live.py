"""`deskcert replay --live`: each run again, on a fresh application of its own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

__all__ = ["replay_live"]


def replay_live(folders: Sequence[Path], *, suite: str | None, out: Path | None, as_json: bool) -> int:
    """0 where every run came out the same, 1 otherwise. Without `out` the new runs go into a temporary folder."""
    from deskcert.replay.live import drive

    base = Path(tempfile.mkdtemp(prefix="deskcert-live-")) if out is None else out
    unlike = 0
    for folder in folders:
        done = drive(folder, base / folder.name, suite=suite)
        unlike += bool(done.differences)
        if as_json:
            told = {"run": folder.name, "again": str(done.again), "notes": list(done.notes)}
            click.echo(json.dumps(told | {"differences": [d.as_json() for d in done.differences]}, ensure_ascii=False))
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
