"""`deskcert ci` on more than this machine: the same arguments, given to each shard."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskcert.cli._shared import Exit, fresh_out, say
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert.certify.config import Overrides

__all__ = ["arguments", "emit", "on_ray"]

_NEWEST_TOLD = 3


def arguments(given: Overrides, *, only: str | None, tags: Sequence[str]) -> list[str]:
    """What was said on the command line and holds for every shard; the agent's command last."""
    words = list(_options(given, only, tags))
    return [*words, "--", *given.command] if given.command else words


def _options(given: Overrides, only: str | None, tags: Sequence[str]) -> Iterator[str]:
    options = (
        *(("agent", given.agent), ("policy", given.policy), ("config", given.config), ("trials", given.trials)),
        *(("seed", given.seed), ("workers", given.workers), ("transport", given.transport)),
        *(("isolation", given.isolation), ("proxy", given.proxy), ("screenshots", given.screenshots), ("only", only)),
        *(("mode", given.mode), ("max-failures", given.max_failures)),
        *(("suite", suite) for suite in given.suites),
        *(("tag", tag) for tag in tags),
    )
    if given.tape:
        yield "--tape"
    for name, value in options:
        if value is not None:
            yield from (f"--{name}", str(value))
    if given.tape:
        yield "--tape"


def emit(words: Sequence[str], *, shards: int, image: str | None) -> int:
    from deskcert.certify.k8s import job, manifest

    if not image:
        raise UsageError("--emit k8s needs --image: with deskcert and its browser, your project in /work")
    click.echo(manifest(job(shards, words, image=image)), nl=False)
    return Exit.CERTIFIED


def on_ray(
    address: str,
    words: Sequence[str],
    *,
    shards: int,
    attempt: str | None,
    out: Path | None,
    keys: tuple[str, ...],
    as_json: bool,
    **reports: Path | None,
) -> int:
    """Run the shards as tasks of the cluster, then merge what they wrote. Its exit code is merge's."""
    from deskcert.certify.on_ray import run_shards
    from deskcert.cli.merge import merged
    from deskcert_ledger import ProjectKey, default_key_path

    cwd = Path.cwd()
    ProjectKey.load_or_create(default_key_path(cwd))  # once, before several make it at the same time
    out = fresh_out(cwd, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")) if out is None else cwd / out
    if (out / "runs").exists() or (out / "shards").exists():
        raise UsageError(f"{out} holds runs already; choose another folder with --out")
    name = attempt or f"ray-{secrets.token_hex(8)}"
    done = run_shards(address, words, shards=shards, attempt=name, out=out / "shards", cwd=cwd, say=say)
    for number, part in sorted(done.items()):
        if part.code not in (0, 1):
            last = " / ".join(part.said.splitlines()[-_NEWEST_TOLD:])
            say(f"shard {number}/{shards} ended with exit {part.code}: {last}")
    folders = [out / "shards" / str(number) for number in sorted(done)]
    present = [folder for folder in folders if (folder / "runs").is_dir()]
    if not present:
        code = next(iter(done.values())).code if done else Exit.INCONCLUSIVE
        return code if code in (Exit.USAGE, Exit.INCONCLUSIVE) else Exit.INCONCLUSIVE
    return merged(present, out, keys, as_json=as_json, **reports)
