"""The same request gets the same envelope, whichever way it comes in."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client
from ways_world import Simulated, simulated

from deskcert.api import GuardedSession
from deskcert.session.jsonlines import MAX_LINE, Task, serve
from deskcert.ways import client as one_shot
from deskcert.ways.arguments import COMMANDS as TABLE
from deskcert.ways.daemon import Daemon
from deskcert.ways.mcp.http import McpHttp
from deskcert.ways.mcp.lines import serve_lines
from deskcert.ways.registry import Entry, runtime_folder
from deskcert.ways.schemas import output_schema
from deskcert.ways.sockets import private_listener
from deskcert_schema.validate import check

type Ask = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]

CONVERSATION: tuple[tuple[str, dict[str, Any]], ...] = (
    ("status", {}),
    ("click", {"ref": "@snever00:e1"}),
    ("snapshot", {}),
    ("snapshot", {"interactive_only": True, "compact": True, "max_depth": 3}),
    ("get", {"ref": "{Approve}", "property": "name"}),
    ("get", {"ref": "{Approve}", "property": "colour"}),
    ("is", {"ref": "{Approve}", "property": "enabled"}),
    ("click", {"ref": "{Approve}"}),
    ("click", {"ref": "{Approve}"}),
    ("click", {"ref": "{Delete account}"}),
    ("click", {"ref": "e1"}),
    ("click", {"ref": 7}),
    ("click", {}),
    ("click", {"ref": "{Approve}", "colour": "red"}),
    ("click", {"ref": "{Approve}", "timeout_ms": "soon"}),
    ("set-value", {"ref": "{Note}", "value": "two boxes"}),
    ("press", {"ref": "{Note}", "key": "Escape"}),
    ("navigate", {"url": "file:///etc/passwd"}),
    ("clikc", {"ref": "{Approve}"}),
    ("hover", {"ref": "{Approve}"}),
    ("launch", {"app": "calculator"}),
    ("key-down", {"key": "a"}),
    ("finish", {"outcome": "certainly"}),
    ("finish", {"outcome": "done", "message": "approved"}),
    ("click", {"ref": "{Approve}"}),
)


@asynccontextmanager
async def over_python(world: Simulated) -> AsyncIterator[Ask]:
    session = GuardedSession(world.opened, ledger=world.opened.folder)

    async def ask(command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return (await session.ask(command, **args)).envelope

    yield ask


@asynccontextmanager
async def over_mcp_http(world: Simulated) -> AsyncIterator[Ask]:
    http = McpHttp()
    async with http.running():
        endpoint = await http.add(world.server())
        async with Client(http.url(endpoint)) as client:
            yield _mcp(client)


@asynccontextmanager
async def over_mcp_lines(world: Simulated) -> AsyncIterator[Ask]:
    """The bytes that standard streams carry, over a socket, with the SDK's client at the other end."""
    import socket
    import sys

    from mcp import StdioServerParameters

    path = world.opened.folder / "s"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve_lines(world.server(), reader, writer)
        writer.close()

    server = await asyncio.start_unix_server(one, sock=listener, limit=MAX_LINE)
    relay = Path(one_shot.__file__).with_name("relay.py")
    parameters = StdioServerParameters(command=sys.executable, args=["-I", "-S", str(relay), "stdio", str(path)])
    async with Client(parameters) as client:
        yield _mcp(client)
    server.close()


