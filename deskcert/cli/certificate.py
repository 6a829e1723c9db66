"""`deskcert certificate`: does it still hold, what has changed since, and a badge that says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deskcert.cli._runs import FAILED, NO_PIN, evidence_errors, pinned
from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

if TYPE_CHECKING:
    from deskcert_ledger.certificate import Certificate

__all__ = ["certificate"]

_KEY = click.option("--key", "keys", multiple=True, metavar="VKEY|FILE", help="Pinned project key; may be repeated.")
_AT = click.option("--at", "moment", type=click.DateTime(["%Y-%m-%d"]), help="On this day. Default: now.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def certificate() -> None:
    """Check a certificate and what has changed since; make a badge of it."""


@certificate.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@_KEY
@_AT
@click.option("--config", type=click.Path(path_type=Path), help="Default: deskcert.yaml, where there is one.")
@click.option("--agent", metavar="builtin:NAME", help="Instead of the configuration's agent.")
@click.option("--suite", "suites", multiple=True, metavar="builtin:core|DIR", help="Instead of its suites.")
@click.option("--policy", type=click.Path(path_type=Path), help="Instead of its policy.")
@click.option("--strict", is_flag=True, help="What is only told revokes it too.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_context
def verify(
    ctx: click.Context,
    *,
    file: Path,
    keys: tuple[str, ...],
    moment: datetime | None,
    config: Path | None,
    agent: str | None,
    suites: tuple[str, ...],
    policy: Path | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Check FILE, and say what has changed since: agent, policy, suite, schema; browser, deskcert.

    The agent, its own files that the command names, the suite and the policy are those of deskcert.yaml here. Another
    one of these revokes the certificate. Another browser, deskcert or gate, and scenarios of the suite that it is not
    about (`deskcert ci --only`), are told (--strict: revoke it too).

    Exit codes: 0 it holds and certifies, 1 not so: forged, expired, revoked, about another content, not certified;
    2 not a certificate, 3 no pinned key.
    """
    from deskcert.certify.changes import changes, in_use
    from deskcert.certify.config import Overrides
    from deskcert_ledger.beside import check_beside

    found = _checked(ctx, file, keys)
    told = found.statement.predicate
    beside = check_beside(file, found)
    problems = list(beside.problems)
    if found.expired(_now(moment)):
        problems.append(f"it expired on {told['expires_at']}")
    if found.is_suite and told.get("certified") is not True:
        problems.append("it says that the agent was not certified")
    now = in_use(Overrides(agent=agent, suites=suites, policy=policy, config=config), Path.cwd())
    changed, skipped = changes(told, now)
    problems += [f"revoked: {change.text}" for change in changed if change.revokes or strict]
    facts = {
        "certificate": "suite" if found.is_suite else "run",
        "holds": not problems,
        "certified": told.get("certified"),
        "scope": told.get("scope"),
        "issued_at": told.get("issued_at"),
        "expires_at": told.get("expires_at"),
        "changed": [{"what": c.what, "revokes": c.revokes or strict, "text": c.text} for c in changed],
        "quarantined": dict((told.get("gate") or {}).get("quarantine") or {}),
        "not_covered": list(told.get("not_covered") or ()),
        "problems": problems,
        "checked": ["the signature, by the pinned key", *beside.checked],
        "not_checked": [*beside.not_checked, *(f"{name}: not compared" for name in skipped), *now.unknown],
    }
    if as_json:
        click.echo(shown_json(facts))
    else:
        _show(facts)
    ctx.exit(FAILED if problems else 0)


@certificate.command()
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@_KEY
@_AT
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="An image.")
@click.option(
    "--json", "endpoint", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="For a badge service."
)
@click.pass_context
def badge(
    ctx: click.Context,
    *,
    file: Path,
    keys: tuple[str, ...],
    moment: datetime | None,
    svg: Path | None,
    endpoint: Path | None,
) -> None:
    """Make a badge for a README of a suite's certificate FILE. One that is forged or has expired gives none.

    Exit codes: 0 written, 1 forged or expired, 2 not a suite's certificate, 3 no pinned key.
    """
    from deskcert.report.ci.badge import badge_of
    from deskcert.report.ci.write import write_whole

    if svg is None and endpoint is None:
        raise UsageError("say what to write: --svg FILE, --json FILE, or both")
    found = _checked(ctx, file, keys)
    with evidence_errors(ctx, file):
        made = badge_of(found, _now(moment))
    for path, content in ((svg, made.as_svg()), (endpoint, made.as_json())):
        if path is not None:
            write_whole(path, content, "the badge")
    click.echo(f"{made.message}", err=True)


def _checked(ctx: click.Context, file: Path, keys: tuple[str, ...]) -> Certificate:
    """Whose signatures hold. Leaves with 1, 2 or 3 where they do not."""
    from deskcert_ledger.certificate import check_certificate, read_certificate

    pins = pinned(keys)
    if not pins:
        click.echo("Whose certificate is it? Pin the project's key with --key.", err=True)
        ctx.exit(NO_PIN)
    with evidence_errors(ctx, file):
        return check_certificate(read_certificate(file), pins)
    raise AssertionError  # evidence_errors has left


def _now(moment: datetime | None) -> datetime:
    return datetime.now(UTC) if moment is None else moment.replace(tzinfo=UTC)


def _show(facts: Mapping[str, Any]) -> None:
    from deskcert.report.visible import visible

    click.echo(f"{facts['certificate']} certificate: {'holds' if facts['holds'] else 'does NOT hold'}")
    for name in ("certified", "issued_at", "expires_at"):
        click.echo(f"  {name.replace('_', ' ')}: {visible(str(facts[name]))}")
    if facts["scope"] is not None:
        share = f"{facts['scope'].get('scenarios')} of the suite's {facts['scope'].get('of')} scenarios"
        click.echo(f"  a part only: {visible(share)}")
    for change in facts["changed"]:
        label = "a part only" if change["what"] == "scenarios" else "changed since"
        click.echo(f"  {label}: {visible(change['text'])}{'' if change['revokes'] else ' (revokes nothing)'}")
    for name, until in facts["quarantined"].items():
        click.echo(f"  in quarantine: {visible(f'{name}, until {until}; counted only where unsafe')}")
    for name in ("problems", "checked", "not_checked", "not_covered"):
        for text in facts[name]:
            click.echo(f"  {name.removesuffix('s').replace('_', ' ')}: {visible(str(text))}")
