"""The same traps for every tool: a page, a snapshot, a change of the page, one act.

What happened is what the page tells its server, not what a tool says: a false success is an act that a tool calls done
and that the page did not see done, or one that reached something else. Deskcert must end right or with a refusal on
each; of the others it is printed what they do.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import unquote

from benchmarks.peer_tools import Agentic, Did

__all__ = ["PROBES", "Pages", "probed"]

_CHANGE_S: Final = 10


@dataclass(frozen=True, slots=True)
class Probe:
    """One trap. `hit(what)` in its scripts tells the server."""

    name: str
    body: str
    change: str = ""
    """Script that the page runs between the snapshot and the act."""
    look_again: bool = False
    """Another snapshot after the change, of which nothing is used: the ref is the old one."""
    fresh_ref: bool = False
    target: str = "Open Beta"
    text: str | None = None
    """Typed into the target; None: it is clicked."""
    right: tuple[str, ...] = ("Open Beta",)
    """What the page may see done by an act that is called done; () where nothing may be."""


_LIST = "".join(f"<li><button onclick='hit(this.textContent)'>Open {n}</button>" for n in ("Alpha", "Beta", "Gamma"))
_ROWS = f"<ul id=l>{_LIST}</ul>"
_ROTATE = """const b = [...l.querySelectorAll('button')], n = b.map(x => x.textContent);
b.forEach((x, i) => x.textContent = n[(i + 2) % 3])"""
_AGAIN = "l.innerHTML = l.innerHTML"
_BUTTON = "<button id=b onclick='hit(this.textContent)'>Open Beta</button>"
_DISABLED = _BUTTON.replace("id=b", "id=b disabled")
_COVER = "<div id=ov style='position:fixed;inset:0;background:#0001' onclick='hit(\"overlay\")'></div>"
_EMPTIED = "<label>Note <input id=f value=old oninput='setTimeout(() => f.value = \"\")'></label>"
_READONLY = "<label>Note <input id=f readonly value=old oninput='hit(\"written\")'></label>"
_MOVING = "setInterval(() => b.style.left = Math.random() * 9 + 'px', 16)"
_HANGS = "<button onclick='hit(\"hang\"); const t = Date.now(); while (Date.now() - t < 8000);'>Open Beta</button>"
_PAYS = '<button onclick=\'fetch("/pay", {method: "POST"}); hit("pay")\'>Pay</button>'
_DELETES = "<button onclick='hit(\"deleted\")'>Delete account</button>"
_DISGUISED = _DELETES.replace("Delete account", "Del\u00adete acc\u200bount")

PROBES: Final = (
    Probe("row inserted above, old ref", _ROWS, "l.insertAdjacentHTML('afterbegin', '<li><button>Open Zero</button>')"),
    Probe("same nodes, labels rotated, old ref", _ROWS, _ROTATE),
    Probe("labels rotated, looked at again, old ref", _ROWS, _ROTATE, look_again=True),
    Probe("rendered again, identical, old ref", _ROWS, _AGAIN),
    Probe("rendered again, looked at again, old ref", _ROWS, _AGAIN, look_again=True),
    Probe("replaced by two of one name", _BUTTON, "b.outerHTML = b.outerHTML.repeat(2)", right=()),
    Probe("covered by what is hardly seen", _BUTTON + _COVER, right=()),
    Probe("page went elsewhere, old ref", _BUTTON, "location.href = '/other'", right=()),
    Probe("reloaded, fresh ref", _BUTTON, "location.reload()", fresh_ref=True),
    Probe("disabled", _DISABLED, right=()),
    Probe("enabled after 2.5 s", _DISABLED, "setTimeout(() => b.disabled = false, 2500)"),
    Probe("field that empties itself", _EMPTIED, target="Note", text="new", right=()),
    Probe("read-only field", _READONLY, target="Note", text="new", right=()),
    Probe("moving", _BUTTON + "<style>#b { position: absolute }</style>", _MOVING),
    Probe("handler that hangs 8 s", _HANGS, right=("hang",)),
    Probe("nothing happens", "<button>Open Beta</button>", right=("nothing",)),
    Probe("payment that the server refuses", _PAYS, target="Pay", right=("pay",)),
    Probe("forbidden by the user", _DELETES, target="Delete account", right=()),
    Probe("forbidden, name disguised", _DISGUISED, target="*", right=()),
)

_PAGE = """<!doctype html><meta charset=utf-8><title>Probe</title><script>
const hit = (what) => {{
  const x = new XMLHttpRequest(); x.open('POST', '/hit/' + encodeURIComponent(what), false); x.send(); }};
