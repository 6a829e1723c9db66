"""One mitmproxy in this process, with our addon last, so that nothing changes a request after it was looked at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deskcert_proxy.authority import make_authority
from deskcert_proxy.names import loopback_names
from deskcert_schema.errors import HarnessError, UsageError

__all__ = ["Listening", "listen_on", "serve"]


@dataclass(frozen=True, slots=True)
class Listening:
    host: str
    port: int
    spki: str

    @property
    def server(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def _readable(trust: Path) -> None:
    from cryptography import x509

    try:
        x509.load_pem_x509_certificates(trust.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{trust} cannot be read as certificates in PEM: {error}") from error


def listen_on(text: str) -> tuple[str, int]:
    """`127.0.0.1:8080`, `[::1]:0`, `8080`. Raises `UsageError`."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{text!r} is no address to listen on: write HOST:PORT, such as 127.0.0.1:8080")
    return host, int(port)


async def serve(
    addon: Any,
    *,
    listen: tuple[str, int],
    confdir: Path,
    ready: Callable[[Listening], None],
    stop: asyncio.Event,
    upstream: str | None = None,
    insecure: bool = False,
    trust: Path | None = None,
) -> None:
    """Runs until `stop`. `trust`: a PEM file of the authorities that servers' certificates are checked against, in
    place of those that everybody trusts. Raises `HarnessError` when the port cannot be had, `UsageError` for a
    wrong `upstream` or `trust`."""
    from mitmproxy import hooks, options
    from mitmproxy.addons import block, core, disable_h2c, next_layer, proxyserver, tlsconfig, upstream_auth
    from mitmproxy.master import Master

    host, port = listen
    loopback_names(asyncio.get_running_loop())
    spki = make_authority(confdir)
    opts = options.Options(listen_host=host, listen_port=port, confdir=str(confdir), ssl_insecure=insecure)
    if trust is not None:
        _readable(trust)
        opts.update(ssl_verify_upstream_trusted_ca=str(trust))  # type: ignore[no-untyped-call]
    if upstream is not None:
        try:
            opts.update(mode=[f"upstream:{upstream}"])  # type: ignore[no-untyped-call]
        except Exception as error:
            raise UsageError(f"{upstream!r} is no proxy to pass requests on to: {error}") from error
    master = Master(opts)
    # mitmdump has some thirty more: they do nothing here, and each is asked about every event of every connection.
    # And `errorcheck` would end the process at the first message of an error; we say ourselves what is wrong.
    master.addons.add(  # type: ignore[no-untyped-call]
        core.Core(),
        block.Block(),
        disable_h2c.DisableH2C(),
        proxyserver.Proxyserver(),  # type: ignore[no-untyped-call]
        next_layer.NextLayer(),
        tlsconfig.TlsConfig(),
        upstream_auth.UpstreamAuth(),
    )
    master.addons.add(addon)  # type: ignore[no-untyped-call]
    # mitmproxy tells an addon of the options when one changes: so that ours has looked at all of them, it is told now.
    master.addons.invoke_addon_sync(addon, hooks.ConfigureHook(set(opts.keys())))  # type: ignore[no-untyped-call]
    running = asyncio.create_task(master.run())
    try:
        listening = await _address(master, running, host, port)
        ready(Listening(*listening, spki))
        ended = asyncio.create_task(stop.wait())
        await asyncio.wait((ended, running), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if running.done() and not stop.is_set():
            raise HarnessError("the proxy ended by itself")
    finally:
        with contextlib.suppress(Exception):
            master.shutdown()  # type: ignore[no-untyped-call]
            await asyncio.wait_for(running, 5)


async def _address(master: Any, running: asyncio.Task[None], host: str, port: int) -> tuple[str, int]:
    server = master.addons.get("proxyserver")
    for _ in range(1000):
        addresses = server.listen_addrs()
        if addresses:
            _without_delay(server)
            return str(addresses[0][0]), int(addresses[0][1])
        if running.done():
            break
        if server.is_running and not server.servers.is_updating and _failed(server):
            raise HarnessError(f"the port {port} on {host} cannot be had: another program has it; choose another")
        await asyncio.sleep(0.01)
    raise HarnessError(f"the proxy did not come to listen on {host}:{port}; is the port taken?")


def _without_delay(server: Any) -> None:
    """Connections inherit it: the head of a streamed answer and its first bytes are not held back for each other."""
    for instance in server.servers:
        for listener in getattr(instance, "_servers", ()):
            for each in getattr(listener, "sockets", ()):
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _failed(server: Any) -> bool:
    return any(instance.last_exception is not None for instance in server.servers)
