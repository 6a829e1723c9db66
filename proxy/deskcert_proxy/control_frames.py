"""Texts in the control frames of a WebSocket: mitmproxy passes them on without asking, and a page can put 123 bytes
into the reason of a close.

So they are taken out on their way to the server: a close keeps its code, a ping its meaning, and a pong its bytes only
where they answer a ping of the server's.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any, Final

from deskcert_schema.errors import HarnessError

__all__ = ["without_texts"]

_KNOWN: Final = 64
"""Pings of one server that may wait for their answer."""
_DONE: Final = "deskcert_without_texts"


def without_texts() -> None:
    """For this process. Again: no harm. Raises `HarnessError` when this mitmproxy is not as it is known."""
    from mitmproxy.proxy.layers import websocket
    from wsproto.events import CloseConnection, Ping, Pong

    try:
        connection: Any = websocket.WebsocketConnection
        whole, events = connection.send2, connection.events
    except AttributeError as error:
        raise HarnessError(f"this version of mitmproxy is not known: {error}; install another, such as 12.3") from error
    if getattr(connection, _DONE, False):
        return

    def told(self: Any) -> Any:
        for event in events(self):
            if isinstance(event, Ping) and self.client:
                pings(self).append(bytes(event.payload))
            yield event

    def send2(self: Any, event: Any) -> Any:
        if self.client:
            if isinstance(event, CloseConnection):
                event = replace(event, reason=None)
            elif isinstance(event, Ping) or (isinstance(event, Pong) and bytes(event.payload) not in pings(self)):
                event = replace(event, payload=b"")
        return whole(self, event)

    def pings(self: Any) -> deque[bytes]:
        known: deque[bytes] = self.__dict__.setdefault("deskcert_pings", deque(maxlen=_KNOWN))
        return known

    connection.send2, connection.events = send2, told
    setattr(connection, _DONE, True)
