"""The proxy as a child of a run: its settings come as one JSON line on standard input, and it ends with that input.

`{"policy": {…}, "socket": path, "secret": hex, "confdir": path, "listen": "127.0.0.1:0", "beat_ms": 2000}` in, and
`{"port", "spki", "pid"}` out when it listens.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from deskcert_proxy.addon import SecondLine
from deskcert_proxy.link import LedgerLink
from deskcert_proxy.redaction import Redaction
from deskcert_proxy.rules import compile_network
from deskcert_proxy.scribe import Scribe
from deskcert_proxy.serve import Listening, listen_on, serve
from deskcert_proxy.tape import Tape
from deskcert_schema.errors import DeskcertError

__all__ = ["main"]


async def _run(told: dict[str, Any]) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    _end_with_stdin(loop, stop)
    policy = compile_network(told["policy"])
    sink = await LedgerLink.connect(Path(told["socket"]))
    scribe = Scribe(sink, rng=os.urandom, beat_s=told.get("beat_ms", 2000) / 1000)
    tape = Tape(Path(told["tape"]), Redaction.of(told["policy"])) if told.get("tape") else None
    addon = SecondLine(policy, scribe, secret=bytes.fromhex(told["secret"]), tape=tape)

    def ready(listening: Listening) -> None:
        line = {"port": listening.port, "spki": listening.spki, "pid": os.getpid()}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    await serve(
        addon,
        listen=listen_on(told.get("listen", "127.0.0.1:0")),
        confdir=Path(told["confdir"]),
        ready=ready,
        stop=stop,
        upstream=told.get("upstream"),
        insecure=bool(told.get("insecure")),
        trust=Path(told["trust"]) if told.get("trust") else None,
    )


def _end_with_stdin(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    def wait() -> None:
        while os.read(0, 4096):
            pass
        loop.call_soon_threadsafe(stop.set)

    threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    try:
        told = json.loads(sys.stdin.buffer.readline())
        asyncio.run(_run(told))
    except DeskcertError as error:
        sys.stderr.write(f"deskcert-proxy: {error}\n")
        return 2
    except (ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"deskcert-proxy: the settings on standard input cannot be read: {error!r}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
