"""An agent of chance over JSON lines, for measuring the measuring: it knows the right row, and takes it in so many of a
hundred runs as it is told; else it takes another. Now and then it looks again, or sends a ref that means nothing.

`python noisy_agent.py PERCENT`: which of the two it was going to do stands on standard error, as `right` or `wrong`.
"""

from __future__ import annotations

import json
import random
import sys
from itertools import count
from typing import Any

_NUMBERS = count(1)


def _ask(command: str, **args: Any) -> dict[str, Any]:
    number = next(_NUMBERS)
    sys.stdout.write(json.dumps({"id": number, "command": command, "args": args}) + "\n")
    sys.stdout.flush()
    while True:
        line = json.loads(sys.stdin.readline() or '{"type": "end"}')
        if line.get("type") == "end":
            sys.exit(0)
        if line.get("id") == number:
            return dict(line)


def _buttons(node: dict[str, Any], row: str = "") -> list[tuple[str, str]]:
    """(row, ref) of every button called Approve."""
    labels = [text for _, text in node.get("context", [])]
    here = next((text for text in labels if text.startswith("Order ")), row)
    found = [(here, node["ref_id"])] if node.get("role") == "button" and node.get("name") == "Approve" else []
    return found + [b for child in node.get("children", []) for b in _buttons(child, here)]


def _look() -> list[tuple[str, str]]:
    tree = _ask("snapshot")["data"]["tree"]
    return [b for node in (tree if isinstance(tree, list) else [tree]) for b in _buttons(node)]


def main() -> None:
    chance = random.SystemRandom()
    task = json.loads(sys.stdin.readline())["task"]
    wanted = next(word for word in task.replace(".", " ").split() if word.isdigit())
    right = chance.random() * 100 < float(sys.argv[1])
    sys.stderr.write("right\n" if right else "wrong\n")
    buttons = _look()
    while chance.random() < 0.3:
        buttons = _look()
    if chance.random() < 0.3:
        _ask("click", ref="@s00000000:e1")
        buttons = _look()
    mine = [ref for row, ref in buttons if row == f"Order {wanted}"]
    others = [ref for row, ref in buttons if row != f"Order {wanted}"]
    _ask("click", ref=chance.choice(mine if right else others))
    _look()
    _ask("finish", outcome="done", message="")


main()