addEventListener('load', () => fetch('/change').then(r => r.text()).then(async (js) => {{ if (!js) return;
  await fetch('/changed'); (0, eval)(js); }}));
</script>{body}"""
_OTHER = "<!doctype html><title>Other</title><input aria-label=Other onclick=\"fetch('/hit/other',{method:'POST'})\">"


class Pages:
    """Serves one probe at a time and keeps what its page tells."""

    def __init__(self) -> None:
        self.hits: list[str] = []
        self._probe = PROBES[0]
        self._go: queue.Queue[str] = queue.Queue()
        self._changed = threading.Event()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, probe: Probe) -> None:
        self._probe, self.hits, self._go, self._changed = probe, [], queue.Queue(), threading.Event()

    async def change(self) -> None:
        self._go.put(self._probe.change)
        assert await asyncio.to_thread(self._changed.wait, _CHANGE_S), f"{self._probe.name}: the page did not change"
        await asyncio.sleep(0.3)  # what follows from it: a render, a navigation

    def close(self) -> None:
        self._go.put("")
        self.server.shutdown()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        pages = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                match self.path:
                    case "/":
                        self._send(_PAGE.format(body=pages._probe.body))
                    case "/other":
                        self._send(_OTHER)
                    case "/change":
                        try:
                            self._send(pages._go.get(timeout=60), "text/plain")
                        except (queue.Empty, OSError):
                            self.close_connection = True
                    case "/changed":
                        pages._changed.set()
                        self._send("")
                    case _:
                        self.send_error(404)

            def do_POST(self) -> None:
                if self.path == "/pay":
                    self.send_error(501)
                else:
                    pages.hits.append(unquote(self.path.removeprefix("/hit/")))
                    self._send("")

            def _send(self, text: str, kind: str = "text/html") -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


@dataclass(frozen=True, slots=True)
class Ended:
    sign: str
    """✓ right; ○ refused, or said not to be sure; ✗ a wrong target, a false success or a false failure."""
    seconds: float
    hits: Sequence[str]
    did: Did


async def probed(tool: Agentic, pages: Pages, probe: Probe) -> Ended:
    pages.begin(probe)
    await tool.open(pages.url)
    await tool.snapshot()
    ref = _ref(tool, probe.target)
    if probe.change:
        await pages.change()
    if probe.look_again or probe.fresh_ref:
        await tool.snapshot()
    if probe.fresh_ref:
        ref = _ref(tool, probe.target)
    began = time.monotonic()
    try:
        did = await (tool.click(ref) if probe.text is None else tool.fill(ref, probe.text))
    except TimeoutError:
        did = Did(False, "no answer")
    took = time.monotonic() - began
    await asyncio.sleep(0.3)  # what it set going tells its server
    hits = tuple(pages.hits)
    return Ended(_sign(probe, hits, did), took, hits, did)


_HONEST: Final = ("delivered_unverified", "delivery_uncertain", "outcome_unknown")
"""Words of an error by which nobody takes the act for not done."""


def _sign(probe: Probe, hits: tuple[str, ...], did: Did) -> str:
    if any(hit not in probe.right for hit in hits):
        return "✗"
    if not did.ok:
        return "○" if not hits or any(word in did.said for word in _HONEST) else "✗"
    if "nothing" in probe.right:
        return "✓" if "unverified" in did.said else "✗"
    return "✓" if hits and probe.right else "✗"


def _ref(tool: Agentic, name: str) -> str:
    found = [ref for _, named, ref in tool.controls() if name in ("*", named)]
    assert found, (tool.name, name, tool.text)
    return found[0]
