"""`python -m deskcert_schema.docs` prints docs/dispositions.md, made from the table that the code runs on.

A test compares the committed page with `page()`, so that table and page cannot drift apart.
"""

from __future__ import annotations

import re
import sys

from deskcert_schema import disposition
from deskcert_schema.disposition import RETRY_OF, SUCCESS_DELIVERIES, Delivery, Retry
from deskcert_schema.errors import ContractError

__all__ = ["page"]

_RETRY_MEANS = {
    Retry.SAFE: "sending it again cannot do it twice",
    Retry.UNSAFE: "it went out; look at the application first, and say what is repeated (`repeat_of`)",
    Retry.NEVER_AUTOMATIC: "it may have gone out; only a decision based on what the application shows may repeat it",
}


def page() -> str:
    """The whole page, as Markdown."""
    meaning = _meanings()
    rows = [
        f"| `{d}` | `{RETRY_OF[d]}` | {'yes' if d in SUCCESS_DELIVERIES else 'no'} | {meaning[d]} |" for d in _order()
    ]
    retries = [f"| `{retry}` | {means} |" for retry, means in _RETRY_MEANS.items()]
    return "\n".join(
        [
            "# Dispositions",
            "",
            "Made by `python -m deskcert_schema.docs`; do not edit.",
            "",
            "Every error and every acting success says what is known about this attempt: `delivery`. What that means",
            "for trying again, `retry`, follows from it and is decided nowhere else.",
            "",
            "| delivery | retry | on `ok: true` | meaning |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "| retry | meaning |",
            "| --- | --- |",
            *retries,
            "",
            "Verified is still unsafe: having seen the effect of a first click says nothing good about a second one.",
            "Evidence of delivery is kept: nothing that fails later turns `delivered_*` back into something weaker.",
            "",
        ]
    )


def _order() -> list[Delivery]:
    return list(RETRY_OF)


def _meanings() -> dict[Delivery, str]:
    """From the table in the module's docstring, which a reader of the code sees first."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", disposition.__doc__ or "", re.MULTILINE)
    found = {Delivery(delivery): text for delivery, retry, text in rows if RETRY_OF[Delivery(delivery)] == retry}
    missing = set(Delivery) - set(found)
    if missing:
        raise ContractError(f"the docstring's table differs from RETRY_OF at {sorted(missing)}")
    return found


if __name__ == "__main__":
    sys.stdout.write(page())
