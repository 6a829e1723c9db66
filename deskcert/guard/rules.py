"""(3) The policy document, compiled. Source: formats.md, policy.yaml.

`compile_policy` expects a document that the schema has passed, and still refuses what it cannot apply: a rule that can
never match is a hole that looks like a fence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from deskcert.guard.patterns import TextPattern, UrlPattern
from deskcert_schema.errors import ConfigError

__all__ = ["DestinationPattern", "Effect", "Policy", "Rule", "compile_policy", "merge", "role_of"]


class Effect(StrEnum):
    DENY = "deny"
    REQUIRE_CONFIRMATION = "require_confirmation"
    RECORD_ONLY = "record_only"


@dataclass(frozen=True, slots=True)
class DestinationPattern:
    url: UrlPattern | None
    methods: frozenset[str]
    """Upper case; empty means any."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Every matcher that is given must hold; one that is not given (None, empty) holds always."""

    id: str
    reason: str
    effect: Effect
    name: TextPattern | None = None
    roles: frozenset[str] = frozenset()
    actions: frozenset[str] = frozenset()
    url: UrlPattern | None = None
    window: TextPattern | None = None
    destination: DestinationPattern | None = None
    value: TextPattern | None = None
    keys: frozenset[str] = frozenset()
    upload: TextPattern | None = None
    download: TextPattern | None = None
    """The name that a download is given."""


@dataclass(frozen=True, slots=True)
class Policy:
    digest: str
    """Of the merged document, given by the caller; stands in every record."""
    deny: tuple[Rule, ...]
    allow: tuple[Rule, ...]
    allow_list: bool
    """`default: deny`: what no allow rule matches is denied."""


_ROLE_ALIASES: Final = {
    "textfield": "textbox",
    "text": "textbox",
    "entry": "textbox",
    "edit": "textbox",
    "textarea": "textbox",
    "hyperlink": "link",
    "pushbutton": "button",
    "push button": "button",
    "menu item": "menuitem",
    "check box": "checkbox",
    "radio": "radio",
    "radiobutton": "radio",
    "radio button": "radio",
    "dropdown": "combobox",
    "select": "combobox",
    "toggle": "switch",
    "image": "img",
    "graphic": "img",
    "tabitem": "tab",
    "incrementor": "spinbutton",
}

_RULE_KEYS: Final = frozenset(
    "id reason effect name role action url window destination value key upload download".split()  # noqa: SIM905
)
_MATCHERS: Final = _RULE_KEYS - {"id", "reason", "effect"}
_KEY_ALIASES: Final = {
    "control": "ctrl",
    "return": "enter",
    "command": "meta",
    "cmd": "meta",
    "super": "meta",
    "option": "alt",
    " ": "space",
    "spacebar": "space",
}
_MODIFIERS: Final = ("ctrl", "alt", "shift", "meta")


def role_of(text: str) -> str:
    """Desktop, HTML and ARIA words for one role are one role."""
    plain = text.strip().casefold()
    return _ROLE_ALIASES.get(plain, plain)


def key_of(text: str) -> str:
    """`Shift+Control+Return` → `ctrl+shift+enter`."""
    parts = [p.strip().casefold() or "+" for p in text.split("+")] if text != " " else [" "]
    parts = [_KEY_ALIASES.get(p, p) for p in parts]
    held = [m for m in _MODIFIERS if m in parts[:-1]]
    return "+".join([*held, parts[-1]])


def merge(document: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A scenario's additions to the suite's policy. Rules are only ever added; `default: deny` on either side wins, and
    a scenario cannot switch a rule off. Raises `ConfigError` for an id that both use."""
    merged: dict[str, Any] = dict(document)
    for part in ("deny", "allow"):
        rules = [*(document.get(part) or ()), *(added.get(part) or ())]
        if rules:
            merged[part] = rules
    if added.get("default") == "deny":
        merged["default"] = "deny"
    if added.get("network"):
        merged["network"] = _merge_network(document.get("network") or {}, added["network"])
    _distinct_ids([*(merged.get("deny") or ()), *(merged.get("allow") or ())])
    return merged


def _merge_network(ours: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(ours)
    for part in ("hosts", "writes"):
        both = [*(ours.get(part) or ()), *(added.get(part) or ())]
        if both:
            merged[part] = both
    return merged


def compile_policy(document: Mapping[str, Any], *, digest: str) -> Policy:
    """Raises `ConfigError` with one sentence a problem; an empty policy is one."""
    deny = tuple(_rule(raw, f"deny[{i}]") for i, raw in enumerate(document.get("deny") or ()))
    allow = tuple(_rule(raw, f"allow[{i}]") for i, raw in enumerate(document.get("allow") or ()))
    allow_list = document.get("default", "allow") == "deny"
    if not deny and not allow_list:
        raise ConfigError(
            "the policy is empty: it denies nothing; add a deny rule, or write `default: deny` with allow rules"
        )
    _distinct_ids([*(document.get("deny") or ()), *(document.get("allow") or ())])
    return Policy(digest, deny, allow, allow_list)


def _distinct_ids(rules: Sequence[Mapping[str, Any]]) -> None:
    ids = [str(rule.get("id")) for rule in rules]
    twice = sorted({i for i in ids if ids.count(i) > 1})
    if twice:
        raise ConfigError([f"the rule id {i!r} is used twice; the record names a rule by its id" for i in twice])


def _rule(raw: Mapping[str, Any], where: str) -> Rule:
    unknown = sorted(set(raw) - _RULE_KEYS)
    if unknown:
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known are {', '.join(sorted(_RULE_KEYS))}")
    if not isinstance(raw.get("id"), str) or not raw["id"]:
        raise ConfigError(f"{where}: a rule needs an id, which the record names")
    if not set(raw) & _MATCHERS:
        raise ConfigError(f"{where} ({raw['id']}): no matcher; give at least one of {', '.join(sorted(_MATCHERS))}")
    if raw.get("effect", "deny") not in list(Effect):
        raise ConfigError(f"{where} ({raw['id']}): effect {raw['effect']!r} is not one of {', '.join(Effect)}")
    return Rule(
        id=raw["id"],
        reason=str(raw.get("reason", "")),
        effect=Effect(raw.get("effect", "deny")),
        name=_text(raw, "name", where),
        roles=frozenset(role_of(r) for r in _several(raw.get("role"))),
        actions=frozenset(a.casefold() for a in _several(raw.get("action"))),
        url=UrlPattern.read(raw["url"], f"{where}.url") if "url" in raw else None,
        window=_text(raw, "window", where),
        destination=_destination(raw["destination"], f"{where}.destination") if "destination" in raw else None,
        value=_text(raw, "value", where),
        keys=frozenset(key_of(k) for k in _several(raw.get("key"))),
        upload=_text(raw, "upload", where),
        download=_text(raw, "download", where),
    )


def _text(raw: Mapping[str, Any], key: str, where: str) -> TextPattern | None:
    return TextPattern.read(raw[key], f"{where}.{key}") if key in raw else None


def _several(raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ()
    return (raw,) if isinstance(raw, str) else tuple(raw)


def _destination(raw: Any, where: str) -> DestinationPattern:
    if not isinstance(raw, Mapping) or not raw or set(raw) - {"method", "url"}:
        raise ConfigError(f"{where}: expected method and url, or one of them, found {raw!r}")
    url = UrlPattern.read(raw["url"], f"{where}.url") if "url" in raw else None
    return DestinationPattern(url, frozenset(m.upper() for m in _several(raw.get("method"))))
