"""Whether a scenario asks for what its application can do: deskcert's own can be seeded, disturbed and asked about its
effects; a user's can be reset, and asked by HTTP, SQL, file and Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deskcert.certify.app_spec import AppSpec, hooks_of
from deskcert.certify.call import check_callable
from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Path as KeyPath
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

__all__ = ["WINDOW_CHANGES", "check_hooks", "refuse_unmet"]

_OF_FIXTURE = ("effect", "no_effect", "sql", "file")
WINDOW_CHANGES = ("hang", "restart")
"""What can be done to a program that does not know of it: it is stopped; it is killed and started again."""


def refuse_unmet(loaded: Loaded, app: AppSpec | None) -> None:
    """`app`: None for deskcert's own. Raises `ConfigError` with file and line: said at the start, not found out in the
    middle of a run."""
    found = _of_fixture(loaded.value) if app is None else _of_own(loaded.value, app)
    problems = [f"{loaded.name}:{loaded.positions.value(p).line}: {path_text(p)}: {why}" for p, why in found]
    if problems:
        raise ConfigError(problems)


def _items(doc: Mapping[str, Any]) -> Iterator[tuple[KeyPath, Mapping[str, Any]]]:
    for part in ("oracle", "allowed_goal"):
        for index, item in enumerate(doc.get(part, ())):
            yield (part, index), item


def _of_fixture(doc: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for path, item in _items(doc):
        if not set(_OF_FIXTURE) & set(item):
            yield path, f"deskcert's own application is asked {', '.join(_OF_FIXTURE)} only"
        elif "effect" not in item and "times" in item:
            yield (
                (*path, "times"),
                "counts effects of a user's application; here write {effect: …, times: …}, or equals",
            )
    for key in ("url", "arguments", "reset"):
        if key in doc["start"]:
            yield ("start", key), "belongs to an application of your own (app: in suite.yaml); give page instead"


def _of_own(doc: Mapping[str, Any], app: AppSpec) -> Iterator[tuple[KeyPath, str]]:
    for key in ("seed", "faults"):
        if key in doc["start"]:
            yield ("start", key), "only deskcert's own application can be told this; write a reset hook"
    yield from _of_window(doc) if app.desktop is not None else _of_address(doc)
    yield from check_hooks(("start", "reset"), doc["start"].get("reset"), app)
    for path, item in _items(doc):
        if {"effect", "no_effect"} & set(item):
            yield path, "only deskcert's own application has an effect log; ask sql, http, file or python, with times"
        elif "sql" in item and app.database is None and not app.sql:
            yield path, "there is no database to ask; name one in suite.yaml with app: {database: …} or {sql: […]}"
        elif "python" in item and (why := check_callable(item["python"], app.suite)) is not None:
            yield (*path, "python"), why
        elif "times" in item and "equals" in item:
            yield (*path, "equals"), "times counts and equals compares; keep one of the two"


def _of_address(doc: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    if "perturb" in doc:
        yield ("perturb",), "only deskcert's own application can be changed in the middle of an action; take it out"
    if "arguments" in doc["start"]:
        yield ("start", "arguments"), "belongs to a desktop program (app: {desktop: …}); give page or url instead"


def _of_window(doc: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key in ("page", "url"):
        if key in doc["start"]:
            yield ("start", key), "a window has no address; give arguments: […] to its command, or an empty list"
    for index, change in enumerate(doc.get("perturb", ())):
        if change["do"] not in WINDOW_CHANGES or change.get("args"):
            known = ", ".join(WINDOW_CHANGES)
            yield ("perturb", index), f"what can be done to any desktop program is {known}, without args"


def check_hooks(path: KeyPath, raw: Any, app: AppSpec) -> Iterator[tuple[KeyPath, str]]:
    for index, hook in enumerate(hooks_of(raw)):
        place: KeyPath = (*path, index) if isinstance(raw, list) else path
        if "sql" in hook and app.database is None and not app.sql:
            yield place, "there is no database to change; name one with app: {database: …} or {sql: […]}"
        elif "python" in hook and (why := check_callable(hook["python"], app.suite)) is not None:
            yield place, why
