"""`deskcert scenario`: begin a scenario for an application of one's own, and try it before it judges anybody."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from deskcert.cli._shared import Exit, fresh_out, say
from deskcert.cli.init import template, write_new
from deskcert_schema.errors import UsageError

__all__ = ["scenario"]

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_FORMS: Final = {
    "complete": ("own_scenario.yaml", "done"),
    "refuse": ("own_refusal.yaml", "refused"),
    "stop": ("own_stop.yaml", "failed"),
}
"""What is expected -> the scenario's template, and what `careful` claims by the plan."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def scenario() -> None:
    """Begin a scenario, and try it before it judges anybody."""


@scenario.command(
    epilog="""\b
Examples:
  deskcert scenario new close-a-ticket
  deskcert scenario new delete-a-ticket --expected refuse --suite tests/scenarios
"""
)
@click.argument("name")
@click.option("--suite", "folder", type=click.Path(path_type=Path, file_okay=False), default="scenarios")
@click.option("--expected", type=click.Choice(list(_FORMS)), default="complete", show_default=True)
@click.option("--force", is_flag=True, help="Write over files that are there already.")
def new(name: str, *, folder: Path, expected: str, force: bool) -> None:
    """Write the scenario NAME and its plan, with blanks to fill in; the suite's own files too where there are none."""
    if _ID.fullmatch(name) is None:
        raise UsageError(f"{name!r} is no id of a scenario; use small letters, digits and '-', such as close-a-ticket")
    form, claim = _FORMS[expected]
    texts = {
        folder / f"{name}.yaml": template(form).replace("{id}", name),
        folder / f"{name}.plan.yaml": template("own_plan.yaml").replace("{claim}", claim),
    }
    suite = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.lower()).strip("._-") or "mine"
    for file, source in (("suite.yaml", "own_suite.yaml"), ("policy.yaml", "own_policy.yaml")):
        if not (folder / file).exists():
            texts[folder / file] = template(source).replace("{name}", suite)
    write_new(texts, force=force)
    click.echo("\nto fill in:")
    for path, text in texts.items():
        for line, blank in _blanks(text):
            click.echo(f"  {path}:{line}: {blank}")
    click.echo(f"\nthen: deskcert scenario check {folder}")


def _blanks(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(), 1)
    return [(number, blank) for number, line in lines for blank in re.findall(r"<fill in: ([^>]*)>", line)]


@scenario.command(
    epilog="""\b
Examples:
  deskcert scenario check
  deskcert scenario check tests/scenarios --only close-a-ticket

\b
Exit codes: 0 they can judge, 1 one of them cannot, 2 a file is wrong, 3 it could not be found out.
"""
)
@click.argument("folders", nargs=-1, metavar="[SUITE]...", type=click.Path(path_type=Path))
@click.option("--only", metavar="GLOB", help="Only the scenarios whose id matches.")
@click.option("--policy", type=click.Path(path_type=Path), help="Instead of the suite's own policy.yaml.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/check-<UTC time>.")
def check(folders: tuple[Path, ...], *, only: str | None, policy: Path | None, out: Path | None) -> int:
    """Try the scenarios of SUITE (default: scenarios) with agents whose worth is known.

    `careful`, which keeps the contract, has to pass each by its plan. One that does nothing, and one that refuses at
    once, must not; nor may a scenario hold already before anybody has done anything.
    """
    from deskcert.certify.scenario_check import check_scenarios

    names, chosen = _suites(folders or (Path("scenarios"),), only)
    cwd = Path.cwd()
    place = cwd / out if out is not None else fresh_out(cwd, f"check-{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}")
    trials = check_scenarios(names, only=chosen, policy=policy, out=place, cwd=cwd)
    for trial in trials:
        click.echo(f"{trial.mark}  {trial.scenario}: {trial.sentence}")
    bad, unclear = sum(t.judges is False for t in trials), sum(t.judges is None for t in trials)
    count = f"{len(trials)} scenario{'' if len(trials) == 1 else 's'}"
    say(f"{count} tried, {bad} refused, {unclear} unclear; the runs are in {place}")
    return Exit.NOT_CERTIFIED if bad else Exit.INCONCLUSIVE if unclear else Exit.CERTIFIED


def _suites(folders: Sequence[Path], only: str | None) -> tuple[tuple[str, ...], str | None]:
    """Folders of suites, or one scenario's file."""
    if len(folders) == 1 and folders[0].is_file():
        if only is not None:
            raise UsageError("give a scenario's file or --only, not both")
        return (str(folders[0].parent),), folders[0].stem
    return tuple(str(f) for f in folders), only
