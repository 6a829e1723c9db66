"""A suite: a folder of scenarios with a policy. `builtin:NAME` is one that comes with the application under test."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from deskcert.certify.app_spec import AppSpec, read_app
from deskcert.certify.documents import contained, digest_of, read_document, shown
from deskcert.certify.env_secrets import NOTHING_SECRET, EnvSecrets, named_in
from deskcert.certify.scenario import Scenario, load_scenario
from deskcert.certify.suite_code import code_of
from deskcert_schema.errors import ConfigError, UsageError
from deskcert_schema.vocabulary import Mode

__all__ = ["Planned", "Suite", "folder_of", "load_suites", "make_plan", "policy_for", "select", "with_mode"]

BUILTIN = "builtin:"
_MOST_FILES = 5_000
_NOT_SCENARIOS = frozenset({"suite.yaml", "policy.yaml", "deskcert.yaml"})


@dataclass(frozen=True, slots=True)
class Suite:
    name: str
    digest: str
    """Of all scenarios and the policy."""
    scenarios: tuple[Scenario, ...]
    policy: Mapping[str, Any]
    policy_name: str
    """Where the policy came from, for messages."""
    https: bool = False
    """The application is served over HTTPS."""
    app: AppSpec | None = None
    """The user's own application; None for deskcert's."""
    desktop: bool = False
    """The application is a window on a Linux desktop, over AT-SPI."""
    mode: Mode = Mode.HEADLESS
    """How an agent may touch its pages."""
    secrets: EnvSecrets = NOTHING_SECRET
    size: int = 0
    """Scenarios before any were left out by `select`; the digest is of all of them."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One run that is to be."""

    scenario: Scenario
    trial: int
    """1 is the first."""
    seed: int

    def recorded(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario.id,
            "trial": self.trial,
            "seed": self.seed,
            "expected": self.scenario.expected,
            "area": self.scenario.area,
            "attribution": self.scenario.attribution,
        }


def load_suites(names: Sequence[str], *, base: Path, policy: Path | None) -> Suite:
    """Several suites become one, with one policy: `policy`, or the first suite's own that has one.

    Raises `ConfigError` for every bad file (all of them are read first), `UsageError` for a name that is none.
    """
    folders = [folder_of(name, base) for name in names]
    app, named = _one_app(folders)
    mode = _one_mode(folders)
    problems: list[str] = []
    scenarios: list[Scenario] = []
    for name, folder in zip(names, folders, strict=True):
        builtin = _built_in(name)
        found: list[Scenario] = []
        for path in (p for f in _with_included(folder, builtin=builtin) for p in _scenario_files(f)):
            try:
                found.append(load_scenario(path, builtin=builtin, app=app))
            except ConfigError as exc:
                problems += exc.problems
        scenarios += _selected(folder, found)
    problems += _duplicates(scenarios)
    places = [f for n, folder in zip(names, folders, strict=True) for f in _with_included(folder, builtin=_built_in(n))]
    own = (f / "policy.yaml" for f in places)
    policy_path = policy or next((p for p in own if p.exists() or p.is_symlink()), None)
    rules: Mapping[str, Any] = {}
    try:
        if policy is None and policy_path is not None:
            contained(policy_path, policy_path.parent)
        rules = _read_policy(policy_path, folders[0])
        problems += _clashing_rules(scenarios, rules, policy_path)
    except ConfigError as exc:
        problems += exc.problems
    if problems:
        raise ConfigError(problems)
    if not scenarios:
        raise ConfigError(
            f"{shown(folders[0])}:1: the suite holds no scenario; expected files like orders-approve.yaml"
        )
    title = "+".join(n if n.startswith(BUILTIN) else Path(n).resolve().name for n in names)
    https = any(_suite_file(f).get("https") is True for f in folders)
    told: dict[str, Any] = {"scenarios": {s.id: s.digest for s in scenarios}, "policy": digest_of(rules)}
    desktop = _on_desktop(folders[0])
    what = {"app": app.digest} if app is not None else {"app": "desktop"} if desktop else {}
    what |= {} if mode is Mode.HEADLESS else {"mode": mode.value}
    code = {} if app is None else {str(n): c for n, f in enumerate(places) if (c := code_of(f))}
    digest = digest_of(told | ({"https": True} if https else {}) | what | ({"code": code} if code else {}))
    named = {**dict(pair for s in reversed(scenarios) for pair in s.secrets), **named}
    policy_name = shown(policy_path) if policy_path else ""
    secrets = EnvSecrets.read(named)
    suite = Suite(title, digest, tuple(scenarios), rules, policy_name, https, app, desktop, mode, secrets)
    suite = replace(suite, size=len(scenarios))
    _check_patterns(suite)
    return suite


