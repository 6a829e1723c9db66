"""What the guard decides for a grid of situations, and what it writes down in a family of histories.

`python tests/guard/decided_before.py` writes `decided.json`, `spelled.json` and `told.jsonl` anew, after a change that
was meant. Look at the difference: old ledgers are decided again by the new guard, and every line that differs is one
that a replay would report. With names of histories it prints them instead, whole.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from guard_grid import QUESTIONS, SITUATIONS, decided
from guard_histories import HISTORIES, told
from spelled_before import SPELLED

HERE = Path(__file__).parent


def main() -> None:
    for name in sys.argv[1:]:
        print(json.dumps(HISTORIES[name](), indent=1))
    if sys.argv[1:]:
        return
    now = {question: decided(question) for question in QUESTIONS}
    (HERE / "decided.json").write_text(json.dumps({"situations": list(SITUATIONS), **now}, indent=0) + "\n")
    lines = [json.dumps(told(name), ensure_ascii=False) for name in HISTORIES]
    spelled = {name: work() for name, work in SPELLED.items()}
    (HERE / "spelled.json").write_text(json.dumps(spelled, indent=0) + "\n")
    (HERE / "told.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
