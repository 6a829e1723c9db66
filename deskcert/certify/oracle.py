"""The oracle: did the business outcome happen? Answered from the application's database and effect log, in a process
of its own, which reads and never writes.

`python -m deskcert.certify.oracle`: standard input is one JSON object `{"items", "ground", "effects"}`, standard output
is `{"effects_log": "enabled|disabled|none", "answers": [{"holds": true|false|null, "observed": …}, …], "via":
{"direct": n}}`, one answer an item.

| item | holds when |
| --- | --- |
| `{effect: {kind, id?, via?, request?, fields?}, times: n}` | exactly `times` (default 1) effects match |
| `{no_effect: {…}}` | none matches |
| `{sql: "select …", equals: value}` | the query's answer is the value (one cell: the cell; else a list of rows) |
| `{http: request, status?, pointer?, equals?, contains?}` | as it says of the answer (own applications) |
| `{file: "name", exists?: bool, equals?: text, contains?: text}` | as it says, beside the database |
| `{python: "checks:paid", args?, equals?}` | the function returns the value, by default true (own applications) |
| `times: n` instead of `equals` | the answer is the whole number n: it counts how often an effect is there |

`holds` is null where the evidence is missing (log disabled or damaged, query failed), for missing is never "did not
happen".
"""

from __future__ import annotations

import http.client
import json
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deskcert.certify.env_secrets import NOTHING_SECRET, EnvSecrets
from deskcert.certify.questions import (
    COMMAND_S,
    HTTP_S,
    PYTHON_S,
    Ground,
    Unknown,
    at_pointer,
    python_value,
    request,
    rows_of_command,
)

if TYPE_CHECKING:
    from deskcert.certify.forks import Forks

__all__ = ["Answer", "OracleAnswers", "answer", "ask", "ask_about", "main", "read_effects"]

_PROCESS_S = 15.0
_QUERY_S = 3.0
_MOST_ROWS = 20
_MOST_EFFECTS = 10
_LONGEST_VALUE = 2_000
_LARGEST_FILE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Answer:
    holds: bool | None
    observed: Any


@dataclass(frozen=True, slots=True)
class OracleAnswers:
    effects_log: str
    """`enabled | disabled | none`; disabled also when it is missing or cannot be read in full, none where the
    application has none."""
    answers: tuple[Answer, ...]
    via: Mapping[str, int] = field(default_factory=dict)
    """Effects in the whole log by the connection that they came by, `proxy | direct`."""


async def ask(
    items: Sequence[Mapping[str, Any]], database: Path, effects: Path, *, token: str, forks: Forks | None = None
) -> OracleAnswers:
    """About deskcert's own application."""
    return await ask_about(items, Ground(database, database.parent), effects, token=token, forks=forks)


async def ask_about(
    items: Sequence[Mapping[str, Any]],
    ground: Ground,
    effects: Path | None,
    *,
    token: str,
    secrets: EnvSecrets = NOTHING_SECRET,
    forks: Forks | None = None,
) -> OracleAnswers:
    """Start the oracle process and ask. It failing, or not answering in time, is "not established" for every item.
    `effects`: None for an application that has no such log. No secret comes back in what was observed."""
    import asyncio  # not needed in the oracle's own process, where it would be most of the time to start

    from deskcert.certify.forks import start_program
    from deskcert.certify.processes import child_environment

    told: dict[str, Any] = {"items": [secrets.fill(dict(i)) for i in items], "ground": ground.as_json()}
    question = json.dumps(told | {"effects": None if effects is None else str(effects)})
    pipe = asyncio.subprocess.PIPE
    process = await start_program(
        forks, "deskcert.certify.oracle", stdin=pipe, stdout=pipe, stderr=pipe, env=child_environment(token), cwd=None
    )
    err, limit = b"", _PROCESS_S + _longest(items, ground)
    try:
        out, err = await asyncio.wait_for(process.communicate(question.encode()), limit)
        told = json.loads(out)
        answers = tuple(Answer(a["holds"], secrets.scrub(a["observed"])) for a in told["answers"])
        if len(answers) != len(items):
            raise ValueError(f"{len(answers)} answers for {len(items)} questions")
        return OracleAnswers(str(told["effects_log"]), answers, {str(k): int(n) for k, n in told["via"].items()})
    except TimeoutError:
        why = f"the oracle did not answer within {limit:.0f} s"
    except (ValueError, KeyError, TypeError) as exc:
        why = f"the oracle failed ({exc}): {err.decode(errors='replace')[-400:]}"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    unknown = Answer(None, {"unknown": secrets.scrub(why)})
    return OracleAnswers("none" if effects is None else "disabled", tuple(unknown for _ in items))


def _longest(items: Sequence[Mapping[str, Any]], ground: Ground) -> float:
    """Seconds that the questions may take by their own limits, at most five minutes."""
    each = {"http": HTTP_S, "python": PYTHON_S, "sql": COMMAND_S if ground.sql else 0.0}
    return min(300.0, sum(each.get(key, 0.0) for item in items for key in item))


