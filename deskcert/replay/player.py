"""`python -m deskcert.replay.player SCRIPT`: an agent that makes the moves of a recorded run, and decides nothing."""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from deskcert.agents.channel import Answer, Channel, Ended, Task

__all__ = ["main", "play"]


def main(argv: Sequence[str] | None = None) -> int:
    (path,) = sys.argv[1:] if argv is None else argv
    script = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        play(script, Channel(sys.stdin.buffer, sys.stdout.buffer))
    except Ended:
        return 0
    return 0


class Asks(Protocol):
    """What a channel is to the player."""

    def task(self) -> Task: ...

    def ask(self, command: str, **args: Any) -> Answer: ...


def play(script: Mapping[str, Any], channel: Asks) -> None:
    """Raises `Ended` when the session ends first."""
    here = _origin(channel.task().start_url)
    snapshots: list[Answer] = []
    seqs: dict[int, int] = {}
    acted = 0
    for move in script["moves"]:
        time.sleep(move["after_ms"] / 1_000)
        args = dict(move["args"])
        if "snapshot" in move and move["snapshot"] < len(snapshots):
            args["ref"] = _ref(snapshots[move["snapshot"]], move)
        if move.get("repeat_of_action") in seqs:
            args["repeat_of"] = seqs[move["repeat_of_action"]]
        if isinstance(args.get("url"), str) and args["url"].startswith(script["origin"]):
            args["url"] = here + args["url"].removeprefix(script["origin"])
        answer = channel.ask(move["command"], **args)
        if move["command"] == "snapshot":
            snapshots += [answer] if answer.ok else []
        elif move["command"] != "finish":
            acted += 1
            if answer.seq is not None:
                seqs[acted] = answer.seq
    if "look" in script:
        _look(script["look"], channel)


def _look(wanted: Mapping[str, Any], channel: Asks) -> None:
    """What there is to see goes into files; the window stays until it may go."""
    seen = channel.ask("snapshot")
    Path(wanted["tree"]).write_text(str(seen.data.get("text", "")), encoding="utf-8")
    shot = channel.ask("screenshot")
    if shot.ok:
        Path(wanted["picture"]).write_bytes(base64.b64decode(shot.data["data"]))
    while wanted["release"] is not None and not Path(wanted["release"]).exists():
        time.sleep(0.1)


def _ref(snapshot: Answer, move: Mapping[str, Any]) -> str:
    """The same one of those that read the same, where there are as many; else the element with the same number."""
    nodes = list(_nodes(snapshot.data.get("tree")))
    alike = [n for n in nodes if n.get("role") == move["role"] and n.get("name") == move["name"]]
    if "place" in move and len(alike) == move["alike"]:
        return str(alike[move["place"]]["ref_id"])
    return f"@{snapshot.data['snapshot_id']}:e{move['n']}"


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(tree, list):
        for item in tree:
            yield from _nodes(item)
    elif isinstance(tree, Mapping):
        if "ref_id" in tree:
            yield tree
        for value in tree.values():
            if isinstance(value, list | Mapping):
                yield from _nodes(value)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


if __name__ == "__main__":
    sys.exit(main())
