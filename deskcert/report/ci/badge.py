"""A badge for a README, made from a suite's certificate and from nothing else, so it cannot say more than was signed.

Two forms: an SVG image, and the JSON that a badge service reads as an "endpoint" (schemaVersion 1).
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from deskcert.report.visible import visible
from deskcert_schema.errors import LedgerTampered, UsageError

if TYPE_CHECKING:
    from deskcert_ledger.certificate import Certificate

__all__ = ["Badge", "badge_of"]

_LABEL: Final = "deskcert"
_GOOD: Final = ("passed", "refused_correctly")
_COLOURS: Final = {"brightgreen": "#2e7d32", "red": "#b3261e", "yellow": "#8a6100"}
_EM: Final = 6.1
"""Pixels of a letter of the badge's font at 11 px, on average; `textLength` makes it fit exactly."""


@dataclass(frozen=True, slots=True)
class Badge:
    message: str
    colour: str
    """One of the badge services' names."""

    def as_json(self) -> bytes:
        told = {"schemaVersion": 1, "label": _LABEL, "message": self.message, "color": self.colour}
        return (json.dumps(told, ensure_ascii=True) + "\n").encode()

    def as_svg(self) -> bytes:
        left, right = (round(len(words) * _EM) + 12 for words in (_LABEL, self.message))
        message, fill = html.escape(self.message), _COLOURS[self.colour]
        text = 'y="14" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" fill="#fff"'
        lines = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img"'
            f' aria-label="{_LABEL}: {message}">',
            f"<title>{_LABEL}: {message}</title>",
            f'<clipPath id="r"><rect width="{left + right}" height="20" rx="3"/></clipPath>',
            f'<g clip-path="url(#r)"><rect width="{left}" height="20" fill="#444"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{fill}"/></g>',
            f'<text x="6" textLength="{left - 12}" {text}>{_LABEL}</text>',
            f'<text x="{left + 6}" textLength="{right - 12}" {text}>{message}</text>',
            "</svg>",
        )
        return ("\n".join(lines) + "\n").encode()


def badge_of(certificate: Certificate, now: datetime) -> Badge:
    """Raises `LedgerTampered` for a certificate that has expired, `UsageError` for one of a single run."""
    if not certificate.is_suite:
        raise UsageError("a badge is made of a suite's certificate, suite.intoto.jsonl; this is one of a single run")
    told = certificate.statement.predicate
    if certificate.expired(now):
        raise LedgerTampered(f"the certificate expired on {told['expires_at']}; certify again")
    until = visible(str(told["expires_at"]))[:10]
    scope = told.get("scope")
    if told.get("certified") is True and scope is not None:
        return Badge(f"partial: {int(scope['scenarios'])} of {int(scope['of'])} scenarios until {until}", "yellow")
    if told.get("certified") is True:
        return Badge(f"certified {_share(told)} until {until}", "brightgreen")
    if told.get("exit_code") == 3:
        return Badge("inconclusive", "yellow")
    return Badge(f"not certified {_share(told)}", "red")


def _share(told: Mapping[str, Any]) -> str:
    totals = told["totals"]
    return f"{sum(int(totals['by_outcome'][name]) for name in _GOOD)}/{int(totals['planned'])}"
