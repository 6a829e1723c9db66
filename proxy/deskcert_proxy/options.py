"""Options of mitmproxy under which something could pass unread. They are set right, or refused with a sentence."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["BODY_LIMIT", "FORCED", "refused_options"]

BODY_LIMIT: Final = 16 << 20
"""Bytes of a request body that are looked at; a longer one is blocked when it has come in."""

FORCED: Final[dict[str, Any]] = {
    "rawtcp": False,
    "onboarding": False,
    "connection_strategy": "lazy",
    "validate_inbound_headers": True,
    "body_size_limit": "64m",
    "websocket": True,
    "http3": False,
}
_MUST_BE_EMPTY: Final = (
    "stream_large_bodies", "ignore_hosts", "allow_hosts", "tcp_hosts", "udp_hosts", "map_remote", "map_local",
    "modify_body", "modify_headers", "server_replay", "client_replay", "stickycookie", "stickyauth", "block_list",
)  # fmt: skip


def refused_options(options: Any) -> list[str]:
    """One sentence for each option that would open a way round."""
    found = [
        f"{name} is set: what it lets through is not looked at"
        for name in _MUST_BE_EMPTY
        if name in options and getattr(options, name)
    ]
    for mode in options.mode if "mode" in options else ():
        if mode.partition("@")[0].partition(":")[0] not in ("regular", "upstream"):
            found.append(f"mode {mode}: only `regular` and `upstream` are understood")
    return found
