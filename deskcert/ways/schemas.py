"""Output schemas for MCP tools: self-contained, because a client resolves no `urn:`."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from deskcert_schema.validate import schema
from deskcert_schema.vocabulary import Command

__all__ = ["output_schema"]

_URN: Final = "urn:deskcert:schema:1:"
_OURS: Final = ("x-expected", "$schema", "$id")
"""Keywords that strict validators of other languages refuse or misread."""


@cache
def output_schema(command: str) -> dict[str, Any]:
    """Of the envelope that `command` answers with: the published schema, cut down to what this command can answer."""
    envelope = schema("envelope")
    acting = envelope["$defs"]["acting"]["enum"]
    part = "acted" if command in acting else command if command in envelope["$defs"] else None
    name = {"const": command} if command in set(Command) else {"type": "string"}
    whole: dict[str, Any] = {
        "type": "object",
        "required": ["version", "ok", "command"],
        "properties": {
            **{k: _portable(v, "envelope") for k, v in envelope["properties"].items()},
            "command": name,
        },
        "if": {"required": ["ok"], "properties": {"ok": {"const": True}}},
        "then": {"required": ["data"]},
        "else": {"required": ["error"]},
    }
    if part is not None:
        whole["properties"]["data"] = {"$ref": f"#/$defs/envelope_{part}"}
    whole["$defs"] = _reachable(whole)
    return whole


def _portable(value: Any, home: str) -> Any:
    """The same with references into one `$defs`, and without keywords of ours."""
    if isinstance(value, list):
        return [_portable(item, home) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, item in value.items():
        if key == "$ref":
            out[key] = f"#/$defs/{_name(item, home)}"
        elif key not in _OURS and key != "$defs":
            out[key] = _portable(item, home)
    return out


def _name(reference: str, home: str) -> str:
    document, _, pointer = reference.partition("#")
    owner = document.removeprefix(_URN) or home
    return f"{owner}_{pointer.removeprefix('/$defs/')}"


def _reachable(value: Any) -> dict[str, Any]:
    """Every definition that `value` needs, and those that they need."""
    found: dict[str, Any] = {}
    todo = _references(value)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        owner, _, key = name.partition("_")
        # An empty key is the whole document: a batch's answer holds envelopes.
        found[name] = _portable(schema(owner)["$defs"][key] if key else schema(owner), owner)
        todo |= _references(found[name])
    return dict(sorted(found.items()))


def _references(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(_references(item) for item in value))
    if not isinstance(value, dict):
        return set()
    own = {value["$ref"].removeprefix("#/$defs/")} if isinstance(value.get("$ref"), str) else set()
    return own.union(*(_references(item) for item in value.values()))
