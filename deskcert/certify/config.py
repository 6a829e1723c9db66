"""`deskcert.yaml` and the command line become one `Settings`; what this build cannot honour is refused, not ignored."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from deskcert.certify.config_checks import check_places
from deskcert.certify.documents import read_document, shown
from deskcert.certify.scenario import Scenario
from deskcert.certify.shard import WHOLE, Shard
from deskcert.certify.suite import BUILTIN
from deskcert_schema.errors import ConfigError, UsageError
from deskcert_schema.strict_yaml import Loaded

__all__ = ["AgentSpec", "Overrides", "Settings", "load_settings"]

CONFIG_NAME = "deskcert.yaml"


@dataclass(frozen=True, slots=True)
class AgentSpec:
    name: str
    """`builtin:careful`, or the command's program."""
    command: tuple[str, ...]
    """Empty for a built-in: it is given the plan of each scenario, so its command differs from run to run."""
    builtin: str | None
    deterministic: bool = False
    """Trials with the same seed then count once."""
    environment: tuple[str, ...] = ()
    """Names of variables that it is given beyond the allow-list."""
    transport: str = "jsonl"
    """`jsonl | mcp-http | mcp-stdio`"""
    where: str = ""
    """`file:line` of the configuration that says so; empty for the command line."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and hex SHA-256 of the project's own files that the command names: another content is another agent."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the command as JSON, before placeholders are filled."""
        told = [self.name] if self.builtin else list(self.command)
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def recorded(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "command_digest": self.digest,
            "transport": self.transport,
            "deterministic": self.deterministic,
        } | ({"files": dict(self.files)} if self.files else {})

    def check_plans(self, scenarios: Sequence[Scenario]) -> None:
        """Raises `UsageError` when a reference agent would have no plan to follow."""
        from deskcert.agents.registry import REGISTRY

        if self.builtin is None or REGISTRY[self.builtin].null is not None:
            return
        missing = [s.id for s in scenarios if s.plan is None]
        if missing:
            raise UsageError(
                f"{self.name} follows plans, and there is no {missing[0]}.plan.yaml beside {missing[0]}.yaml"
                f"{f' (and {len(missing) - 1} more)' if len(missing) > 1 else ''}; write one, or certify your own agent"
            )

    def command_for(self, plan: Path | None) -> list[str]:
        """`plan`: of this scenario, for a built-in agent."""
        if self.builtin is None:
            return list(self.command)
        command = [sys.executable, "-m", "deskcert.agents", self.builtin]
        return command + ([] if plan is None else ["--plan", str(plan.resolve())])


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line said; None where it said nothing."""

    agent: str | None = None
    command: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    policy: Path | None = None
    trials: int | None = None
    seed: int | None = None
    workers: int | None = None
    config: Path | None = None
    ignore_file: bool = False
    """Do not look for a configuration in the working folder."""
    shard: Shard = field(default=WHOLE, kw_only=True)
    transport: str | None = None
    isolation: str | None = None
    proxy: str | None = None
    screenshots: str | None = None
    headed: bool = False
    mode: str | None = None
    tape: bool = False
    max_failures: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    base: Path
    """The project's folder: relative suites and policy are read from it, the agent starts in it, its key is there."""
    agent: AgentSpec
    suites: tuple[str, ...]
    policy: Path | None
    trials: int
    seed: int
    workers: int
    gate: Mapping[str, Any]
    reports: Mapping[str, Path] = field(default_factory=dict)
    """Where each report goes; `summary`: beside `<out>/summary.txt`."""
    shard: Shard = WHOLE
    isolation: str = "none"
    """`bwrap | netns | none`"""
    proxy: str = "off"
    """`required | optional | off`"""
    screenshots: str = "off"
    """`off | findings | all`"""
    tape: bool = False
    """Keep what goes over the network, without its secrets, for a replay."""
    headed: bool = False
    """A browser that can be seen; for whoever wants to look, never for certifying."""
    mode: str | None = None
    """How pages may be touched, instead of what the suite says."""
    max_failures: int | None = None
    """After so many runs that are not as they should be no further one is started."""
    quarantine_over: tuple[str, ...] = ()
    """Scenarios whose quarantine has ended: they count again."""