def _mcp(client: Any) -> Ask:
    tools: dict[str, Any] = {}

    async def ask(command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        if not tools:
            tools.update({t.name: t for t in (await client.list_tools()).tools})
        answer = await client.call_tool(command, dict(args))
        envelope: dict[str, Any] = answer.structured_content
        assert answer.is_error is not envelope["ok"]
        assert answer.content[0].text
        if command in tools:
            # Self-contained: no registry of ours, no vocabulary of ours.
            Draft202012Validator(tools[command].output_schema).validate(envelope)
        return envelope

    return ask


@asynccontextmanager
async def over_json_lines(world: Simulated) -> AsyncIterator[Ask]:
    theirs, ours = asyncio.StreamReader(limit=MAX_LINE + 2), asyncio.StreamReader(limit=MAX_LINE + 2)

    class Into:
        def __init__(self, reader: asyncio.StreamReader) -> None:
            self.reader = reader

        def write(self, data: bytes) -> None:
            self.reader.feed_data(data)

        async def drain(self) -> None:
            return None

    serving = asyncio.create_task(serve(world.opened.handle, ours, Into(theirs), Task("approve", "http://x/", 60, 60)))
    assert json.loads(await theirs.readline())["type"] == "task"
    number = 0

    async def ask(command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal number
        if serving.done():  # the claim ends a conversation: what comes after it is the session's to refuse
            return await world.opened.handle(command, args)
        number += 1
        ours.feed_data(json.dumps({"id": number, "command": command, "args": dict(args)}).encode() + b"\n")
        answer: dict[str, Any] = json.loads(await theirs.readline())
        assert answer.pop("id") == number
        if command == "finish" and answer["ok"]:
            await serving
        return answer

    yield ask
    ours.feed_eof()
    await serving


@asynccontextmanager
async def over_one_shot(world: Simulated) -> AsyncIterator[Ask]:
    daemon = Daemon(world.opened, idle_s=60)
    entry = Entry("parity", 0, "", "", "", "")
    server = await asyncio.start_unix_server(
        daemon.client, sock=private_listener(runtime_folder() / "parity.sock"), limit=MAX_LINE
    )

    async def ask(command: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        return await asyncio.to_thread(one_shot.ask, entry, command, args, acting=True)

    yield ask
    server.close()


WAYS = {
    "python": over_python,
    "mcp-http": over_mcp_http,
    "mcp-lines": over_mcp_lines,
    "json-lines": over_json_lines,
    "one-shot": over_one_shot,
}


async def converse(ask: Ask) -> list[Any]:
    """The whole conversation, each answer accepted by the published schema and without what differs by nature."""
    refs: dict[str, str] = {}
    answers = []
    for command, args in CONVERSATION:
        given = {k: refs.get(v.strip("{}"), v) if isinstance(v, str) else v for k, v in args.items()}
        envelope = json.loads(json.dumps(await ask(command, given)))
        assert check("envelope", envelope) == [], envelope
        if command == "snapshot":
            refs = {}
            _names(envelope["data"]["tree"], refs)
        answers.append(_plain(envelope))
    return answers


def _names(node: Any, refs: dict[str, str]) -> None:
    for one in node if isinstance(node, list) else [node]:
        if "ref_id" in one:
            refs.setdefault(one["name"], one["ref_id"])
        _names(one.get("children", []), refs)


def _plain(envelope: dict[str, Any]) -> Any:
    """Random ids and times of day are nobody's to keep equal."""
    text = re.sub(r"\bs[0-9a-z]{8,12}\b", "SNAPSHOT", json.dumps(envelope, sort_keys=True))
    text = re.sub(r'"(commit_us|lease_hold_ms)": \d+', r'"\1": 0', text)
    return json.loads(re.sub(r'"seconds": \{"used": \d+\}', '"seconds": {}', text))


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.mark.parametrize("way", [w for w in WAYS if w != "python"])
async def test_every_way_answers_as_the_python_api_does(way: str, tmp_path: Path, runtime: None) -> None:
    async with simulated(tmp_path / "a") as world, over_python(world) as ask:
        expected = await converse(ask)
        truth = world.delivered()
    async with simulated(tmp_path / "b") as world, WAYS[way](world) as ask:
        for wanted, found in zip(expected, await converse(ask), strict=True):
            assert found == wanted
        assert len(world.delivered()) == len(truth) > 0


async def test_the_conversation_meets_what_it_should(tmp_path: Path) -> None:
    """Guards the parity test itself: it would be worth little over answers of one sort."""
    async with simulated(tmp_path) as world, over_python(world) as ask:
        answers = await converse(ask)
    met = {a["error"]["code"] for a in answers if not a["ok"]} | {a["command"] for a in answers if a["ok"]}
    assert met >= {"POLICY_DENIED", "INVALID_ARGS", "SNAPSHOT_NOT_FOUND", "ACTION_NOT_SUPPORTED", "click", "set-value"}


def test_the_table_of_arguments_is_that_of_the_commands() -> None:
    from deskcert.session.commands import COMMANDS

    for name, info in TABLE.items():
        held = {a.name: a.required for a in COMMANDS[name].args}
        assert {p.name: p.required for p in info.params} == held, f"{name}: put it right in deskcert/ways/arguments.py"
        assert info.acting is COMMANDS[name].acting


async def test_a_command_that_the_table_does_not_know_is_offered_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over MCP with its arguments' names, over the command line with whatever is given; its own code judges."""
    from deskcert.cli.commands import _untold
    from deskcert.ways import arguments

    fewer = {name: info for name, info in TABLE.items() if name != "is"}
    monkeypatch.setattr(arguments, "COMMANDS", fewer)
    async with simulated(tmp_path) as world, Client(world.server()) as client:
        tool = next(t for t in (await client.list_tools()).tools if t.name == "is")
    assert tool.input_schema["required"] == ["ref", "property"]
    assert "pattern" in tool.input_schema["properties"]["ref"]
    words = ("@s8f3k2p9:e8", "--property", "enabled", "--count", "3", "--first", "--name=Approve all")
    found = {"ref": "@s8f3k2p9:e8", "property": "enabled", "count": 3, "first": True, "name": "Approve all"}
    assert _untold(words) == found


@pytest.mark.parametrize("command", TABLE)
def test_output_schemas_are_schemas_and_refuse_what_the_contract_forbids(command: str) -> None:
    schema = output_schema(command)
    Draft202012Validator.check_schema(schema)
    assert "urn:" not in json.dumps(schema)
    judge = Draft202012Validator(schema)
    assert not judge.is_valid({"version": "2.5", "ok": True, "command": command})
    lie = {"delivery": "not_delivered", "retry": "unsafe"}
    error = {"code": "TIMEOUT", "message": "late", "disposition": lie}
    assert not judge.is_valid({"version": "2.5", "ok": False, "command": command, "error": error})
