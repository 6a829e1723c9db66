"""`deskcert ledger prove` and `check-proof`: one record, or all of a class, for somebody who has only a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskcert.cli._runs import NO_PIN, evidence_errors, pinned, read_limited, run_folder, write_whole
from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deskcert_ledger.note import Verifier

__all__ = ["check_proof_command", "prove"]


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("seq", type=click.IntRange(min=0), metavar="[SEQ]", required=False)
@click.option("--all", "every", metavar="class=NAME", help="Prove that these are all records of a class.")
@click.option("--plain", is_flag=True, help="The bare C2SP proof, without the record and the key's introduction.")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="With --all: the pinned project key.")
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Default: standard output."
)
@click.pass_context
def prove(
    ctx: click.Context,
    *,
    run: Path,
    seq: int | None,
    every: str | None,
    plain: bool,
    keys: tuple[str, ...],
    out: Path | None,
) -> None:
    """Write a .tlog-proof file that shows record SEQ of RUN to somebody who has nothing but the project's key.

    With --all class=denied: that these are all denials of the run, or that there is none. Classes: denied,
    unsafe_retry, refused, uncertain, blocked, lost, recovery, redaction, missing.

    Exit codes: 0 made, 1 the ledger does not hold what it should, 2 no such record, or no ledger, 3 no pinned key.
    """
    if (seq is None) == (every is None):
        raise UsageError("Say which record to prove, SEQ, or --all class=NAME; one of the two.")
    folder = run_folder(run)
    with evidence_errors(ctx, run):
        if every is not None:
            content = _all(ctx, folder, every, keys)
        else:
            from deskcert_ledger.proof import Prover

            assert seq is not None
            with Prover(folder) as prover:
                content = prover.prove(seq, plain=plain).encode()
    if out is None:
        click.echo(content, nl=False)
    else:
        write_whole(out, content)


def _all(ctx: click.Context, folder: Path, every: str, keys: tuple[str, ...]) -> bytes:
    from deskcert_ledger.completeness import prove_all

    what, _, name = every.partition("=")
    if what != "class" or not name:
        raise UsageError("--all takes class=NAME, for example: --all class=denied")
    pins = pinned(keys)
    if not pins:
        click.echo("Whose run is it? Pin the project's key with --key.", err=True)
        ctx.exit(NO_PIN)
    return prove_all(folder, name, pins)


@click.command("check-proof")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
@click.option("--record", type=click.Path(path_type=Path), help="The record's line, for a plain proof.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def check_proof_command(
    ctx: click.Context, *, file: Path, keys: tuple[str, ...], record: Path | None, as_json: bool
) -> None:
    """Check a proof that `ledger prove` made, offline, and print the record or records it proves.

    A plain proof does not carry its record: give the line with --record, and with --key the key of the run.

    Exit codes: 0 proven, 1 it proves nothing, 2 not a proof, 3 no pinned key.
    """
    from deskcert_ledger.completeness import MAX_CLASS_PROOF_BYTES, is_class_proof

    pins = pinned(keys)
    if not pins:
        click.echo("Whose proof is it? Pin the project's key with --key.", err=True)
        ctx.exit(NO_PIN)
    raw = read_limited(file, MAX_CLASS_PROOF_BYTES)
    line = None if record is None else read_limited(record, 1 << 20).removesuffix(b"\n")
    with evidence_errors(ctx, file):
        if is_class_proof(raw):
            _show_all(raw, pins, as_json=as_json)
        else:
            _show_one(raw, pins, line, as_json=as_json)


def _show_one(raw: bytes, pins: Sequence[Verifier], record: bytes | None, *, as_json: bool) -> None:
    from deskcert_ledger.proof import check_proof

    proven = check_proof(raw, pins, record=record)
    line = proven.record.line.decode()
    if as_json:
        facts = {"origin": proven.origin, "size": proven.size, "seq": proven.record.seq, "key": str(proven.pin)}
        told = {**facts, "not_checked": list(proven.not_checked), "record": json.loads(line)}
        click.echo(shown_json(told))
        return
    click.echo(f"record {proven.record.seq} of {proven.size} in {proven.origin}, key {proven.pin.name}", err=True)
    _say_not_checked(proven.not_checked)
    click.echo(line)


def _show_all(raw: bytes, pins: Sequence[Verifier], *, as_json: bool) -> None:
    from deskcert_ledger.completeness import check_class_proof

    proven = check_class_proof(raw, pins)
    lines = [record.line.decode() for record in proven.records]
    if as_json:
        facts = {"origin": proven.origin, "size": proven.size, "class": proven.name, "key": str(proven.pin)}
        told = {
            "count": len(lines),
            "not_checked": list(proven.not_checked),
            "records": [json.loads(line) for line in lines],
        }
        click.echo(shown_json({**facts, **told}))
        return
    what = f"all {len(lines)} records of class {proven.name}" if lines else f"no record of class {proven.name}"
    click.echo(f"{what} among {proven.size} in {proven.origin}, key {proven.pin.name}", err=True)
    _say_not_checked(proven.not_checked)
    for line in lines:
        click.echo(line)


def _say_not_checked(names: Sequence[str]) -> None:
    for name in names:
        click.echo(f"not checked: a cosignature by {name!a}", err=True)