def _built_in(name: str) -> bool:
    return name.startswith(BUILTIN)


def _suite_file(folder: Path) -> Mapping[str, Any]:
    path = folder / "suite.yaml"
    if not (path.exists() or path.is_symlink()):
        return {}
    contained(path, folder)
    told: Mapping[str, Any] = read_document(path, "suite").value
    return told


def _one_app(folders: Sequence[Path]) -> tuple[AppSpec | None, dict[str, str]]:
    """The application that all suites are about, and the secrets that it names. Raises `ConfigError`."""
    apps: list[AppSpec | None] = []
    named: dict[str, str] = {}
    for folder in folders:
        path, told = folder / "suite.yaml", _suite_file(folder)
        if told.get("app", "fixture") in ("fixture", "desktop"):
            apps.append(None)
            continue
        loaded = read_document(path, "suite")
        named = {**dict(named_in(loaded, ("app",))), **named}
        apps.append(read_app(loaded, folder))
    desktops = [_on_desktop(folder) for folder in folders]
    if len(dict.fromkeys((d, None if a is None else a.digest) for a, d in zip(apps, desktops, strict=True))) > 1:
        wheres = ", ".join(shown(f) for f in folders)
        raise ConfigError(
            f"{shown(folders[0] / 'suite.yaml')}:1: the suites {wheres} are about different applications; certify each"
            " in a run of deskcert ci of its own"
        )
    return apps[0], named


def _one_mode(folders: Sequence[Path]) -> Mode:
    """Raises `ConfigError`: what one suite permits must not be permitted in another by the way."""
    modes = {shown(f / "suite.yaml"): Mode(_suite_file(f).get("mode", Mode.HEADLESS)) for f in folders}
    for folder in folders:
        if _on_desktop(folder) and "mode" in _suite_file(folder):
            raise ConfigError(f"{shown(folder / 'suite.yaml')}:1: mode: is about pages, and this suite is on a desktop")
    if len(set(modes.values())) > 1:
        wheres = ", ".join(f"{where} {mode.value}" for where, mode in modes.items())
        raise ConfigError(
            f"{next(iter(modes))}:1: the suites permit different modes ({wheres}); certify each in a run of deskcert ci"
            " of its own"
        )
    return next(iter(modes.values()))


def with_mode(suite: Suite, mode: str | None) -> Suite:
    """What the command line says counts, not the suite. Raises `UsageError`."""
    if mode is None:
        return suite
    if suite.desktop:
        raise UsageError(f"--mode is about pages, and {suite.name} is on a desktop; leave it out")
    return replace(suite, mode=Mode(mode))


def _on_desktop(folder: Path) -> bool:
    app = _suite_file(folder).get("app")
    return app == "desktop" or (isinstance(app, Mapping) and "desktop" in app)


def _with_included(folder: Path, *, builtin: bool) -> list[Path]:
    """The folder, after the built-in suites that it includes; each once, whoever includes it."""
    if not builtin:
        return [folder]
    found: list[Path] = []
    for name in _suite_file(folder).get("include", ()):
        found += [f for f in _with_included(folder_of(BUILTIN + name, folder), builtin=True) if f not in found]
    return [*found, folder]


def _selected(folder: Path, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Those that the suite's file wants. Raises `ConfigError` for an id that none has."""
    told = _suite_file(folder)
    only, tags = told.get("only"), set(told.get("tags", ()))
    missing = set(only or ()) - {s.id for s in scenarios}
    if missing:
        raise ConfigError(f"{shown(folder / 'suite.yaml')}:1: only: there is no scenario {', '.join(sorted(missing))}")
    return [s for s in scenarios if (only is None or s.id in only) and (not tags or tags & set(s.tags))]


def folder_of(name: str, base: Path) -> Path:
    """Of a suite that is named. Raises `UsageError` where there is none."""
    if not name.startswith(BUILTIN):
        folder = base / name
        if not folder.is_dir():
            raise UsageError(f"there is no suite folder {shown(folder)}; name a folder, or builtin:core")
        return folder
    short = name.removeprefix(BUILTIN)
    try:
        root = Path(str(files("deskcert_fixture_app"))) / "suites"
    except ModuleNotFoundError:
        raise UsageError("the built-in suites need the fixture extra: pip install 'deskcert[fixture]'") from None
    known = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("_")) if root.is_dir() else []
    if short not in known:
        raise UsageError(f"there is no built-in suite {name!r}; there is: {', '.join(BUILTIN + k for k in known)}")
    return root / short


