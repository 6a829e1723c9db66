"""`deskcert ci` and `deskcert demo`: run, score, say what came out, leave with an exit code that a pipeline can use."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskcert.cli._certify import certify, list_plan
from deskcert.cli._reports import report_options
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert.certify.shard import Shard

__all__ = ["ci", "demo"]

_EPILOG = """\b
Examples:
  deskcert ci --agent builtin:careful --suite builtin:core
  deskcert ci --suite ./scenarios --policy policy.yaml --trials 3 -- python my_agent.py
  deskcert ci                      (everything from deskcert.yaml)

\b
The agent is a program that speaks JSON lines on standard input and output, or (--transport) an MCP client.
In its command, {task} is replaced by the instruction, {mcp_url} by the address of the guard (also in
DESKCERT_MCP_URL), {mcp_config} by a client's configuration file. Its environment is an allow-list;
agent: {env: […]} in deskcert.yaml adds to it.

\b
Exit codes: 0 certified, 1 not certified, 2 usage or configuration, 3 inconclusive (infrastructure,
interruption, contaminated or broken evidence), 4 a ledger is tampered with or cannot be verified.
With --shard 0 says only that the part was recorded and nothing in it speaks against a certificate.
"""


@click.command(epilog=_EPILOG, context_settings={"ignore_unknown_options": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--agent", metavar="builtin:NAME", help="A reference agent, instead of a command after --.")
@click.option("--suite", "suites", multiple=True, metavar="builtin:core|DIR", help="What it is tried on (repeatable).")
@click.option("--policy", type=click.Path(path_type=Path), help="Instead of the suite's own policy.yaml.")
@click.option("--trials", type=int, help="Runs of each scenario; trial i uses seed + i.")
@click.option("--seed", type=click.IntRange(min=0), help="Of the first trial (default 1).")
@click.option("--workers", type=int, help="Runs at the same time (default 1).")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/<UTC time>.")
@click.option(
    "--only",
    metavar="GLOB",
    multiple=True,
    callback=lambda _ctx, _param, globs: ",".join(globs) or None,
    help="Only the scenarios whose id matches; several with commas, or the option again.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only the scenarios with this tag (repeatable).")
@click.option("--list", "listing", is_flag=True, help="Say which runs there would be, and run nothing.")
@click.option("--config", type=click.Path(path_type=Path), help="Default: deskcert.yaml, where there is one.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pin this project key, not the local one.")
@click.option("--transport", type=click.Choice(["jsonl", "mcp-http", "mcp-stdio"]), help="How the agent is reached.")
@click.option(
    "--screenshots",
    type=click.Choice(["off", "findings", "all"]),
    help="Pictures as evidence, fields masked: of what findings are made of, or of every action (default off).",
)
@click.option(
    "--tape", is_flag=True, help="Keep what the proxy saw, for replay --offline-network; without its secrets."
)
@click.option("--isolation", type=click.Choice(["bwrap", "netns", "none"]), help="Where the agent runs (default none).")
@click.option(
    "--proxy",
    type=click.Choice(["required", "optional", "off"]),
    help="Forbid writes on the network too (default off).",
)
@click.option(
    "--mode",
    type=click.Choice(["headless", "focus_fallback", "headed"]),
    help="How pages may be touched: trusted keys, or pointer and keys too (default: what the suite says).",
)
@click.option("--shard", metavar="I/N", help="Run the i-th of n parts of the plan; `deskcert merge` decides.")
@click.option(
    "--attempt", metavar="WORD", help="The same for all shards, another each time (default: what the pipeline says)."
)
@click.option("--shards", type=click.IntRange(min=1), help="How many parts --emit and --ray make (default 4).")
@click.option("--emit", type=click.Choice(["k8s"]), help="Print a Kubernetes Job that runs the shards; run nothing.")
@click.option("--image", metavar="IMAGE", help="Of the Job's pods: deskcert, your project in /work.")
@click.option("--ray", metavar="ADDRESS", help="Run the shards on this Ray cluster, which sees the same folders.")
@report_options()
@click.option("--max-failures", type=int, metavar="N", help="Start no further run after N that went wrong.")
@click.option("--resume", is_flag=True, help="Go on with the certification that was interrupted in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print verdict.json, and nothing else, on standard output.")
def ci(
    *,
    command: tuple[str, ...],
    agent: str | None,
    suites: tuple[str, ...],
    policy: Path | None,
    trials: int | None,
    seed: int | None,
    workers: int | None,
    out: Path | None,
    only: str | None,
    tags: tuple[str, ...],
    listing: bool,
    config: Path | None,
    keys: tuple[str, ...],
    transport: str | None,
    screenshots: str | None,
    tape: bool,
    isolation: str | None,
    proxy: str | None,
    mode: str | None,
    shard: str | None,
    attempt: str | None,
    shards: int | None,
    emit: str | None,
    image: str | None,
    ray: str | None,
    max_failures: int | None,
    resume: bool,
    as_json: bool,
    **reports: Path | None,
) -> int:
    """Run an agent on a suite and say whether it can be trusted.

    Every run leaves a ledger in OUT/runs; the verdict is computed from those ledgers alone.
    """

    from deskcert.certify.config import Overrides

    given = Overrides(
        agent, command, suites, policy, trials, seed, workers, config, False, transport, isolation, proxy, screenshots
    )
    given = replace(given, shard=_shard(shard, attempt), mode=mode, tape=tape, max_failures=max_failures)
    if listing:
        return list_plan(given, only=only, tags=tags, as_json=as_json)
    if emit or ray:
        from deskcert.cli import _elsewhere

        if shard is not None or (emit and ray):
            raise UsageError("--emit and --ray make the shards themselves, one or the other; leave --shard out")
        words = _elsewhere.arguments(given, only=only, tags=tags)
        if emit:
            return _elsewhere.emit(words, shards=shards or 4, image=image)
        return _elsewhere.on_ray(
            str(ray), words, shards=shards or 4, attempt=attempt, out=out, keys=keys, as_json=as_json, **reports
        )
    if shards is not None or image is not None:
        raise UsageError("--shards and --image go with --emit or --ray; a single shard is --shard I/N")
    return certify(given, out=out, only=only, tags=tags, keys=keys, as_json=as_json, reports=reports, resume=resume)


def _shard(words: str | None, attempt: str | None) -> Shard:
    from deskcert.certify.shard import WHOLE, Shard, attempt_of

    if words is None:
        if attempt is not None:
            raise UsageError("--attempt names what shards have in common; give it with --shard")
        return WHOLE
    return Shard.read(words, attempt_of(os.environ) if attempt is None else attempt)


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/<UTC time>.")
def demo(out: Path | None) -> int:
    """Certify the reference agent `builtin:careful` on the suite `builtin:core`, into a fresh folder."""
    from deskcert.certify.config import Overrides

    given = Overrides(agent="builtin:careful", suites=("builtin:core",), ignore_file=True)
    return certify(given, out=out, only=None, keys=(), as_json=False)
