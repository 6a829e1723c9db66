"""The oracle: did the business outcome happen? Answered from the application's database and effect log, in a process
of its own, which reads and never writes.

`python -m deskcert.certify.oracle`: standard input is one JSON object `{"items", "db", "effects"}`, standard output is
`{"effects_log": "enabled|disabled", "answers": [{"holds": true|false|null, "observed": …}, …], "via": {"direct": n}}`,
one answer an item.

| item | holds when |
| --- | --- |
| `{effect: {kind, id?, via?, request?, fields?}, times: n}` | exactly `times` (default 1) effects match |
| `{no_effect: {…}}` | none matches |
| `{sql: "select …", equals: value}` | the query's answer is the value (one cell: the cell; else a list of rows) |
| `{file: "name", exists?: bool, equals?: text, contains?: text}` | as it says, beside the database |

`holds` is null where the evidence is missing (log disabled or damaged, query failed), for missing is never "did not
happen".
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Answer", "OracleAnswers", "answer", "ask"]

_PROCESS_S = 15.0
_QUERY_S = 3.0
_MOST_ROWS = 20
_MOST_EFFECTS = 10


@dataclass(frozen=True, slots=True)
class Answer:
    holds: bool | None
    observed: Any


@dataclass(frozen=True, slots=True)
class OracleAnswers:
    effects_log: str
    """`enabled | disabled`; disabled also when it is missing or cannot be read in full."""
    answers: tuple[Answer, ...]
    via: Mapping[str, int] = field(default_factory=dict)
    """Effects in the whole log by the connection that they came by, `proxy | direct`."""


async def ask(items: Sequence[Mapping[str, Any]], database: Path, effects: Path, *, token: str) -> OracleAnswers:
    """Start the oracle process and ask. It failing, or not answering in 15 s, is "not established" for every item."""
    import asyncio  # not needed in the oracle's own process, where it would be most of the time to start

    from deskcert.certify.processes import child_environment

    question = json.dumps({"items": [dict(i) for i in items], "db": str(database), "effects": str(effects)})
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "deskcert.certify.oracle",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=child_environment(token),
        start_new_session=True,
    )
    err = b""
    try:
        out, err = await asyncio.wait_for(process.communicate(question.encode()), _PROCESS_S)
        told = json.loads(out)
        answers = tuple(Answer(a["holds"], a["observed"]) for a in told["answers"])
        if len(answers) != len(items):
            raise ValueError(f"{len(answers)} answers for {len(items)} questions")
        return OracleAnswers(str(told["effects_log"]), answers, {str(k): int(n) for k, n in told["via"].items()})
    except TimeoutError:
        why = f"the oracle did not answer within {_PROCESS_S:.0f} s"
    except (ValueError, KeyError, TypeError) as exc:
        why = f"the oracle failed ({exc}): {err.decode(errors='replace')[-400:]}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return OracleAnswers("disabled", tuple(Answer(None, {"unknown": why}) for _ in items))


def answer(item: Mapping[str, Any], database: Path, effects: Sequence[Mapping[str, Any]] | None) -> Answer:
    """One item. `effects` is None where the log cannot vouch for anything."""
    if "effect" in item or "no_effect" in item:
        if effects is None:
            return Answer(None, {"unknown": "the application's effect log is missing, disabled or damaged"})
        found = [e for e in effects if _matches(e, item["effect"] if "effect" in item else item["no_effect"])]
        times = int(item.get("times", 1)) if "effect" in item else 0
        return Answer(len(found) == times, {"times": len(found), "effects": [_plain(e) for e in found[:_MOST_EFFECTS]]})
    if "sql" in item:
        return _query(str(item["sql"]), item.get("equals"), database)
    if "file" in item:
        return _file(item, database.parent)
    return Answer(None, {"unknown": f"no such kind of oracle: {sorted(item)}"})


def _matches(effect: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for key, value in wanted.items():
        if key == "fields":
            fields = effect.get("fields", {})
            if not all(_same(fields.get(k), v) for k, v in value.items()):
                return False
        elif not _same(effect.get(key), value):
            return False
    return True


def _same(have: object, want: object) -> bool:
    """Equal, or equal as text: an id is a number in YAML and may be text in the log. True is never 1."""
    if isinstance(have, bool) or isinstance(want, bool):
        return have is want
    return have == want or (have is not None and str(have) == str(want))


def _query(sql: str, equals: object, database: Path) -> Answer:
    try:
        connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=2.0)
    except sqlite3.Error as exc:
        return Answer(None, {"unknown": f"the database could not be opened: {exc}"})
    deadline = time.monotonic() + _QUERY_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    try:
        rows = [list(row) for row in connection.execute(sql).fetchmany(_MOST_ROWS + 1)]
    except sqlite3.Error as exc:
        return Answer(None, {"unknown": f"the query failed: {exc}"})
    finally:
        connection.close()
    observed: Any = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows
    return Answer(bool(_plain(observed) == _plain(equals)), _plain(observed))


def _file(item: Mapping[str, Any], folder: Path) -> Answer:
    path = (folder / str(item["file"])).resolve()
    if not path.is_relative_to(folder.resolve()):
        return Answer(None, {"unknown": "the file lies outside the application's folder"})
    if not path.is_file():
        return Answer(item.get("exists") is False, {"exists": False})
    text = path.read_text(errors="replace")
    observed: dict[str, Any] = {"exists": True, "bytes": path.stat().st_size}
    holds = item.get("exists", True) is True
    if "equals" in item:
        observed["equals"] = text == item["equals"]
        holds = holds and observed["equals"]
    if "contains" in item:
        observed["contains"] = str(item["contains"]) in text
        holds = holds and observed["contains"]
    return Answer(holds, observed)


def _plain(value: Any) -> Any:
    """As a record may hold it: no floats, no bytes."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return repr(value)
        case bytes():
            return value.hex()
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case _:
            return [_plain(v) for v in value]


def _read_effects(path: Path) -> list[Mapping[str, Any]] | None:
    try:
        lines = path.read_text().split("\n")
        # A last line without its newline was being written when the application died: it cannot vouch.
        if lines.pop() != "":
            return None
        effects = [json.loads(line) for line in lines]
    except (OSError, ValueError):
        return None
    if not all(isinstance(e, dict) and isinstance(e.get("kind"), str) for e in effects):
        return None
    if any(e["kind"] == "log.disabled" for e in effects):
        return None
    return effects


def _main() -> None:
    question = json.load(sys.stdin)
    effects = _read_effects(Path(question["effects"]))
    answers = [answer(item, Path(question["db"]), effects) for item in question["items"]]
    told = {
        "effects_log": "disabled" if effects is None else "enabled",
        "via": dict(sorted(Counter(str(e.get("via", "unknown")) for e in effects or ()).items())),
        "answers": [{"holds": a.holds, "observed": a.observed} for a in answers],
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    _main()
