"""`deskcert rules`: what the scoring rules are."""

from __future__ import annotations

import sys

import click

from deskcert.contract.shown import shown_json

__all__ = ["rules"]


@click.command()
@click.option("--json", "as_json", is_flag=True, help="All that is known about each rule, as JSON.")
@click.option("--markdown", "as_markdown", is_flag=True, help="The page docs/rules.md.")
def rules(*, as_json: bool, as_markdown: bool) -> None:
    """List the scoring rules, in the order in which they are tried."""
    from deskcert.report.rule_pages import as_objects, as_page, as_table

    if as_json:
        click.echo(shown_json(as_objects(), indent=2))
    elif as_markdown:
        sys.stdout.write(as_page())
    else:
        sys.stdout.write(as_table())
