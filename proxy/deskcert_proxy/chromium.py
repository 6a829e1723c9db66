"""How Chromium is started so that nothing goes round the proxy.

The browser adapter has flags of its own for a quiet browser; these are the ones that the second line relies on, and
`missing_arguments` refuses a browser that was started with a way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

__all__ = ["chromium_arguments", "missing_arguments"]

_NO_WAY_ROUND: Final = (
    "--proxy-bypass-list=<-loopback>",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--disable-background-networking",
    "--disable-features=AsyncDns,DnsOverHttps,WebTransport,DirectSockets",
)
_ROUND: Final = (
    "--no-proxy-server", "--proxy-auto-detect", "--proxy-pac-url", "--enable-quic", "--origin-to-force-quic-on",
)  # fmt: skip


def chromium_arguments(server: str | None = None, spki: str | None = None) -> tuple[str, ...]:
    """`server`: `http://127.0.0.1:PORT`, where the whole browser goes through one proxy; None where each context is
    given its own. `spki`: hash of the authority's key, for HTTPS."""
    found = [*_NO_WAY_ROUND]
    if server is not None:
        found.insert(0, f"--proxy-server={server}")
    if spki is not None:
        found.append(f"--ignore-certificate-errors-spki-list={spki}")
    return tuple(found)


def missing_arguments(arguments: Sequence[str]) -> tuple[str, ...]:
    """One sentence for each way round that these arguments leave open."""
    told = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name == "--proxy-bypass-list" and value.strip() not in ("<-loopback>", ""):
            told.append(f"{argument}: what is on this list would not pass the proxy")
        if name in _ROUND:
            told.append(f"{name}: it leads round the proxy")
    names = {argument.partition("=")[0] for argument in arguments}
    for wanted in ("--disable-quic", "--force-webrtc-ip-handling-policy"):
        if wanted not in names:
            told.append(f"{wanted} is missing")
    return tuple(told)
