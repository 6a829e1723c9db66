"""JSON lines: bytes from an agent that is not trusted, and a whole conversation with a real agent process."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest
from guarded_world import Guarded
from hypothesis import given
from hypothesis import strategies as st

from deskcert.session.jsonlines import MAX_LINE, EndReason, Served, Task, encode, id_of, parse_message, serve
from deskcert_schema.errors import ContractError
from deskcert_schema.validate import check

TASK = Task("Approve order 1002.", "http://app.test/orders", 60, 30)


class Wire:
    """The writing end, kept in memory."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        return None

    @property
    def messages(self) -> list[dict]:
        return [json.loads(line) for line in self.written.splitlines()]


async def _served(handle, *chunks: bytes, task: Task = TASK, open_end: bool = False) -> tuple[Served, list[dict]]:
    reader, wire = asyncio.StreamReader(limit=MAX_LINE + 1), Wire()
    for chunk in chunks:
        reader.feed_data(chunk)
    if not open_end:
        reader.feed_eof()
    served = await serve(handle, reader, wire, task)
    for message in wire.messages:
        assert check("jsonlines_to_agent", message) == [], message
    return served, wire.messages


async def _no(command, args):
    raise AssertionError(f"{command} must not be handled")


async def test_the_task_comes_first_then_answers_then_the_end(guarded: Guarded) -> None:
    lines = [
        {"id": 1, "command": "snapshot", "args": {"interactive_only": True}},
        {"id": "two", "command": "status"},
        {"id": 3, "command": "finish", "args": {"outcome": "done", "message": "ok"}},
        {"id": 4, "command": "snapshot"},
    ]
    for line in lines:
        assert check("jsonlines_from_agent", line) == []
    served, messages = await _served(guarded.session.handle, *(encode(line) for line in lines))
    assert messages[0] == {
        "type": "task",
        "version": 1,
        "task": "Approve order 1002.",
        "budget": {"actions": 60, "seconds": 30},
        "start_url": "http://app.test/orders",
    }
    assert [m["id"] for m in messages[1:-1]] == [1, "two", 3]
    assert messages[-1] == {"type": "end", "reason": "finished"}
    assert served == Served(EndReason.FINISHED, "the claim was made", 0)


@pytest.mark.parametrize(
    ("line", "said", "number"),
    [
        (b"\n", None, None),
        (b"{\n", "one JSON object", None),
        (b"[1]\n", "one JSON object", None),
        (b"\xff\n", "UTF-8", None),
        (b'{"id":5,"command":"snapshot","args":{},"extra":1}\n', "unknown field 'extra'", 5),
        (b'{"command":"snapshot"}\n', "id must be", None),
        (b'{"id":true,"command":"snapshot"}\n', "id must be", None),
        (b'{"id":-1,"command":"snapshot"}\n', "id must be", None),
        (b'{"id":6,"command":7}\n', "command must be", 6),
        (b'{"id":6,"command":"click","args":[]}\n', "args must be an object", 6),
        (b'{"id":6,"command":"click","id":7}\n', "twice", None),
        (b'{"id":6,"command":"click","args":{"ref":"a","ref":"b"}}\n', "twice", None),
        (b'{"id":6,"command":"click","args":{"n":NaN}}\n', "NaN is no JSON", None),
        (b"[" * 100_000 + b"\n", "one JSON object", None),
        (b'{"id":1,"command":"' + b"x" * MAX_LINE + b'"}\n', "at most 1 MiB", None),
        (b'{"id":8,"command":"status"', "one JSON object", None),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_counted(line: bytes, said, number) -> None:
    served, messages = await _served(_no, line)
    answers = messages[1:-1]
    if said is None:
        assert answers == []
        return
    assert served.bad_lines == 1
    assert [a["error"]["code"] for a in answers] == ["INVALID_ARGS"]
    assert said in answers[0]["error"]["message"]
    assert answers[0].get("id") == number
    assert messages[-1] == {"type": "end", "reason": "error"}


async def test_after_a_line_that_is_too_long_the_next_one_is_read() -> None:
    async def handle(command, args):
        return {"version": "2.5", "ok": True, "command": command, "data": {}}

    too_long = b'{"id":1,"command":"' + b"x" * (3 * MAX_LINE) + b'"}\n'
    _, messages = await _served(handle, too_long, encode({"id": 2, "command": "status"}))
    assert [m.get("id") for m in messages[1:-1]] == [None, 2]


async def test_whoever_speaks_another_language_is_sent_away() -> None:
    served, messages = await _served(_no, b"hello\n" * 50)
    assert (served.reason, served.bad_lines) == (EndReason.ERROR, 20)
    assert len(messages) == 22


async def test_time_is_bounded(guarded: Guarded) -> None:
    served, messages = await _served(guarded.session.handle, task=Task("t", "http://a/", 1, 1), open_end=True)
    assert served.reason is EndReason.BUDGET
    assert messages[-1] == {"type": "end", "reason": "budget"}


async def test_half_a_surrogate_pair_in_a_page_or_a_command_breaks_nothing(guarded: Guarded) -> None:
    guarded.world.change("n1001", name="Approve \ud800")
    lines = b'{"id":1,"command":"snapshot"}\n{"id":2,"command":"cl\\ud800ick"}\n'
    _, messages = await _served(guarded.session.handle, lines)
    assert messages[1]["ok"] is True
    assert "Approve \ud800" in messages[1]["data"]["tree"]["children"][0]["name"]
    assert messages[2]["error"]["code"] == "INVALID_ARGS"
    assert guarded.kinds() == ["observation", "action.refused"]


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_the_documented_error(line: bytes) -> None:
    try:
        message = parse_message(line)
    except ContractError:
        id_of(line)
    else:
        assert isinstance(message.command, str)


PLAN = 'goals: [{act: click, role: button, name: "Approve", context: "Order 1002"}]\nclaim: done\n'


@pytest.mark.parametrize(
    ("agent", "delivered", "claim"),
    [("careful", ["order-1002"], "done"), ("silent", [], None), ("instant_refuser", [], "refused")],
)
async def test_a_real_agent_process_over_a_real_session(guarded: Guarded, tmp_path, agent, delivered, claim) -> None:
    plan = tmp_path / "x.plan.yaml"
    plan.write_text(PLAN)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "deskcert.agents", agent, "--plan", str(plan)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=MAX_LINE + 1,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    served = await serve(guarded.session.handle, process.stdout, process.stdin, TASK)
    assert await process.wait() == 0
    assert [d.thing for d in guarded.world.delivered] == delivered
    assert guarded.session.claim == claim
    assert served.reason is (EndReason.FINISHED if claim else EndReason.ERROR)
