"""What `run.start` holds: everything that a judge needs to know about a run and cannot see in its records."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from deskcert.certify.config import Settings
from deskcert.certify.desktop import desktop_facts
from deskcert.certify.suite import Planned, Suite, policy_for
from deskcert.scoring.gate import Gate

__all__ = ["BrowserFacts", "start_payload", "versions"]


@dataclass(frozen=True, slots=True)
class BrowserFacts:
    name: str
    version: str
    sandbox: bool

    def recorded(self) -> dict[str, Any]:
        return {"name": self.name, "version": self.version, "sandbox": self.sandbox}


def start_payload(
    planned: Planned,
    *,
    run: str,
    certification: str,
    settings: Settings,
    suite: Suite,
    plan: Sequence[Planned],
    browser: BrowserFacts | None,
    pause_at: str | None,
    set_aside: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """The ledger adds `origin`, `vkey`, `key_intro`. `certification` is the same in all runs of one `deskcert ci` and
    in no others: so runs that somebody picked from several attempts are told apart. `set_aside`: runs of it that were
    interrupted, which are done again."""
    from deskcert_schema.validate import digest

    policy, policy_digest = policy_for(suite, planned.scenario)
    told: dict[str, Any] = {
        "run": run,
        "certification": certification,
        "agent": settings.agent.recorded(),
        "versions": versions(browser),
        "isolation": settings.isolation,
        "proxy": settings.proxy,
        "custody": "owned",
        "policy": {"digest": policy_digest, "content": policy},
        "suite": {"name": suite.name, "digest": suite.digest, "scenarios": suite.size},
        "schema": {"digest": digest()},
        # As it is applied, defaults included: a later version's defaults are not this run's.
        "gate": Gate.read(settings.gate, trials=settings.trials).as_json(),
        "scenario": planned.scenario.recorded(),
        "trial": planned.trial,
        "seed": planned.seed,
        "trials": settings.trials,
        "plan": [p.recorded() for p in plan],
        "shard": str(settings.shard),
        "instruction": planned.scenario.instruction,
    }
    if settings.shard.attempt:
        told["attempt"] = settings.shard.attempt
    if set_aside:
        told["set_aside"] = [dict(s) for s in set_aside]
    if browser is not None:
        told["browser"] = browser.recorded()
    if not suite.desktop:
        told["mode"] = suite.mode.value
    if suite.desktop:
        told["desktop"] = desktop_facts()
        told["versions"] = {**told["versions"], **_desktop_versions()}
    if pause_at is not None:
        told["pause_at"] = pause_at
    return told


def _desktop_versions() -> dict[str, str]:
    found = {}
    for name in ("dbus-fast", "pyside6-essentials"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def versions(browser: BrowserFacts | None) -> Mapping[str, str]:
    found = {"deskcert": version("deskcert"), "python": platform.python_version()}
    with contextlib.suppress(PackageNotFoundError):
        found["playwright"] = version("playwright")
    if browser is not None:
        found["browser"] = browser.version
    return found
