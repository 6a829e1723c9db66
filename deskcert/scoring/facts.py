"""What `run.start` says about a run, without who ran it.

Rules see `RunFacts` only: no agent's name, no run id, no origin. So the same conversation gives the same findings,
whoever led it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deskcert.scoring.read import Record, boolean, items, number, part, text
from deskcert_schema.vocabulary import Attribution, Expected

__all__ = ["OWNED", "Identity", "RunFacts", "shard_of"]

OWNED = "owned"
"""Custody of a browser that deskcert started itself; any other custody is never certified."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    expected: Expected | None
    """None when `run.start` does not say: then nothing can be judged."""
    attribution: Attribution | None
    """What the scenario is about, and so what a failing agent should get."""
    bait: tuple[str, ...]
    """Texts that the agent has to have seen before it may refuse."""
    custody: str
    proxied: bool
    """All of the browser's traffic passed the proxy, so the run says."""
    word: str
    """The ledger's headline (`complete`, `interrupted`, …)."""

    @classmethod
    def read(cls, start: Record, *, word: str) -> RunFacts:
        scenario = part(start, "scenario")
        return cls(
            expected=_member(Expected, text(scenario, "expected")),
            attribution=_member(Attribution, text(scenario, "attribution")),
            bait=tuple(b for b in items(scenario, "bait") if isinstance(b, str)),
            custody=text(start, "custody"),
            proxied=text(start, "proxy") in {"required", "optional"},
            word=word,
        )

    @property
    def about_forbidden(self) -> bool:
        """An effect that must not happen is a forbidden one here, rather than one on the wrong thing."""
        return self.expected is Expected.REFUSE or self.attribution is Attribution.POLICY_BREACH


def _member[E: (Expected, Attribution)](kind: type[E], value: str) -> E | None:
    try:
        return kind(value)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Identity:
    """Which run it is. Kept away from the rules."""

    run: str
    scenario: str
    trial: int
    seed: int
    area: str
    deterministic: bool
    shard: tuple[int, int]
    """Which part of the plan its certification ran, and of how many: (1, 1) is the whole."""
    certification: str
    environment: Mapping[str, Any]
    """isolation, proxy, custody, browser sandbox or desktop, mode: as the first line of a summary states them."""

    @classmethod
    def read(cls, start: Record) -> Identity:
        return cls(
            run=text(start, "run"),
            scenario=text(start, "scenario", "id"),
            trial=number(start, "trial") or 0,
            seed=number(start, "seed") or 0,
            area=text(start, "scenario", "area"),
            deterministic=boolean(start, "agent", "deterministic") is True,
            shard=shard_of(text(start, "shard")),
            certification=text(start, "certification"),
            environment={
                "isolation": text(start, "isolation") or "not recorded",
                "proxy": text(start, "proxy") or "not recorded",
                "custody": text(start, "custody") or "not recorded",
                **_screen(start),
                **({"mode": mode} if (mode := text(start, "mode")) else {}),
            },
        )


def _screen(start: Record) -> Mapping[str, str]:
    """A desktop has no browser whose sandbox could be on."""
    if desktop := part(start, "desktop"):
        return {"desktop": "private" if boolean(desktop, "private") else "shared"}
    sandbox = boolean(part(start, "browser"), "sandbox")
    return {"browser_sandbox": "not recorded" if sandbox is None else ("on" if sandbox else "off")}


_SHARD = re.compile(r"([1-9][0-9]{0,4})/([1-9][0-9]{0,4})", re.ASCII)


def shard_of(words: str) -> tuple[int, int]:
    """`2/3`; whatever else it says is the whole."""
    found = _SHARD.fullmatch(words)
    number, count = (int(found[1]), int(found[2])) if found is not None else (1, 1)
    return (number, count) if number <= count else (1, 1)
