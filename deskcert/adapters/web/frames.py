"""The page's frames and their documents, as the browser tells them: which document lives where, in which process, and
in which execution context our script is.

Each process is a channel of its own (a frame of another site has one, where the browser isolates sites). Numbers of
execution contexts mean something in their process only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deskcert.adapters.web.channel import Channel, Liveness
from deskcert.adapters.web.script import WORLD

__all__ = ["Frame", "Frames"]


@dataclass(slots=True)
class Frame:
    id: str
    parent: str | None
    loader: str
    """Generation of its document: another document, another loader id."""
    url: str
    channel: Channel
    alive: Liveness
    """Of its process."""
    context: int | None = None
    """Execution context of our isolated world in this document; None until it is there."""
    owner: tuple[str, str] | None = None
    """The element that holds it: generation of the document around, and the element's id in that; None until asked."""


class Frames:
    def __init__(self) -> None:
        self._frames: dict[str, Frame] = {}
        self._main: str | None = None
        self._arriving: set[str] = set()
        """Frames that began to load a document which is not there yet."""
        self._changed = asyncio.Event()

    def attach(self, channel: Channel, alive: Liveness) -> None:
        channel.on("Page.frameNavigated", lambda e: self._navigated(e["frame"], channel, alive))
        channel.on("Page.frameAttached", lambda e: self._attached(e, channel, alive))
        channel.on("Page.frameDetached", lambda e: self._detached(e, channel))
        channel.on("Page.frameStartedLoading", lambda e: self._arriving.add(e["frameId"]))
        channel.on("Page.frameStoppedLoading", lambda e: self._arrived(e["frameId"]))
        channel.on("Page.navigatedWithinDocument", self._within)
        channel.on("Runtime.executionContextCreated", lambda e: self._created(e["context"], channel))
        channel.on("Runtime.executionContextDestroyed", lambda e: self._destroyed(e["executionContextId"], channel))
        channel.on("Runtime.executionContextsCleared", lambda _: self._destroyed(None, channel))

    def load(self, tree: dict[str, Any], channel: Channel, alive: Liveness) -> None:
        """The tree as `Page.getFrameTree` gives it, for what was there before we listened."""
        if tree["frame"]["url"]:  # a process that is held back for us shows nothing yet; until then the old one does
            self._navigated(tree["frame"], channel, alive)
        for child in tree.get("childFrames", []):
            self.load(child, channel, alive)

    def drop(self, channel: Channel) -> None:
        """The process is gone, and with it what was in its frames."""
        for frame in [f for f in self._frames.values() if f.channel is channel]:
            self._forget(frame.id)
        self._tell()

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[Frame]:
        return iter(list(self._frames.values()))

    @property
    def main(self) -> Frame:
        assert self._main is not None, "attach and load come first"
        return self._frames[self._main]

    def document(self, loader: str) -> Frame | None:
        return next((f for f in self._frames.values() if f.loader == loader), None)

    def around(self, frame: Frame) -> Frame | None:
        """The frame that this one stands in."""
        return None if frame.parent is None else self._frames.get(frame.parent)

    def children(self, frame: Frame) -> Iterator[Frame]:
        return iter([f for f in self._frames.values() if f.parent == frame.id])

    async def changed(self) -> None:
        """Returns at the next change of any frame."""
        await self._changed.wait()

    def awaited(self, frame: Frame) -> bool:
        """Its document has not come: it shows the empty page that every frame shows until then."""
        return frame.id in self._arriving and frame.url == "about:blank"

    @property
    def settled(self) -> bool:
        return not any(self.awaited(frame) for frame in self._frames.values())

    async def settle(self) -> None:
        """Returns when no frame waits for its first document. The caller has the deadline."""
        while not self.settled:
            await self.changed()

    def _arrived(self, frame_id: str) -> None:
        self._arriving.discard(frame_id)
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _navigated(self, raw: dict[str, Any], channel: Channel, alive: Liveness) -> None:
        frame_id, parent = raw["id"], raw.get("parentId")
        known = self._frames.get(frame_id)
        if known is None or known.loader != raw["loaderId"] or known.channel is not channel:
            known = self._frames[frame_id] = Frame(frame_id, parent, raw["loaderId"], raw["url"], channel, alive)
        known.url = raw["url"] + raw.get("urlFragment", "")
        self._arriving.discard(frame_id)
        if parent is None and self._main != frame_id:
            # The top frame can get another id when the page moves to another process: the old tree is gone with it.
            self._frames = {frame_id: known}
            self._main = frame_id
        self._tell()

    def _attached(self, event: dict[str, Any], channel: Channel, alive: Liveness) -> None:
        # An empty frame keeps its first document and never reports a navigation.
        frame_id = event["frameId"]
        if frame_id not in self._frames:
            first = Frame(frame_id, event["parentFrameId"], f"initial-{frame_id}", "about:blank", channel, alive)
            self._frames[frame_id] = first

    def _within(self, event: dict[str, Any]) -> None:
        frame = self._frames.get(event["frameId"])
        if frame is not None:
            frame.url = event["url"]
        self._tell()

    def _detached(self, event: dict[str, Any], channel: Channel) -> None:
        known = self._frames.get(event["frameId"])
        if event.get("reason") == "swap" and known is not None and known.channel is not channel:
            return  # it went to another process, which has told of it already
        self._arriving.discard(event["frameId"])
        if event["frameId"] != self._main:
            self._forget(event["frameId"])
        self._tell()

    def _forget(self, frame_id: str) -> None:
        """The frame, and all that stood in it, in whichever process."""
        gone = self._frames.pop(frame_id, None)
        if gone is not None:
            for child in [f.id for f in self._frames.values() if f.parent == frame_id]:
                self._forget(child)

    def _created(self, raw: dict[str, Any], channel: Channel) -> None:
        frame = self._frames.get(raw.get("auxData", {}).get("frameId", ""))
        if frame is not None and frame.channel is channel and raw["name"] == WORLD:
            frame.context = raw["id"]
            self._tell()

    def _destroyed(self, context: int | None, channel: Channel) -> None:
        """`None`: every one of this process."""
        for frame in self._frames.values():
            if frame.channel is channel and (context is None or frame.context == context):
                frame.context = None
        self._tell()
