"""`deskcert ledger`: verify a run's ledger, recover one after a crash, prove a record.

Exit codes of `verify`: 0 complete · 1 tampered, interrupted, prefix, unfinished · 2 not a ledger, or usage ·
3 unverifiable for want of a pinned key, or because a verifier policy is not met.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskcert.cli import audit, evidence, export, proofs
from deskcert.cli._project_log import printable, read_logs
from deskcert.cli._runs import pinned, run_folder
from deskcert.contract.shown import shown_json
from deskcert_schema.errors import LedgerFormatError, LedgerTampered

if TYPE_CHECKING:
    from rich.console import Console

    from deskcert_ledger import RunReport

__all__ = ["ledger"]

_MEANING = {
    "complete": "sealed; run.end is last, the final checkpoint covers it, the key is pinned",
    "unfinished": "every line is under a checkpoint, but the run was not ended and sealed",
    "prefix": "valid lines, or a torn end, lie past the last signed checkpoint",
    "interrupted": "recovered after a crash, or an intent without a result",
    "unverifiable": "no pinned key (--key), a quorum that is not reached (--policy), or elided lines (--allow-elided)",
    "tampered": "the evidence contradicts a signature or the pinned key",
}
_COLOUR = {"complete": "green", "tampered": "bold red", "unverifiable": "red"}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def ledger() -> None:
    """Read, question and verify run ledgers, recover one after a crash, prove a single record."""


for _command in (audit.timeline, audit.show, audit.diff, audit.query, audit.stats):
    ledger.add_command(_command)
for _command in (proofs.prove, proofs.check_proof_command, evidence.certificate, evidence.redact, export.export):
    ledger.add_command(_command)


@ledger.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Verifier policy (C2SP tlog-policy): pinned keys, witnesses, and the quorum of them that is asked for.",
)
@click.option("--every-signature", is_flag=True, help="Check the signature of every checkpoint.")
@click.option("--schema", is_flag=True, help="Check every record against its schema.")
@click.option(
    "--jobs", type=click.IntRange(1, 64), help="Processes that read a large ledger. Default: 2, or 1 on one processor."
)
@click.option("--allow-elided", is_flag=True, help="Lines that were left out for export are no failure.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def verify(
    ctx: click.Context,
    *,
    runs: tuple[Path, ...],
    keys: tuple[str, ...],
    policy_file: Path | None,
    every_signature: bool,
    schema: bool,
    jobs: int | None,
    allow_elided: bool,
    as_json: bool,
) -> None:
    """Say whether RUN's ledger is what was signed, all of it, and whose. Never writes.

    An output folder stands for all its runs; a run that the project's log beside them knows and that is not there
    is named, and counts as tampered with.

    Without --key, and without a key in the policy, the local project key is the pin. A key carried inside the evidence
    never is.

    Exit codes: 0 complete, 1 tampered, interrupted, prefix or unfinished, 2 not a ledger, 3 no pinned key, or a policy
    that is not met.
    """
    from deskcert_ledger import verify_run
    from deskcert_ledger.policy import read_policy

    policy = None if policy_file is None else read_policy(policy_file)
    pins = () if policy is not None and policy.logs and not keys else pinned(keys)
    live = Path.cwd() / ".deskcert" / "log"
    logs = read_logs(runs, pins if policy is None else (*pins, *policy.logs), live if live.is_dir() else None)
    reports: list[dict[str, Any]] = []
    code = 0
    for folder in _folders(runs):
        try:
            report = verify_run(
                folder,
                pins=pins,
                policy=policy,
                every_signature=every_signature,
                schema=schema,
                allow_elided=allow_elided,
                jobs=jobs or min(2, os.cpu_count() or 1),
            )
        except LedgerFormatError as error:
            code = _worse(code, 2)
            reports.append({"folder": str(folder), "headline": "not a ledger", "exit_code": 2, "reason": str(error)})
            if not as_json:
                click.echo(f"{folder}: not a ledger: {error}", err=True)
            continue
        report = logs.of(folder, report)
        code = _worse(code, report.exit_code)
        reports.append({"folder": str(folder), **report.as_json(), **logs.as_json(folder)})
        if not as_json:
            _show(folder, report, _console())
    if not all(log.good for log in logs.values()):
        code = _worse(code, 1)
    if not as_json:
        for line in logs.shown():
            click.echo(line)
    if as_json:
        click.echo(shown_json(reports[0] if len(reports) == 1 else reports))
    ctx.exit(code)


@ledger.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def recover(ctx: click.Context, run: Path, as_json: bool) -> None:
    """Repair a ledger whose process died: cut what is torn, begin a new epoch, close open intents, seal.

    Needs the project key the run was made with. Exit codes: 0 recovered or nothing to do, 1 tampered with, 2 no ledger.
    """
    from deskcert_ledger import recover_run
    from deskcert_ledger.keys import ProjectKey, default_key_path

    key = ProjectKey.load(default_key_path(Path.cwd()))
    try:
        done = recover_run(run_folder(run), key)
    except (LedgerTampered, LedgerFormatError) as error:
        click.echo(f"{run}: {error}", err=True)
        ctx.exit(1 if isinstance(error, LedgerTampered) else 2)
    facts = {
        "outcome": done.outcome.value,
        "size": done.size,
        "signed_size": done.signed_size,
        "cut_bytes": done.cut,
        "open_intents": list(done.open_intents),
    }
    if as_json:
        click.echo(shown_json(facts))
        return
    click.echo(f"{run}: {done.outcome.value.replace('_', ' ')}, {done.size} records")
    if done.cut:
        click.echo(f"  {done.cut} bytes were cut and kept under torn/")
    for seq in done.open_intents:
        click.echo(f"  intent {seq} has no known result: written down as unknown, never to be retried automatically")


@ledger.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
@click.option("--socket", type=click.Path(path_type=Path), help="Where to make the socket; default: a fresh place.")
@click.option("--run", "run_id", help="The run's name; default: that of the folder.")
@click.option("--writer", default="guard", show_default=True, help="Who its records say wrote them.")
def serve(folder: Path, socket: Path | None, run_id: str | None, writer: str) -> None:
    """Own a new ledger in FOLDER and write down what other processes of this user send.

    Prints one line `{"socket":…,"vkey":…}` when it is ready, and the final checkpoint at the end. It ends when its
    standard input is closed, or at SIGTERM; then the ledger is sealed. Writers use `deskcert_ledger.socket_client`.
    """
    from deskcert_ledger.keys import ProjectKey, default_key_path, project_of
    from deskcert_ledger.standalone import serve as serve_ledger

    base = Path.cwd()
    key = ProjectKey.load_or_create(default_key_path(base))
    run = run_id or folder.resolve().name
    sealed = serve_ledger(
        folder,
        socket,
        origin=f"deskcert/{project_of(base)}/{run}",
        start={"run": run},
        project_key=key,
        w=writer,
        ready=lambda path: click.echo(shown_json({"socket": str(path), "vkey": key.vkey})),
    )
    click.echo(sealed.checkpoint_text, nl=False)


def _folders(paths: tuple[Path, ...]) -> list[Path]:
    """Run folders; an output folder stands for all its runs."""
    found: list[Path] = []
    for path in map(run_folder, paths):
        inner = path / "runs"
        if not (path / "ledger.jsonl").exists() and inner.is_dir():
            found += sorted(item for item in inner.iterdir() if item.is_dir())
        else:
            found.append(path)
    return found


def _worse(one: int, other: int) -> int:
    """Of several runs the worst code counts: not a ledger, then what failed, then what cannot be told."""
    return max(one, other, key=(0, 3, 1, 2).index)


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def _show(folder: Path, report: RunReport, console: Console) -> None:
    from rich.markup import escape

    def clean(text: str) -> str:
        return escape(printable(text))

    console.print(f"[bold]{clean(report.run or folder.name)}[/]  {clean(str(folder))}")
    for word in report.words:
        name = word.partition("(")[0]
        console.print(f"  [{_COLOUR.get(name, 'yellow')}]{word}[/]  {_MEANING[name]}")
    console.print(f"  {report.size} records, {report.signed_size} of them signed · root {report.root}")
    console.print(f"  origin {clean(report.origin)}")
    for problem in report.problems:
        at = "" if problem.seq is None else f" at record {problem.seq} (byte {problem.byte})"
        console.print(f"  [red]problem[/]{at}: {clean(problem.text)}")
    for epoch in report.epochs:
        if epoch.unsigned_from is not None:
            console.print(f"  records {epoch.unsigned_from} to {epoch.first - 1} were unsigned until the recovery")
    for seq in report.open_intents:
        console.print(f"  [yellow]open[/] intent {seq} has no result")
    for text in report.checked:
        console.print(f"  [dim]checked[/]      {clean(text)}")
    for text in report.not_checked:
        console.print(f"  [dim]not checked[/]  {clean(text)}")
