"""`deskcert ledger certificate`, `redact`: evidence that leaves the house."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskcert.cli._runs import FAILED, NO_PIN, evidence_errors, pinned, run_folder
from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert_ledger.open_redaction import Dropped
    from deskcert_ledger.redaction import Redaction

__all__ = ["certificate", "redact"]


@click.group()
def certificate() -> None:
    """Check the certificate of a run or of a suite."""


@certificate.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option("--at", "moment", type=click.DateTime(["%Y-%m-%d"]), help="Is it valid on this day? Default: today.")
@click.option(
    "--digest", "digests", multiple=True, metavar="NAME=HEX", help="What is in use now: policy, suite, schema, agent."
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def verify(
    ctx: click.Context,
    *,
    file: Path,
    keys: tuple[str, ...],
    moment: datetime | None,
    digests: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check FILE: run.intoto.jsonl, suite.intoto.jsonl, or one of the .sigstore.json beside them.

    What the certificate is about is compared where it lies beside it: the ledger, the verdict, the SSH signature.

    Exit codes: 0 it holds, 1 forged, expired, or about another content, 2 not a certificate, 3 no pinned key.
    """
    from deskcert_ledger.beside import check_beside
    from deskcert_ledger.certificate import check_certificate, read_certificate

    pins = pinned(keys)
    if not pins:
        click.echo("Whose certificate is it? Pin the project's key with --key.", err=True)
        ctx.exit(NO_PIN)
    with evidence_errors(ctx, file):
        found = check_certificate(read_certificate(file), pins)
    beside = check_beside(file, found)
    now = datetime.now(UTC) if moment is None else moment.replace(tzinfo=UTC)
    told = found.statement.predicate
    problems = list(beside.problems)
    if found.expired(now):
        problems.append(f"it expired on {told['expires_at']}")
    problems += _revoked(digests, told.get("revoked_by_change_of"))
    facts = {
        "certificate": "suite" if found.is_suite else "run",
        "holds": not problems,
        "key": str(found.pin),
        "issued_at": told.get("issued_at"),
        "expires_at": told.get("expires_at"),
        "revoked_by_change_of": told.get("revoked_by_change_of"),
        "test_result": found.test_result,
        "statement": {"certified": told.get("certified")} if found.is_suite else {"word": told.get("word")},
        "checked": [
            "the signature, by the pinned key"
            if found.is_suite
            else "the signature, by a run key that the pinned key introduced",
            *beside.checked,
        ],
        "problems": problems,
        "not_checked": [*beside.not_checked, *map(str, told.get("not_covered", []))],
    }
    if as_json:
        click.echo(shown_json(facts))
    else:
        _show(facts)
    ctx.exit(FAILED if problems else 0)


def _revoked(now: tuple[str, ...], certified: object) -> list[str]:
    """What is in use and was not certified. Raises `UsageError`."""
    known: dict[str, set[str]] = {}
    for item in certified if isinstance(certified, list) else ():
        known.setdefault(item["name"], set()).add(item["digest"]["sha256"])
    problems = []
    for value in now:
        name, _, digest = value.partition("=")
        if name not in known or not digest:
            raise UsageError(
                f"--digest takes NAME=HEX; this certificate knows {', '.join(sorted(known)) or 'no name'}."
            )
        if digest.lower() not in known[name]:
            problems.append(f"revoked: the {name} in use is not the one that was certified")
    return problems


def _show(facts: dict[str, object]) -> None:
    click.echo(f"{facts['certificate']} certificate: {'holds' if facts['holds'] else 'does NOT hold'}")
    for name in ("statement", "test_result", "issued_at", "expires_at"):
        click.echo(f"  {name.replace('_', ' ')}: {facts[name]}")
    for name in ("problems", "checked", "not_checked"):
        told = facts[name]
        for text in told if isinstance(told, list) else ():
            click.echo(f"  {name.removesuffix('s').replace('_', ' ')}: {ascii(text)[1:-1]}")


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("seqs", nargs=-1, type=click.IntRange(min=0), metavar="[SEQ]...")
@click.option("--all", "every", is_flag=True, help="Every record.")
@click.option("--blobs", is_flag=True, help="Also the blobs these records name: trees, long texts, screenshots.")
@click.option("--reason", required=True, help="Why: it is written down, with the time.")
@click.option(
    "--socket", type=click.Path(path_type=Path), help="RUN is still being written: the socket of its `ledger serve`."
)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def redact(
    ctx: click.Context,
    *,
    run: Path,
    seqs: tuple[int, ...],
    every: bool,
    blobs: bool,
    reason: str,
    socket: Path | None,
    as_json: bool,
) -> None:
    """Delete the openings of secrets in records SEQ of a sealed RUN; the proof stays, and the redaction is signed.

    With --socket, of a RUN that is still being written: the ledger itself says so, in a record `redaction`.

    Needs the project key. There is no way back.

    Exit codes: 0 done, or nothing to do, 1 the run does not verify, 2 no such record, or no ledger.
    """
    from deskcert_ledger.keys import ProjectKey, default_key_path
    from deskcert_ledger.open_redaction import Asked, ask
    from deskcert_ledger.sealed_redaction import redact_sealed

    if bool(seqs) == every:
        raise UsageError("Say which records to redact, SEQ..., or --all; one of the two.")
    key = ProjectKey.load(default_key_path(Path.cwd()))
    wanted = None if every else seqs
    with evidence_errors(ctx, run):
        try:
            done: Dropped | Redaction | None
            if socket is not None:
                done = ask(socket, run_folder(run), key, Asked(wanted, blobs=blobs, reason=reason))
            else:
                now = datetime.now(UTC)
                done = redact_sealed(run_folder(run), key, seqs=wanted, blobs=blobs, reason=reason, now=now)
        except OSError as error:
            raise UsageError(f"{run} cannot be redacted: {error.strerror}.") from error
    openings, names = ((), ()) if done is None else (done.openings, done.blobs)
    if as_json:
        click.echo(shown_json({"openings": list(openings), "blobs": list(names)}))
    else:
        click.echo(f"{run}: {len(openings)} openings and {len(names)} blobs deleted")
