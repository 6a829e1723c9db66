"""Envelopes in few words, for models that are shown text only. Everything an agent branches on stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskcert.contract.shown import shown_json, shown_text

__all__ = ["as_text"]

_LONGEST: Final = 2_000
_ACTED: Final = ("action", "target", "disposition")


def as_text(envelope: Mapping[str, Any]) -> str:
    """`ok click button "Approve": delivered_verified, retry unsafe [ledger 12]`, and the like."""
    return shown_text(_told(envelope))


def _told(envelope: Mapping[str, Any]) -> str:
    if envelope.get("ok") is not True:
        return _failure(envelope)
    data = envelope["data"]
    if isinstance(data.get("text"), str) and "snapshot_id" in data:
        cut = "".join(f"\n({reason})" for reason in data.get("reasons", ()))
        return f"{data['text']}{cut}{_place(envelope)}"
    if all(key in data for key in _ACTED):
        return _acted(envelope, data)
    return f"ok {envelope['command']} {_json(data)}{_place(envelope)}"


def _acted(envelope: Mapping[str, Any], data: Mapping[str, Any]) -> str:
    parts = [f"ok {envelope['command']} {_target(data['target'])}: {_disposition(data['disposition'])}"]
    hit = data.get("hit")
    if isinstance(hit, Mapping) and hit.get("same_as_target") is False:
        parts.append(f"it hit {_target(hit)} instead")
    verification = data.get("verification", {})
    if verification.get("scope") not in (None, "none"):
        parts.append(f"verified within {verification['scope']}; the application's own commit is not verified")
    if kind := data.get("details", {}).get("kind"):
        parts.append(str(kind))
    if surfaces := data.get("surfaces"):
        parts.append(f"open now: {_json(surfaces)}")
    return "; ".join(parts) + _place(envelope)


def _failure(envelope: Mapping[str, Any]) -> str:
    error = envelope["error"]
    details = error.get("details", {})
    kind = f"/{details['kind']}" if "kind" in details else ""
    parts = [
        f"ERROR {envelope['command']} {error['code']}{kind}: {error['message']}",
        _disposition(error["disposition"]),
    ]
    rest = {k: v for k, v in details.items() if k not in ("kind", "auto_wait")}
    if rest:
        parts.append(_json(rest))
    if "suggestion" in error:
        parts.append(str(error["suggestion"]))
    return "; ".join(parts) + _place(envelope)


def _target(target: Mapping[str, Any]) -> str:
    if "url" in target:
        return str(target["url"])
    name = shown_json(target.get("name") or "")
    return f"{target.get('role', 'element')} {name}"


def _disposition(found: Mapping[str, Any]) -> str:
    return f"{found['delivery']}, retry {found['retry']}"


def _place(envelope: Mapping[str, Any]) -> str:
    seq = envelope.get("ledger", {}).get("seq")
    return "" if seq is None else f" [ledger {seq}]"


def _json(value: object) -> str:
    text = shown_json(value, separators=(",", ":"))
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
