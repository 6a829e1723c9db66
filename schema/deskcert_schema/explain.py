"""Turns what a JSON Schema validator found into sentences for the person who wrote the file.

A validator says "is not valid under any of the given schemas"; a person asks "what should stand here?". The schemas
carry that answer where it is not obvious, under `x-expected`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from deskcert_schema.problems import Path, shorten

__all__ = ["Finding", "explain"]

type Finding = tuple[Path, bool, str]
"""Where, whether the key (not its value) is wrong, and the sentence."""

_TYPES: dict[str, str] = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


class SchemaError(Protocol):
    """What is read of a `jsonschema` error (which types its attributes as perhaps unset)."""

    relative_path: Any
    """From the alternative's own level, for an error inside one; from the document otherwise."""
    schema_path: Any
    validator: Any
    validator_value: Any
    instance: Any
    schema: Any
    message: Any
    context: Any

    @property
    def absolute_path(self) -> Any: ...


def explain(error: SchemaError) -> Iterator[Finding]:
    """One validator's error as one or more findings."""
    path: Path = tuple(error.absolute_path)
    match error.validator:
        case "additionalProperties" if error.validator_value is False:
            yield from _unknown_keys(error, path)
        case "required":
            # The validator reports each missing key on its own and names it first in its message.
            missing = [
                k for k in error.validator_value if k not in error.instance and error.message.startswith(repr(k))
            ]
            yield from ((path, False, f"the key {k!r} is missing") for k in missing)
        case "anyOf" | "oneOf":
            yield from _alternatives(error, path)
        case "not" if set(error.validator_value) == {"required"}:
            yield from (
                (path, False, f"the key {key!r} does not belong here") for key in error.validator_value["required"]
            )
        case _ if "propertyNames" in error.schema_path:
            yield (*path, error.instance), True, f"{_expected(error)} as a key"
        case _:
            yield path, False, _expected(error)


def _unknown_keys(error: SchemaError, path: Path) -> Iterator[Finding]:
    known = sorted(error.schema.get("properties", {}))
    for key in error.instance:
        if key in known:
            continue
        close = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]!r}?" if close else f"known here: {', '.join(known)}"
        yield (*path, key), True, f"unknown key; {hint}"


def _alternatives(error: SchemaError, path: Path) -> Iterator[Finding]:
    branches = error.validator_value
    if all(set(b) == {"required"} for b in branches):
        names = list(dict.fromkeys(name for b in branches for name in b["required"]))
        yield path, False, f"needs at least one of: {', '.join(names)}"
        return
    meant = _meant_branch(error)
    if meant is None:
        yield path, False, _expected(error)
        return
    for sub in meant:
        yield from explain(sub)


def _meant_branch(error: SchemaError) -> list[SchemaError] | None:
    """The errors of the one alternative that the author was writing, when that can be told.

    It is the one whose type fits; among mappings, the one whose first required key is there.
    """
    by_branch: dict[int, list[SchemaError]] = {}
    for sub in error.context or ():
        by_branch.setdefault(int(sub.schema_path[0]), []).append(sub)
    fitting = {i: subs for i, subs in by_branch.items() if not any(_wrong_kind(s) for s in subs)}
    if isinstance(error.instance, Mapping) and len(fitting) > 1:
        fitting = {i: subs for i, subs in fitting.items() if not any(_lacks_first_key(s) for s in subs)}
    return next(iter(fitting.values())) if len(fitting) == 1 else None


def _wrong_kind(error: SchemaError) -> bool:
    """At the alternative's own level another type or constant, or a member that says it is another alternative."""
    depth = len(error.relative_path)
    own = depth == 0 and error.validator in ("type", "const", "enum", "not")
    return own or (depth == 1 and error.validator == "const")


def _lacks_first_key(error: SchemaError) -> bool:
    at_own_level = len(error.schema_path) == 2 and error.validator == "required"
    return at_own_level and error.validator_value[0] not in error.instance


def _expected(error: SchemaError) -> str:
    schema: Mapping[str, Any] = error.schema
    wanted = str(schema.get("x-expected") or _wanted(error))
    got = _got(error.instance)
    if isinstance(error.instance, int | float) and any(word in wanted for word in ("string", "text")):
        got += "; put it in quotes if it is meant as text"
    match error.validator:
        case "minProperties" | "maxProperties" if schema.get("maxProperties") == 1:
            return f"expected exactly one of {', '.join(schema['properties'])}"
        case "minProperties":
            return f"expected at least one of {', '.join(schema.get('properties', {}))}"
        case "minItems":
            return "expected at least one entry, got an empty list"
        case "minLength":
            return "expected a text that is not empty"
        case "enum" if isinstance(error.instance, str):
            close = difflib.get_close_matches(error.instance, [str(v) for v in error.validator_value], n=1, cutoff=0.6)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            return f"expected {wanted}, got {got}{hint}"
        case _:
            return f"expected {wanted}, got {got}"


def _wanted(error: SchemaError) -> str:
    value = error.validator_value
    match error.validator:
        case "type":
            return " or ".join(_TYPES.get(t, t) for t in ([value] if isinstance(value, str) else value))
        case "enum":
            return f"one of {', '.join(str(v) for v in value)}"
        case "const":
            return json.dumps(value)
        case "minimum":
            return f"{value} or more"
        case "maximum":
            return f"{value} or less"
        case "maxLength":
            return f"at most {value} characters"
        case "format":
            return "a regular expression that can be read, with modest repeat counts"
        case "pattern":
            return f"a text of the form {value}"
        case _:
            return f"something else ({shorten(error.message)})"


def _got(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"a number ({value})"
        case str():
            return f"the text {shorten(value)!r}"
        case Mapping():
            return f"a mapping with {', '.join(map(str, list(value)[:4]))}" if value else "an empty mapping"
        case list():
            return "a list"
        case _:
            return type(value).__name__