def load_settings(given: Overrides, *, cwd: Path, today: date | None = None) -> Settings:
    """`today`: for what ends on a day; else the day in UTC. Raises `ConfigError` (file and line) or `UsageError`."""
    if given.config is not None and not given.config.exists():
        raise ConfigError(f"{shown(given.config)}:1: there is no such file; expected a {CONFIG_NAME}")
    path = given.config
    if path is None and not given.ignore_file and (cwd / CONFIG_NAME).exists():
        path = cwd / CONFIG_NAME
    doc: Mapping[str, Any] = {}
    loaded = None
    if path is not None:
        loaded = read_document(path, "config")
        doc = loaded.value
    base = path.parent if path is not None else cwd
    with _in_file(loaded, "agent", by_hand=given.transport or given.agent or given.command):
        agent = _over(_agent(given, doc), given.transport)
        agent = replace(agent, files=_own_files(agent.command, base.resolve()))
    if loaded is not None and not (given.agent or given.command):
        agent = replace(agent, where=f"{loaded.name}:{loaded.positions.value(('agent',)).line}")
    check_places(loaded, base, suites=not given.suites, policy=given.policy is None)
    with _in_file(loaded, "isolation", by_hand=given.isolation):
        isolation = _isolation(given.isolation or str(doc.get("isolation", "none")))
    with _in_file(loaded, "proxy", by_hand=given.proxy):
        proxy = _proxy(given.proxy or str(doc.get("proxy", "off")))
    trials = _at_least_one("--trials", given.trials, int(doc.get("trials", 1)))
    declared, over = _quarantine(doc.get("gate", {}), today or datetime.now(UTC).date())
    gate = _gate(declared, trials, shown(path) if path else "")
    failures = given.max_failures if given.max_failures is not None else doc.get("max_failures")
    return Settings(
        base=base.resolve(),
        agent=agent,
        suites=_from_cwd(given.suites, cwd) or tuple(doc.get("suites", (f"{BUILTIN}core",))),
        policy=given.policy or (base / doc["policy"] if "policy" in doc else None),
        trials=trials,
        seed=given.seed if given.seed is not None else int(doc.get("seed", 1)),
        workers=_at_least_one("--workers", given.workers, int(doc.get("workers", 1))),
        gate=gate,
        isolation=isolation,
        proxy=proxy,
        headed=given.headed,
        mode=given.mode,
        tape=_tape(given, doc, proxy),
        screenshots=given.screenshots or str(doc.get("evidence", {}).get("screenshots", "off")),
        reports={name: base / path for name, path in doc.get("reports", {}).items()},
        shard=given.shard,
        max_failures=None if failures is None else _at_least_one("--max-failures", int(failures), 1),
        quarantine_over=over,
    )


def _agent(given: Overrides, doc: Mapping[str, Any]) -> AgentSpec:
    if given.agent is not None and given.command:
        raise UsageError("give either --agent or a command after --, not both")
    wanted: Any = given.agent or (list(given.command) if given.command else doc.get("agent"))
    if isinstance(wanted, Mapping):
        command = tuple(wanted["command"])
        name = str(wanted.get("name", Path(command[0]).name))
        deterministic, environment = wanted.get("deterministic") is True, tuple(wanted.get("env", ()))
        return AgentSpec(name, command, None, deterministic, environment, str(wanted.get("transport", "jsonl")))
    if wanted is None:
        raise UsageError(
            "no agent to certify: give --agent builtin:careful, or your agent's command after --, "
            f"for example: deskcert ci -- python my_agent.py   (or agent: in {CONFIG_NAME})"
        )
    if isinstance(wanted, str):
        return _builtin(wanted)
    return AgentSpec(Path(wanted[0]).name, tuple(wanted), None)


