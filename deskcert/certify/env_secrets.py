"""Secrets that a suite needs and a record must not hold: `${ENV:NAME}` in a user's file stands for a variable of
deskcert's own environment.

The files are recorded as written, with the placeholder. The value is filled in at the last moment, where something is
started or asked. It can come back: a page shows it, a server's error message repeats it, an agent prints it. So what is
written down passes `scrub`, which puts the placeholder back.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, quote_plus

from deskcert_schema.errors import ConfigError
from deskcert_schema.problems import Path as KeyPath
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

__all__ = ["NOTHING_SECRET", "EnvSecrets", "StreamScrubber", "named_in", "names_in"]

_PLACEHOLDER: Final = re.compile(r"\$\{ENV:([A-Za-z_][A-Za-z0-9_]*)\}")
_NEARLY: Final = re.compile(r"\$\{\s*env\b", re.IGNORECASE)
_SHORTEST: Final = 4
"""Characters. Scrubbing a shorter value would tear holes into everything else, and it is no secret."""


@dataclass(frozen=True, slots=True)
class EnvSecrets:
    """Of one suite. Two that hold the same are equal; the values never show in `repr`."""

    values: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variable → value."""

    @classmethod
    def read(cls, wanted: Mapping[str, str], environ: Mapping[str, str] | None = None) -> EnvSecrets:
        """`wanted`: variable → `file:line: place` of its first use. Raises `ConfigError` for each that is missing."""
        known = os.environ if environ is None else environ
        problems = []
        for name, where in wanted.items():
            value = known.get(name)
            if not value:
                problems.append(f"{where}: ${{ENV:{name}}} is not set; set {name} in the environment of deskcert")
            elif len(value) < _SHORTEST:
                problems.append(
                    f"{where}: ${{ENV:{name}}} has fewer than {_SHORTEST} characters, too few to be kept out of the"
                    " records; take a longer one, or write it plainly if it is no secret"
                )
        if problems:
            raise ConfigError(problems)
        return cls({name: known[name] for name in wanted})

    def fill(self, value: Any) -> Any:
        """With every placeholder replaced, at any depth; keys are left as they are."""
        match value:
            case str():
                return _PLACEHOLDER.sub(lambda m: self.values.get(m[1], m[0]), value)
            case Mapping():
                return {key: self.fill(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.fill(inner) for inner in value]
            case _:
                return value

    def scrub(self, value: Any) -> Any:
        """With every value replaced by its placeholder, keys included: the inverse of `fill`, for what is recorded."""
        if not self.values:
            return value
        match value:
            case str():
                return self._scrubbed(value)
            case Mapping():
                return {self._scrubbed(str(key)): self.scrub(inner) for key, inner in value.items()}
            case list() | tuple():
                return [self.scrub(inner) for inner in value]
            case _:
                return value

    def holds(self, text: str) -> bool:
        return any(form in text for form, _ in self._forms())

    def _scrubbed(self, text: str) -> str:
        for form, name in self._forms():
            if form in text:
                text = text.replace(form, f"${{ENV:{name}}}")
        return text

    def _forms(self) -> list[tuple[str, str]]:
        """Each value as written, in a URL, in a form and in JSON; the longest first, because one may hold another."""
        found = {
            form: name
            for name, value in self.values.items()
            for form in (value, quote(value), quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1])
        }
        return sorted(found.items(), key=lambda item: -len(item[0]))

    def longest(self) -> int:
        """Bytes of the longest form, so that a stream can be cut where none is cut in two."""
        return max((len(form.encode()) for form, _ in self._forms()), default=0)


NOTHING_SECRET: Final = EnvSecrets()


class StreamScrubber:
    """Scrubs bytes that come in pieces: what could be the beginning of a secret is kept back until more is known."""

    def __init__(self, secrets: EnvSecrets) -> None:
        self._secrets, self._kept, self._back = secrets, b"", max(secrets.longest() - 1, 0)

    def feed(self, block: bytes) -> bytes:
        if not self._back:
            return block
        whole = self._clean(self._kept + block)
        ready, self._kept = whole[: -self._back], whole[-self._back :]
        return ready

    def rest(self) -> bytes:
        rest, self._kept = self._clean(self._kept), b""
        return rest

    def _clean(self, content: bytes) -> bytes:
        # Byte for byte, whatever the encoding of the rest may be.
        text: str = self._secrets.scrub(content.decode("utf-8", "surrogateescape"))
        return text.encode("utf-8", "surrogateescape")


def names_in(value: Any) -> set[str]:
    return {name for _, text in _texts(value, ()) for name in _PLACEHOLDER.findall(text)}


def named_in(loaded: Loaded, allowed: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(variable, `file:line: place`) for each placeholder of a file. Raises `ConfigError` for one that stands where it
    is not filled in (`allowed`: keys of the top level, or all of it below `""`), or that is misspelt."""
    problems = []
    for path, text in _texts(loaded.value, ()):
        names = _PLACEHOLDER.findall(text)
        if not names and not _NEARLY.search(text):
            continue
        where = f"{loaded.name}:{loaded.positions.value(path).line}: {path_text(path)}"
        if not names or len(names) != len(_NEARLY.findall(text)):
            problems.append(f"{where}: a secret is written ${{ENV:NAME}}, with the name of an environment variable")
        elif "" not in allowed and str(path[0]) not in allowed:
            problems.append(f"{where}: a secret is not filled in here, only in {', '.join(allowed)}; take it out")
        else:
            yield from ((name, where) for name in names)
    if problems:
        raise ConfigError(problems)


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    match value:
        case str():
            yield path, value
        case Mapping():
            for key, inner in value.items():
                yield from _texts(inner, (*path, key))
        case list() | tuple():
            for index, inner in enumerate(value):
                yield from _texts(inner, (*path, index))
        case _:
            return