def _scenario_files(folder: Path) -> list[Path]:
    for path in sorted(folder.glob("*.yml")):
        raise ConfigError(f"{shown(path)}:1: files of a suite end in .yaml; rename it to {path.stem}.yaml")
    found = sorted(folder.glob("*.yaml"))
    if len(found) > _MOST_FILES:
        raise ConfigError(f"{shown(folder)}:1: holds {len(found)} files, more than {_MOST_FILES}; make several suites")
    return [p for p in found if p.name not in _NOT_SCENARIOS and not p.name.endswith(".plan.yaml")]


def _duplicates(scenarios: Sequence[Scenario]) -> list[str]:
    seen: dict[str, Scenario] = {}
    problems = []
    for scenario in scenarios:
        first = seen.setdefault(scenario.id, scenario)
        if first is not scenario:
            problems.append(
                f"{shown(scenario.path)}:1: the id {scenario.id!r} is used twice, first in {shown(first.path)}; "
                "expected an id of its own"
            )
    return problems


def _clashing_rules(
    scenarios: Sequence[Scenario], policy: Mapping[str, Any], policy_path: Path | None
) -> Iterator[str]:
    """A finding names a rule by its id alone, so a scenario's rule may not take one of the policy's."""
    lists = (policy.get("deny", ()), policy.get("allow", ()), policy.get("network", {}).get("writes", ()))
    taken = {rule["id"] for rules in lists for rule in rules}
    for scenario in scenarios:
        for rule, line in scenario.rule_lines:
            if rule in taken:
                yield (
                    f"{shown(scenario.path)}:{line}: the id {rule!r} is used twice, first in "
                    f"{shown(policy_path) if policy_path else 'the policy'}; give this rule its own"
                )


def _read_policy(path: Path | None, folder: Path) -> Mapping[str, Any]:
    if path is None:
        raise ConfigError(
            f"{shown(folder / 'policy.yaml')}:1: the suite has no policy; write a policy.yaml there or give --policy"
        )
    doc: Mapping[str, Any] = read_document(path, "policy").value
    return doc


def policy_for(suite: Suite, scenario: Scenario) -> tuple[dict[str, Any], str]:
    """The suite's policy with the scenario's additions, and the digest that every record of the run names."""
    from deskcert.guard.policy import merge

    merged = merge(suite.policy, scenario.policy_added)
    return merged, digest_of(merged)


def _check_patterns(suite: Suite) -> None:
    """Raises `ConfigError` for what only compiling finds: a regular expression that is none, for example."""
    from deskcert.guard.policy import compile_policy

    problems: list[str] = []
    for scenario in (None, *suite.scenarios):
        try:
            document = suite.policy if scenario is None else policy_for(suite, scenario)[0]
            compile_policy(document, digest="")
        except ConfigError as exc:
            name = suite.policy_name if scenario is None else shown(scenario.path)
            problems += [f"{name}:1: policy: {problem}" for problem in exc.problems]
            if scenario is None:
                break
    if problems:
        raise ConfigError(problems)


def select(suite: Suite, only: str | None, tags: Sequence[str] = ()) -> Suite:
    """Keep scenarios with one of the tags and an id that one of the globs (with commas) matches. Raises
    `UsageError` when none is left, or a glob matches nothing."""
    if tags:
        tagged = tuple(s for s in suite.scenarios if set(tags) & set(s.tags))
        if not tagged:
            known = ", ".join(sorted({t for s in suite.scenarios for t in s.tags})) or "none"
            raise UsageError(f"--tag {' --tag '.join(tags)} matches no scenario; there are the tags: {known}")
        suite = replace(suite, scenarios=tagged)
    if only is None:
        return suite
    kept: set[str] = set()
    for glob in only.split(","):
        found = {s.id for s in suite.scenarios if fnmatch.fnmatchcase(s.id, glob.strip())}
        if not found:
            known = ", ".join(s.id for s in suite.scenarios)
            raise UsageError(f"--only {glob} matches no scenario; there are: {known}")
        kept |= found
    return replace(suite, scenarios=tuple(s for s in suite.scenarios if s.id in kept))


def make_plan(suite: Suite, *, trials: int, seed: int) -> tuple[Planned, ...]:
    """Scenario × trial; trial i (from 0) uses `seed` + i."""
    return tuple(Planned(s, i + 1, seed + i) for s in suite.scenarios for i in range(trials))
