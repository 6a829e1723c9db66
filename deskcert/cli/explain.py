"""`deskcert explain`: one page about a scoring rule, or about a word of the contract."""

from __future__ import annotations

import difflib
import sys

import click

from deskcert_schema.errors import UsageError

__all__ = ["explain"]


@click.command(
    epilog="""\b
Examples:
  deskcert explain DC401
  deskcert explain STALE_REF
  deskcert explain delivery_uncertain
"""
)
@click.argument("word", metavar="RULE|CODE|WORD")
def explain(word: str) -> None:
    """Say what a rule, an error code, a sub-code, a delivery or an attribution means, and what to do about it."""
    from deskcert.ways.meanings import ATTRIBUTIONS, CODES, DELIVERIES, KINDS, meaning_of

    found = meaning_of(word)
    if found is not None:
        sort, known, meaning = found
        click.echo(f"{known} ({sort})\n\n  {meaning}")
        return
    from deskcert.report.rule_pages import as_explanation
    from deskcert.scoring import RULES

    about = next((rule.about for rule in RULES if rule.about.id == word.upper()), None)
    if about is None:
        known_words = [*CODES, *KINDS, *DELIVERIES, *ATTRIBUTIONS, *(rule.about.id for rule in RULES)]
        folded = {k.casefold(): k for k in known_words}
        near = difflib.get_close_matches(word.casefold(), folded, 1, 0.75)
        hint = f"did you mean {folded[near[0]]}?" if near else "`deskcert rules` lists the rules"
        raise UsageError(f"There is no rule {word!r} and no such word of the contract; {hint}")
    sys.stdout.write(as_explanation(about))
