"""`deskcert merge`: the shards of one certification, put together and decided."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import click

from deskcert.cli._reports import report_options
from deskcert.cli._shared import fresh_out, pins_for, say
from deskcert_schema.errors import UsageError

__all__ = ["merge", "merged"]


@click.command(
    epilog="""\b
Examples:
  deskcert merge shard-1 shard-2 shard-3 --out merged
  deskcert merge shards/* --out merged --junit junit.xml

\b
Exit codes: 0 certified, 1 not certified, 2 usage (shards of different suites, agents, policies or gates),
3 inconclusive (a shard is missing, or there more than once), 4 broken evidence.
"""
)
@click.argument("shards", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="OUT...")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/<UTC time>.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@report_options()
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json, and nothing else, on standard output.")
def merge(
    *, shards: tuple[Path, ...], out: Path | None, keys: tuple[str, ...], as_json: bool, **reports: Path | None
) -> int:
    """Copy the runs of OUT..., the folders that `deskcert ci --shard` wrote, into one folder, and decide.

    The verdict has the bytes that `deskcert score OUT...` has. The local project key signs the certificate; where the
    shards were made with other keys, pin them with --key.
    """
    from datetime import UTC, datetime

    cwd = Path.cwd()
    out = fresh_out(cwd, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")) if out is None else cwd / out
    return merged(shards, out, keys, as_json=as_json, **reports)


def merged(shards: Sequence[Path], out: Path, keys: tuple[str, ...], *, as_json: bool, **reports: Path | None) -> int:
    """Into the folder `out`. Returns the exit code. Raises `UsageError`."""
    from deskcert.cli._outcome import Outcome
    from deskcert.report.ci.write import Reports
    from deskcert.scoring import score
    from deskcert.scoring.evidence import find_runs
    from deskcert_ledger import ProjectKey, default_key_path

    _refuse_named_twice(shards)
    found = find_runs(shards)
    pins = pins_for(keys)
    score(found, pins)  # what is not one certification is refused before anything is written
    folders = _copied(found, out)
    outcome = Outcome(score(folders, pins), out, folders, pins)
    path = default_key_path(Path.cwd())
    key = ProjectKey.load(path) if path.exists() else None
    if key is None:
        say("there is no project key here, so there is no certificate")
    outcome.write(key, [out / "summary.txt"])
    outcome.tell(Reports(**reports), as_json=as_json)
    return int(outcome.verdict.exit_code)


def _refuse_named_twice(shards: Sequence[Path]) -> None:
    """A folder that is named twice is no second shard, and usually stands where another one was meant."""
    named: set[Path] = set()
    for shard in shards:
        if shard.resolve() in named:
            raise UsageError(f"{shard} is named twice; name the folder of every shard once")
        named.add(shard.resolve())


def _copied(found: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Each run under its own name; of two with one name the second gets a number, and the gate says that it is there
    more than once. Raises `UsageError`."""
    runs = out / "runs"
    if runs.exists() and any(runs.iterdir()):
        raise UsageError(f"{out} holds runs already; choose another folder with --out")
    made: list[Path] = []
    for source in found:
        target, number = runs / source.resolve().name, 2
        while target.exists():
            target, number = runs / f"{source.resolve().name}-{number}", number + 1
        partial = runs / f".{target.name}.{os.getpid()}"
        try:
            runs.mkdir(parents=True, exist_ok=True)
            # Links stay links: what a ledger's folder does not hold is no evidence.
            shutil.copytree(source, partial, symlinks=True)
            partial.replace(target)
        except OSError as exc:
            shutil.rmtree(partial, ignore_errors=True)
            raise UsageError(f"{source} cannot be copied to {target}: {exc}") from exc
        made.append(target)
    return tuple(made)