def _own_files(command: Sequence[str], base: Path) -> tuple[tuple[str, str], ...]:
    """Of the words of a command that are files below the project's folder. What cannot be read is not named."""
    found = {}
    for word in command:
        path = base / word
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.resolve().is_relative_to(base):
                with path.open("rb") as file:
                    found[path.resolve().relative_to(base).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
    return tuple(sorted(found.items()))


@contextmanager
def _in_file(loaded: Loaded | None, key: str, *, by_hand: object) -> Iterator[None]:
    """An error about what the file says names the file and the line; about the command line it does not."""
    try:
        yield
    except ConfigError:
        raise
    except UsageError as exc:
        if loaded is None or by_hand or key not in loaded.value:
            raise
        line = loaded.positions.value((key,)).line
        raise ConfigError(f"{loaded.name}:{line}: {key}: {exc}") from exc


def _over(agent: AgentSpec, transport: str | None) -> AgentSpec:
    """The agent over the way in that was asked for. Raises `UsageError` for one that it cannot have."""
    wanted = transport or agent.transport
    if agent.builtin is not None and wanted != "jsonl":
        raise UsageError(f"{agent.name} speaks JSON lines only; leave --transport out")
    for placeholder, ways in _PLACEHOLDERS.items():
        if wanted not in ways and any(placeholder in word for word in agent.command):
            raise UsageError(
                f"the agent's command holds {placeholder}, which transport {wanted} does not have; "
                f"use transport {' or '.join(ways)}"
            )
    if wanted != "jsonl":
        from deskcert.ways.mcp.serving import need_sdk

        need_sdk()
    return replace(agent, transport=wanted)


_PLACEHOLDERS = {"{mcp_url}": ("mcp-http",), "{mcp_config}": ("mcp-http", "mcp-stdio")}


def _isolation(kind: str) -> str:
    if kind != "none":
        from deskcert.ways.isolation import need

        need(kind)
    return kind


def _tape(given: Overrides, doc: Mapping[str, Any], proxy: str) -> bool:
    wanted = given.tape or doc.get("evidence", {}).get("network") == "tape"
    if wanted and proxy == "off":
        raise UsageError("a tape is kept by the proxy: take --proxy required with it")
    return wanted


def _proxy(wanted: str) -> str:
    """What there will be. Raises `UsageError` when the proxy is required and its program is not installed."""
    if wanted == "off" or find_spec("mitmproxy") is not None:
        return wanted
    if wanted == "required":
        raise UsageError("a proxy is required and needs mitmproxy: pip install 'deskcert[proxy]'; or take proxy: off")
    return "off"


def _builtin(name: str) -> AgentSpec:
    from deskcert.agents.registry import agent_names

    short = name.removeprefix(BUILTIN)
    if not name.startswith(BUILTIN) or short not in agent_names():
        known = ", ".join(f"{BUILTIN}{n}" for n in agent_names())
        raise UsageError(f"there is no built-in agent {name!r}; there is: {known}. A command stands after --")
    return AgentSpec(name, (), short, deterministic=True)


def _from_cwd(names: Sequence[str], cwd: Path) -> tuple[str, ...]:
    """The command line's folders are relative to where the user stands, not to the configuration."""
    return tuple(n if n.startswith(BUILTIN) else str(cwd / n) for n in names)


def _at_least_one(option: str, given: int | None, otherwise: int) -> int:
    number = otherwise if given is None else given
    if number < 1:
        raise UsageError(f"{option} must be 1 or more, not {number}")
    return number


_LONGEST_QUARANTINE: Final = 366
"""Days. What is put away for longer is left out of the suite in all but name."""


def _quarantine(gate: Mapping[str, Any], today: date) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The gate with the quarantines that hold today, scenario → last day, and the scenarios whose has ended. Raises
    `ConfigError` for a day that there is not."""
    entries = gate.get("quarantine", [])
    try:
        far = [e for e in entries if (date.fromisoformat(str(e["until"])) - today).days > _LONGEST_QUARANTINE]
        holding = {str(e["scenario"]): str(e["until"]) for e in entries if date.fromisoformat(str(e["until"])) >= today}
    except ValueError as exc:
        raise ConfigError(f"gate.quarantine: until: {exc}; expected a day such as 2026-12-31") from exc
    if far:
        raise ConfigError(
            f"gate.quarantine: {far[0]['scenario']} is put away until {far[0]['until']}, which is no end; expected a"
            f" day at most {_LONGEST_QUARANTINE} days from now, or leave the scenario out of the suite"
        )
    rest = {key: value for key, value in gate.items() if key != "quarantine"}
    over = tuple(str(e["scenario"]) for e in entries if str(e["scenario"]) not in holding)
    return rest | ({"quarantine": holding} if holding else {}), over


def _gate(gate: Mapping[str, Any], trials: int, name: str) -> dict[str, Any]:
    k = gate.get("pass_hat", {}).get("k", trials)
    if k > trials:
        where = f"{name}:1: gate.pass_hat.k: " if name else ""
        raise ConfigError(f"{where}pass^{k} needs at least {k} trials, but there are {trials}; raise trials or lower k")
    if not gate:
        return {}
    return {**gate, "pass_hat": {"at_least": "1", **gate.get("pass_hat", {}), "k": k}}
