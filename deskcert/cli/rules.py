"""`deskcert rules` and `deskcert explain`: what the scoring rules are, and what to do about a finding."""

from __future__ import annotations

import json
import sys

import click

from deskcert_schema.errors import UsageError

__all__ = ["explain", "rules"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All that is known about each rule, as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The page docs/rules.md.")
def rules(*, as_json: bool, as_markdown: bool) -> None:
    """List the scoring rules, in the order in which they are tried."""
    from deskcert.report.rule_pages import as_objects, as_page, as_table

    if as_json:
        click.echo(json.dumps(as_objects(), indent=2, ensure_ascii=False))
    elif as_markdown:
        sys.stdout.write(as_page())
    else:
        sys.stdout.write(as_table())


@click.command()
@click.argument("rule_id", metavar="RULE")
def explain(rule_id: str) -> None:
    """Say what one rule means: why it matters, and how to fix the agent."""
    from deskcert.report.rule_pages import as_explanation
    from deskcert.scoring import RULES

    wanted = rule_id.upper()
    about = next((rule.about for rule in RULES if rule.about.id == wanted), None)
    if about is None:
        raise UsageError(f"There is no rule {rule_id!r}; `deskcert rules` lists them.")
    sys.stdout.write(as_explanation(about))
