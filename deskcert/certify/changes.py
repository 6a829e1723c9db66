"""What has changed since a certificate was issued: agent, policy, suite, schema, which revoke it; browser, deskcert and
what else it was made with, a gate that is another, and scenarios that it was never about, which are told."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from deskcert.certify.config import Overrides, Settings, load_settings
from deskcert.certify.start_record import versions
from deskcert.certify.suite import Suite, load_suites, policy_for
from deskcert.scoring.gate import Gate
from deskcert_schema.errors import DeskcertError, UsageError

__all__ = ["Change", "InUse", "changes", "in_use"]

_FILE: Final = "agent file "
_VERSION_S: Final = 20.0
_NAMED: Final = 10
"""Scenarios that are named; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Change:
    what: str
    """`agent`, `agent file my_agent.py`, `policy`, `suite`, `schema`, `scenarios`, `gate`, `browser`, `deskcert`, …"""
    revokes: bool
    text: str


@dataclass(frozen=True, slots=True)
class InUse:
    """What would be certified here and now."""

    digests: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Name -> hex SHA-256; of policies there may be several."""
    versions: Mapping[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """What could not be looked at, and why."""
    scenarios: tuple[str, ...] = ()
    """Of the suite, all of them: a certificate made with `--only` has the digest of the whole suite."""
    gate: Mapping[str, Any] | None = None
    """As a verdict writes it."""


def in_use(given: Overrides, cwd: Path) -> InUse:
    """Reads the configuration as `deskcert ci` does. Raises `ConfigError` for one that is wrong, `UsageError` for an
    agent or suite that is named and not there."""
    from deskcert_schema.validate import digest

    digests: dict[str, frozenset[str]] = {"schema": frozenset({digest()})}
    unknown: list[str] = []
    scenarios: tuple[str, ...] = ()
    gate: Mapping[str, Any] | None = None
    settings = _settings(given, cwd)
    if settings is None:
        unknown.append("agent, policy and suite: there is no deskcert.yaml here; name --config, or --agent and --suite")
    else:
        suite = load_suites(settings.suites, base=settings.base, policy=settings.policy)
        digests |= _digests(settings, suite)
        scenarios = tuple(sorted(s.id for s in suite.scenarios))
        gate = Gate.read(settings.gate, trials=settings.trials).as_json()
    found = dict(versions(None))
    try:
        found["browser"] = _browser_version()
    except (DeskcertError, OSError, subprocess.SubprocessError, ValueError) as exc:
        unknown.append(f"browser: {exc}")
    return InUse(digests, found, tuple(unknown), scenarios, gate)


def _settings(given: Overrides, cwd: Path) -> Settings | None:
    named = given.agent is not None or given.command or given.config is not None
    return load_settings(given, cwd=cwd) if named or (cwd / "deskcert.yaml").exists() else None


def _digests(settings: Settings, suite: Suite) -> dict[str, frozenset[str]]:
    return {
        "agent": frozenset({settings.agent.digest}),
        "suite": frozenset({suite.digest}),
        "policy": frozenset(policy_for(suite, scenario)[1] for scenario in suite.scenarios),
        **{f"{_FILE}{name}": frozenset({digest}) for name, digest in settings.agent.files},
    }


def _browser_version() -> str:
    """Asked of the program that would be started."""
    from deskcert.adapters.web.find_browser import find_browser

    command = [str(find_browser()), "--version", "--no-sandbox"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=_VERSION_S, check=True).stdout
    found = re.search(r"[0-9]+(?:\.[0-9]+)+", told)
    if found is None:
        raise UsageError("it does not say its version")
    return found[0]


def changes(predicate: Mapping[str, Any], now: InUse) -> tuple[list[Change], list[str]]:
    """From a certificate's statement. Returns what is another, and the names of what could not be compared."""
    certified: dict[str, set[str]] = {}
    for item in predicate.get("revoked_by_change_of") or ():
        certified.setdefault(str(item["name"]), set()).add(str(item["digest"]["sha256"]))
    found: list[Change] = []
    skipped: list[str] = []
    known = "agent" in now.digests
    for name, digests in certified.items():
        current = now.digests.get(name)
        if current is None and not (known and name.startswith(_FILE)):
            skipped.append(name)
        elif current is None or not digests <= current:
            found.append(Change(name, True, f"the {name} in use is not the one that was certified"))
    found += _narrower(predicate, now)
    found += _versions(predicate.get("versions") or {}, now.versions, skipped)
    return found, skipped


def _narrower(predicate: Mapping[str, Any], now: InUse) -> Iterator[Change]:
    """What the verdict was not about, and what it was decided by; of a run's certificate neither is known."""
    if "gate" not in predicate:
        return
    tried = {str(run.get("scenario")) for run in predicate.get("runs") or ()}
    untried = [name for name in now.scenarios if name not in tried]
    if untried:
        named = ", ".join(untried[:_NAMED]) + (f" and {len(untried) - _NAMED} more" if untried[_NAMED:] else "")
        share = f"{len(now.scenarios) - len(untried)} of the suite's {len(now.scenarios)} scenarios"
        yield Change("scenarios", False, f"it is about {share}; not about {named}")
    if now.gate is not None and predicate["gate"] != now.gate:
        others = [
            name for name in {**now.gate, **predicate["gate"]} if predicate["gate"].get(name) != now.gate.get(name)
        ]
        yield Change("gate", False, f"it was decided by another gate than the one in use: {', '.join(sorted(others))}")


def _versions(certified: Mapping[str, Any], now: Mapping[str, str], skipped: list[str]) -> Sequence[Change]:
    if not certified:
        skipped.append("versions")
    skipped += [name for name in certified if name not in now]
    return [
        Change(name, False, f"{name} was {was}, and is {now[name]} here")
        for name, was in certified.items()
        if name in now and now[name] not in str(was).split(", ")
    ]