def answer(item: Mapping[str, Any], ground: Ground, effects: Sequence[Mapping[str, Any]] | None) -> Answer:
    """One item. `effects` is None where the log cannot vouch for anything."""
    if "effect" in item or "no_effect" in item:
        if effects is None:
            return Answer(None, {"unknown": "the application's effect log is missing, disabled or damaged"})
        found = [e for e in effects if _matches(e, item["effect"] if "effect" in item else item["no_effect"])]
        times = int(item.get("times", 1)) if "effect" in item else 0
        return Answer(len(found) == times, {"times": len(found), "effects": [_plain(e) for e in found[:_MOST_EFFECTS]]})
    try:
        if "sql" in item:
            return _compared(item, _query(str(item["sql"]), ground), as_text=bool(ground.sql))
        if "python" in item:
            value = python_value(ground, str(item["python"]), item.get("args", {}))
            return _compared({"equals": True, **item} if "times" not in item else item, value)
        if "http" in item:
            return _http(item, ground)
        if "file" in item:
            return _file(item, ground.files)
    except Unknown as exc:
        return Answer(None, {"unknown": str(exc)})
    return Answer(None, {"unknown": f"no such kind of oracle: {sorted(item)}"})


def _compared(item: Mapping[str, Any], value: Any, *, as_text: bool = False) -> Answer:
    """With `equals`, or counted with `times`. `as_text`: everything that a command prints is text."""
    observed = _plain(value)
    if "times" in item:
        number = (
            int(observed) if isinstance(observed, str) and observed.isascii() and observed.isdecimal() else observed
        )
        if isinstance(number, bool) or not isinstance(number, int):
            raise Unknown(f"times counts, so the answer must be one whole number, not {str(observed)[:200]!r}")
        return Answer(number == item["times"], {"times": number})
    wanted = _plain(item.get("equals"))
    return Answer(_as_text(observed) == _as_text(wanted) if as_text else bool(observed == wanted), observed)


def _as_text(value: Any) -> Any:
    match value:
        case list():
            return [_as_text(v) for v in value]
        case bool():
            return str(value).lower()
        case None:
            return ""
        case _:
            return str(value)


def _http(item: Mapping[str, Any], ground: Ground) -> Answer:
    try:
        response = request(item["http"], ground.url)
    except (OSError, ValueError, http.client.HTTPException) as exc:
        raise Unknown(f"the request failed: {type(exc).__name__}: {exc}") from exc
    if "times" in item:
        return _compared(item, at_pointer(response, item["pointer"]) if "pointer" in item else response.text.strip())
    observed: dict[str, Any] = {"status": response.status}
    holds = response.status == item.get("status", response.status)
    if "equals" in item:
        value = at_pointer(response, item["pointer"]) if "pointer" in item else response.text
        observed["value"] = _plain(value) if len(str(value)) <= _LONGEST_VALUE else f"{str(value)[:_LONGEST_VALUE]}…"
        holds = holds and bool(_plain(value) == _plain(item["equals"]))
    if "contains" in item:
        observed["contains"] = str(item["contains"]) in response.text
        holds = holds and observed["contains"]
    return Answer(holds, observed)


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


def _query(sql: str, ground: Ground) -> Any:
    """One cell where the answer is one, else the rows. Raises `Unknown`."""
    if ground.sql:
        rows: list[list[Any]] = [list(row) for row in rows_of_command(ground, sql)]
        return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows
    if ground.database is None:
        raise Unknown("the suite names no database for its application")
    try:
        connection = sqlite3.connect(f"{ground.database.absolute().as_uri()}?mode=ro", uri=True, timeout=2.0)
    except sqlite3.Error as exc:
        raise Unknown(f"the database could not be opened: {exc}") from exc
    deadline = time.monotonic() + _QUERY_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
    try:
        rows = [list(row) for row in connection.execute(sql).fetchmany(_MOST_ROWS + 1)]
    except sqlite3.Error as exc:
        raise Unknown(f"the query failed: {exc}") from exc
    finally:
        connection.close()
    return rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else rows


def _file(item: Mapping[str, Any], folder: Path) -> Answer:
    path = (folder / str(item["file"])).resolve()
    if not path.is_relative_to(folder.resolve()):
        return Answer(None, {"unknown": "the file lies outside the application's folder"})
    if not path.is_file():
        return Answer(item.get("exists") is False, {"exists": False})
    if path.stat().st_size > _LARGEST_FILE:
        return Answer(None, {"unknown": f"the file is larger than {_LARGEST_FILE} bytes"})
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


def read_effects(path: Path) -> list[Mapping[str, Any]] | None:
    """None where it cannot vouch for anything: missing, damaged, disabled."""
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


def main() -> None:
    """Standard input to standard output."""
    question = json.load(sys.stdin)
    ground = Ground.read(question["ground"])
    effects = None if question["effects"] is None else read_effects(Path(question["effects"]))
    answers = [answer(item, ground, effects) for item in question["items"]]
    told = {
        "effects_log": "none" if question["effects"] is None else "disabled" if effects is None else "enabled",
        "via": dict(sorted(Counter(str(e.get("via", "unknown")) for e in effects or ()).items())),
        "answers": [{"holds": a.holds, "observed": a.observed} for a in answers],
    }
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main()
