"""Observing: one walk in every frame, joined to one flat list.

Ids of nodes in a child frame carry that frame's own generation (`n12@<loader id>`), so that a ref dies with its frame.

A closed shadow root cannot be read by a script. The browser is asked whether a custom element has one and hands it
over; then the document is walked again, with what is inside. A closed root on a plain element (a `div`) is not even
suspected: asking for every element would cost more than the walk. There the names on the host and the proxy stand
guard.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from deskcert.adapters.base import ObserveOptions, RawNode
from deskcert.adapters.web.channel import FAILURES
from deskcert.adapters.web.frames import Frame, Frames
from deskcert.adapters.web.rows import decoded, unpacked

__all__ = ["Evaluate", "Observation", "split_node"]

type Evaluate = Callable[[Frame, str, list[Any], int], Awaitable[str]]
"""(frame, function of our world, arguments, budget in ms) -> its JSON text. Raises the channel's errors."""

type OwnerOf = Callable[[Frame, Frame, int], Awaitable[str]]
"""(child frame, the frame around it, budget in ms) -> id of the element that holds it. Raises the channel's errors."""

type Adopt = Callable[[Frame, tuple[str, bool], int], Awaitable[bool]]
"""(frame, id of a custom element and whether its class is defined, budget in ms) -> it has a closed shadow root, which
our world can walk from now on. Raises the channel's errors."""

_MOST_HOSTS: Final = 64
_MOST_LAYERS: Final = 4
_GRACE_MS: Final = 250
"""What an answer may take beyond the walk's own budget, which the walk itself keeps."""


class Observation:
    """One joined walk. `run` raises the channel's errors when the main frame could not be walked; what a child frame
    does not give is one of the `reasons`."""

    def __init__(
        self,
        frames: Frames,
        evaluate: Evaluate,
        adopt: Adopt,
        owner_of: OwnerOf,
        options: ObserveOptions,
        *,
        deadline: float,
    ) -> None:
        """`deadline` on the monotonic clock, in seconds."""
        self._frames, self._evaluate, self._adopt = frames, evaluate, adopt
        self._owner_of = owner_of
        self._options, self._deadline = options, deadline
        self.title = ""
        self.url = ""
        self.nodes: list[RawNode] = []
        self.reasons: list[str] = []
        self.loading: list[Frame] = []
        """Frames whose document was not parsed yet."""
        self.cut = False
        """A budget ended it."""
        self._root: str | None = None
        self._begun_in = frames.main
        self.arriving = False
        """A frame's document had not come yet."""

    async def run(self, within: tuple[Frame, str] | None = None) -> None:
        """`within`: a document, and the element of it to look into."""
        main = self._frames.main
        frame, self._root = (main, None) if within is None else within
        self._begun_in = frame
        raw = await self._walk(frame, depth=0)
        self.title, self.url = raw["title"], raw["url"]
        await self._join(raw, frame, suffix="" if frame is main else f"@{frame.loader}")

    def _left_ms(self) -> int:
        return max(1, int((self._deadline - time.monotonic()) * 1000))

    def _because(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    async def _walk(self, frame: Frame, *, depth: int) -> dict[str, Any]:
        """Once more for each layer of closed roots that is opened by it."""
        found = await self._walk_once(frame, depth=depth)
        for _ in range(_MOST_LAYERS):
            if not found["hosts"] or not await self._hosts(frame, found["hosts"]):
                return found
            found = await self._walk_once(frame, depth=depth)
        if found["hosts"]:
            self._because("closed shadow roots within closed shadow roots were not all read")
        return found

    async def _walk_once(self, frame: Frame, *, depth: int) -> dict[str, Any]:
        budget = self._left_ms()
        asked = {
            "max_depth": self._options.max_depth,
            "max_nodes": max(1, self._options.max_nodes - len(self.nodes)),
            "budget_ms": budget,
            "include_bounds": self._options.include_bounds,
            "depth": depth,
            "root": self._root if depth == 0 else None,
        }
        return decoded(await self._evaluate(frame, "walk", [json.dumps(asked)], budget + _GRACE_MS))

    async def _join(self, raw: Mapping[str, Any], frame: Frame, *, suffix: str) -> None:
        self.cut = self.cut or raw["stopped"]
        for reason in raw["reasons"]:
            self._because(reason)
        if raw["loading"]:
            self.loading.append(frame)
            self._because("a document was still loading")
        nodes = unpacked(raw)
        children = await self._children(frame)
        if not suffix and not children and not raw["framed"]:
            self.nodes += nodes
            return
        for node in nodes:
            holds = node.pop("frame", False)
            child = children.pop(node["node"], None) if holds else None
            if suffix and "node" in node:
                node["node"] += suffix
            self.nodes.append(node)
            if holds:
                await self._enter(node, child)
        # Around an element that alone is looked into there are frames that do not belong to it.
        for owner in children if self._root is None or frame is not self._begun_in else ():
            await self._left_out(frame, owner)

    async def _enter(self, node: dict[str, Any], child: Frame | None) -> None:
        if child is None or self._frames.awaited(child):
            node["opaque"] = True
            self.arriving = self.arriving or not self._frames.settled
            self._because("a frame was still loading" if self.arriving else "a frame could not be read")
            return
        node["url"] = child.url
        try:
            inner = await self._walk(child, depth=node["d"] + 1)
        except FAILURES as error:
            node["opaque"] = True
            self._because(f"a frame could not be read: {error}")
            return
        await self._join(inner, child, suffix=f"@{child.loader}")

    async def _left_out(self, frame: Frame, owner: str) -> None:
        """A frame that the walk did not come to: in what is hidden it is rightly left out, as it is everywhere else."""
        try:
            shown = await self._evaluate(frame, "shown", [owner], self._left_ms())
        except FAILURES:
            shown = "true"
        if shown == "true":
            self._because("a frame could not be read: the walk does not come to the element that holds it")

    async def _hosts(self, frame: Frame, hosts: list[tuple[str, str, bool]]) -> bool:
        """Whether one of them had a closed root that was not known yet."""
        opened = False
        for node, tag, defined in hosts[:_MOST_HOSTS]:
            try:
                opened = await self._adopt(frame, (node, defined), self._left_ms()) or opened
            except FAILURES:
                self._because(f"the inside of a <{tag}> could not be read (perhaps a closed shadow root)")
        if len(hosts) > _MOST_HOSTS:
            self._because(f"more than {_MOST_HOSTS} custom elements, not all asked for a closed shadow root")
        return opened

    async def _children(self, frame: Frame) -> dict[str, Frame]:
        """Child frames by the elements that hold them."""
        found: dict[str, Frame] = {}
        for child in self._frames.children(frame):
            try:
                found[await self._owner_of(child, frame, self._left_ms() + _GRACE_MS)] = child
            except FAILURES:
                continue
        return found


def split_node(node: str) -> tuple[str, str | None]:
    """A retained id and, for a node in a child frame, that frame's generation."""
    inner, _, loader = node.partition("@")
    return inner, loader or None
