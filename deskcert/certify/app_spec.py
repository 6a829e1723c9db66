"""A user's own application, as `app:` of `suite.yaml` describes it: how it is started, when it is ready, how it comes
to its starting state, and where its data can be looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit

from deskcert.certify.documents import digest_of
from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Path as KeyPath
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

__all__ = ["AppSpec", "Place", "Ready", "hooks_of", "read_app"]

_READY_S: Final = 20
_SETTLE_MS: Final = 300
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True)
class Ready:
    """How it is known that the application can be used. One of the three, or its own address where none is given."""

    http: str | None
    port: bool
    output: str | None
    """A text in one line of its output."""
    seconds: int


@dataclass(frozen=True, slots=True)
class Place:
    """What the placeholders of one running application stand for."""

    folder: Path
    """The run's own: the application starts in it, and keeps its data there."""
    suite: Path
    port: int | None
    url: str

    def fill(self, value: Any) -> Any:
        """`{port} {folder} {suite} {url}` in every text; other braces are the user's own."""
        match value:
            case str():
                known = {"{folder}": str(self.folder), "{suite}": str(self.suite), "{url}": self.url}
                if self.port is not None:
                    known["{port}"] = str(self.port)
                for word, stands_for in known.items():
                    value = value.replace(word, stands_for)
                return value
            case Mapping():
                return {key: self.fill(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.fill(inner) for inner in value]
            case _:
                return value


@dataclass(frozen=True, slots=True)
class AppSpec:
    suite: Path
    """The suite's folder."""
    where: str
    """`file:line` of `app:`, for messages."""
    url: str
    """With its placeholders; where a scenario's `page` is looked for."""
    command: tuple[str, ...]
    """Empty for one that runs already."""
    environment: Mapping[str, str]
    ready: Ready
    setup: tuple[Mapping[str, Any], ...]
    """Done in the run's folder before the start."""
    reset: tuple[Mapping[str, Any], ...]
    """Done before each run, when it is ready."""
    database: str | None
    """An SQLite file: of `sql` questions and hooks."""
    sql: tuple[str, ...]
    """A command that answers `sql` instead; `{query}` or its standard input is the query."""
    files: str | None
    """Where `file` questions look; by default the run's folder."""
    digest: str
    """Of `app:` as it was written."""
    settle_ms: int
    """How long after the agent's end the oracle waits before it looks."""
    desktop: str | None = None
    """A desktop program's name on the accessibility bus; None: it is reached by its address."""
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """On a desktop: what else an agent may launch, name → the whole command."""

    @property
    def shared(self) -> bool:
        """There is one of it, not one for each run, so only one run at a time can use it."""
        return self.desktop is None and "{port}" not in self.url

    def data(self) -> tuple[Path, ...]:
        """Of an application that runs already: what an isolated agent must see nothing of."""
        return () if self.command else tuple((self.suite / n).resolve() for n in (self.database, self.files) if n)

    def within(self, name: str, folder: Path) -> Path:
        """`name` as it was written for the database or the files: beside the data of an application that we start,
        beside the suite of one that runs already."""
        return (folder if self.command else self.suite) / name


def read_app(loaded: Loaded, folder: Path) -> AppSpec | None:
    """None for deskcert's own application. `loaded` is valid by its schema. Raises `ConfigError`."""
    app = loaded.value["app"]
    if app == "fixture":
        return None
    name = app.get("desktop")
    _refuse(loaded, _bad_data(app) if name is not None else _bad(app))
    ready = app.get("ready", {})
    spec = AppSpec(
        suite=folder.resolve(),
        where=f"{loaded.name}:{loaded.positions.key(('app',)).line}",
        url=app["url"] if name is None else f"desktop://{name}/",
        command=tuple(app.get("command", ())),
        environment=app.get("env", {}),
        ready=Ready(ready.get("http"), ready.get("port") is True, ready.get("output"), ready.get("seconds", _READY_S)),
        setup=hooks_of(app.get("setup")),
        reset=hooks_of(app.get("reset")),
        database=app.get("database"),
        sql=tuple(app.get("sql", ())),
        files=app.get("files"),
        digest=digest_of(app),
        settle_ms=int(app.get("settle_ms", _SETTLE_MS)),
        desktop=name,
        programs={word: tuple(command) for word, command in app.get("programs", {}).items()},
    )
    _refuse(loaded, (found for key in ("setup", "reset") for found in _hooks(app, key, spec)))
    return spec


def _hooks(app: Mapping[str, Any], key: str, spec: AppSpec) -> Iterator[tuple[KeyPath, str]]:
    from deskcert.certify.meets import check_hooks  # which reads `AppSpec`

    return check_hooks(("app", key), app.get(key), spec)


def _refuse(loaded: Loaded, found: Iterator[tuple[KeyPath, str]]) -> None:
    problems = [f"{loaded.name}:{loaded.positions.value(path).line}: {path_text(path)}: {why}" for path, why in found]
    if problems:
        raise ConfigError(problems)


def hooks_of(raw: Any) -> tuple[Mapping[str, Any], ...]:
    """One hook, a list of them, or none."""
    return tuple(raw) if isinstance(raw, list) else () if raw is None else (raw,)


def _bad(app: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    command: Sequence[str] = app.get("command", ())
    if command and urlsplit(app["url"].replace("{port}", "1")).hostname not in _LOOPBACK:
        yield ("app", "url"), "an application that deskcert starts is reached on 127.0.0.1; write such an address"
    if not command:
        for key in ("setup", "env"):
            if key in app:
                yield ("app", key), "belongs to a command; an application that runs already is only reset"
        if "{port}" in app["url"]:
            yield ("app", "url"), "{port} is chosen for a command that deskcert starts; write the port, or a command"
        if "output" in app.get("ready", {}):
            yield ("app", "ready", "output"), "only a command has an output; give http or port instead"
    elif "{port}" in app["url"] and not any("{port}" in word for word in (*command, *app.get("env", {}).values())):
        yield ("app", "command"), "the command does not say {port}, so the application cannot know which one is its own"
    yield from _bad_data(app)


def _bad_data(app: Mapping[str, Any]) -> Iterator[tuple[KeyPath, str]]:
    for key in ("database", "files"):
        if ".." in PurePosixPath(app.get(key, "")).parts:
            yield ("app", key), "leads out of its folder with '..'; write it from the folder on, or absolute"
    if "database" in app and "sql" in app:
        yield ("app", "sql"), "answers what the database would; keep one of the two"
