"""Checks documents against the JSON Schemas that ship with this package.

`check` answers with problems and never raises for a bad document; `load_config` reads a user's file, strictly, and
raises `ConfigError` with everything that is wrong with it. `digest` names the whole set of schemas, for `run.start`.

A schema's name is its file's: `policy scenario plan suite config record envelope verdict jsonlines_to_agent
jsonlines_from_agent`; `policy#/$defs/matcher` is a part of one.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Final

from deskcert_schema.errors import ConfigError, ContractError
from deskcert_schema.patterns import is_readable
from deskcert_schema.problems import Path, Positions, Problem, path_text
from deskcert_schema.rules import broken_rules
from deskcert_schema.strict_yaml import MAX_BYTES, Loaded, load

if TYPE_CHECKING:
    from jsonschema.protocols import Validator
    from referencing import Registry

__all__ = ["SCHEMAS", "Problem", "check", "check_config", "digest", "load_config", "read_config", "schema"]

SCHEMAS: Final = (
    "common",
    "config",
    "envelope",
    "jsonlines_from_agent",
    "jsonlines_to_agent",
    "plan",
    "policy",
    "record",
    "scenario",
    "suite",
    "verdict",
)
_URN: Final = "urn:deskcert:schema:1:"
_MAX_PROBLEMS: Final = 50
_MAX_ERRORS: Final = 500
"""Of the validator, before they are explained: a file of 100,000 wrong entries needs no longer list."""


def check(schema_name: str, document: Any, positions: Positions | None = None) -> list[Problem]:
    """Every problem, in the order of the file. `document` is a JSON value, or what `strict_yaml.load` returned.

    Beyond the schema, rules that JSON Schema cannot say hold for `policy` and `scenario` (see `rules`).
    Raises `ContractError` only for a schema name that does not exist.
    """
    if isinstance(document, Loaded):
        document, positions = document.value, document.positions
    from deskcert_schema.explain import explain

    findings: dict[tuple[Path, str], bool] = {}
    for error in islice(_validator(schema_name).iter_errors(document), _MAX_ERRORS):
        for path, at_key, message in explain(error):
            findings.setdefault((path, message), at_key)
    if not findings:
        for path, at_key, message in broken_rules(schema_name, document):
            findings.setdefault((path, message), at_key)
    problems = [_problem(path, at_key, message, positions) for (path, message), at_key in findings.items()]
    return sorted(problems, key=lambda p: (p.line or 0, p.column or 0, p.path))[:_MAX_PROBLEMS]


def load_config(path: FilePath, schema_name: str, *, name: str | None = None) -> Loaded:
    """Read, parse and check one of the user's files. `name` is how messages call it (default: the path as given).

    Raises `ConfigError` with all problems, each with file, line and what was expected.
    """
    return check_config(read_config(path, name=name), path, schema_name)


def read_config(path: FilePath, *, name: str | None = None) -> Loaded:
    """Read and parse one of the user's files, without asking its schema. Raises `ConfigError`."""
    shown = name if name is not None else str(path)
    return load(_read(path, shown), name=shown)


def check_config(loaded: Loaded, path: FilePath, schema_name: str) -> Loaded:
    """What `read_config` gave, if it is valid. Raises `ConfigError`."""
    problems = check(schema_name, loaded)
    if not problems and schema_name == "scenario" and loaded.value["id"] != path.stem:
        message = f"the file is called {path.name}, so the id must be {path.stem!r} (or rename the file)"
        problems = [_problem(("id",), False, message, loaded.positions)]
    if problems:
        raise ConfigError([p.sentence(loaded.name) for p in problems])
    return loaded


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON Schema itself. Treat it as constant: it is shared."""
    if name not in SCHEMAS:
        raise ContractError(f"there is no schema {name!r}; there are {', '.join(SCHEMAS)}")
    found: dict[str, Any] = json.loads(_schema_bytes(name))
    return found


@cache
def digest() -> str:
    """Hex SHA-256 over all schemas: for each, sorted by name, its name, a newline, its length, a newline, its bytes."""
    total = hashlib.sha256()
    for name in sorted(SCHEMAS):
        content = _schema_bytes(name)
        total.update(f"{name}.json\n{len(content)}\n".encode())
        total.update(content)
    return total.hexdigest()


def _schema_bytes(name: str) -> bytes:
    return (files("deskcert_schema") / "schemas" / f"{name}.json").read_bytes()


def _problem(path: Path, at_key: bool, message: str, positions: Positions | None) -> Problem:
    if positions is None:
        return Problem(None, None, path_text(path), message)
    found = positions.key(path) if at_key else positions.value(path)
    return Problem(found.line, found.column, path_text(path), message)


@cache
def _registry() -> Registry[Any]:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    # Without "$schema": there jsonschema would go back to its own validator class, to which 1.0 is an integer.
    bare = {name: {k: v for k, v in schema(name).items() if k != "$schema"} for name in SCHEMAS}
    resources = [(_URN + name, DRAFT202012.create_resource(bare[name])) for name in SCHEMAS]
    registry: Registry[Any] = Registry().with_resources(resources)
    return registry


@cache
def _validator(name: str) -> Validator:
    from jsonschema import Draft202012Validator, FormatChecker, validators

    whole, _, part = name.partition("#")
    schema(whole)  # for its error
    strict = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    formats = FormatChecker(formats=())
    formats.checks("regex")(is_readable)
    made = validators.extend(Draft202012Validator, type_checker=strict)  # type: ignore[no-untyped-call]
    reference = _URN + whole + (f"#{part}" if part else "")
    validator: Validator = made({"$ref": reference}, registry=_registry(), format_checker=formats)
    return validator


def _content(path: FilePath, shown: str) -> bytes:
    """At most one byte more than may be. Opening a pipe that nobody writes to would wait for ever, and a device may
    have no end: only a regular file is read."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        mode = os.fstat(fd).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            raise ConfigError(f"{shown}:1:1: this is no regular file but a pipe, a socket or a device; name a file")
        return file.read(MAX_BYTES + 1)


def _read(path: FilePath, shown: str) -> str:
    try:
        content = _content(path, shown)
        return content.decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{shown}:1:1: there is no such file") from None
    except IsADirectoryError:
        raise ConfigError(f"{shown}:1:1: this is a folder; name the file in it") from None
    except UnicodeDecodeError as exc:
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{shown}:1:1: larger than 1 MiB; nothing we read needs that") from None
        line = content.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{shown}:{line}:1: not UTF-8 text (byte {exc.start}); save the file as UTF-8") from None
    except OSError as exc:
        raise ConfigError(f"{shown}:1:1: cannot be read ({exc.strerror})") from None
