"""MCP over the real thing: clients that none of us wrote, two agents at once, a client that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from ways_world import DESKCERT, Application, ref_of, verified_word

pytestmark = pytest.mark.web

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


@asynccontextmanager
async def served(cwd: Path, url: str, policy: Path, *, clients: int = 1) -> AsyncIterator[list[dict[str, Any]]]:
    """`deskcert mcp --http`, as a program."""
    process = await asyncio.create_subprocess_exec(
        *(DESKCERT, "mcp", "--url", url, "--policy", str(policy), "--http", "--clients", str(clients)),
        cwd=cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield [json.loads(await asyncio.wait_for(process.stdout.readline(), 60)) for _ in range(clients)]
    finally:
        with contextlib.suppress(ProcessLookupError):  # it ends by itself after every client's claim
            process.terminate()
        assert await asyncio.wait_for(process.wait(), 30) == 0


async def call(client: Client, tool: str, **args: Any) -> dict[str, Any]:
    envelope: dict[str, Any] = (await client.call_tool(tool, args)).structured_content
    return envelope


async def test_the_sdk_s_own_client_does_everything_over_standard_streams(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    url = app.start("/settings")
    arguments = ["mcp", "--url", url, "--policy", str(policy), "--task", "Look at the settings.", "--out", "out"]
    async with Client(StdioServerParameters(command=DESKCERT, args=arguments, cwd=tmp_path)) as client:
        tools = {t.name: t for t in (await client.list_tools()).tools}
        assert tools["click"].annotations.destructive_hint
        assert not tools["click"].annotations.idempotent_hint
        assert tools["snapshot"].annotations.read_only_hint
        seen = await call(client, "snapshot")
        denied = await call(client, "click", ref=ref_of(seen, "Delete account"))
        assert denied["error"]["code"] == "POLICY_DENIED"
        assert (await client.read_resource("deskcert://snapshot")).contents[0].text == seen["data"]["text"]
        assert "no-delete" in (await client.read_resource("deskcert://policy")).contents[0].text
        assert json.loads((await client.read_resource("deskcert://run")).contents[0].text)["custody"] == "owned"
        assert "Look at the settings." in (await client.get_prompt("task")).messages[0].content.text
        assert "never_automatic" in (await client.get_prompt("contract")).messages[0].content.text
        assert (await call(client, "finish", outcome="refused", message="forbidden"))["ok"]
    (run,) = (tmp_path / "out").iterdir()
    assert verified_word(run, tmp_path) == "complete"
    assert app.effects() == []


async def test_a_client_from_npm_lists_acts_is_denied_and_finishes(
    app: Application, tmp_path: Path, policy: Path, request: pytest.FixtureRequest
) -> None:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = Path(request.config.cache.mkdir("deskcert-npm"))  # installed once, kept between runs
    inspector = folder / "node_modules" / ".bin" / "mcp-inspector"
    if not inspector.exists():
        await asyncio.to_thread(
            subprocess.run,
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", INSPECTOR],
            cwd=folder,
            check=True,
            capture_output=True,
            timeout=120,
        )

    async def inspect(url: str, *arguments: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *(str(inspector), "--cli", url, "--transport", "http", *arguments),
            cwd=folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        told, errors = await asyncio.wait_for(process.communicate(), 60)
        assert told, errors
        found: dict[str, Any] = json.loads(told)
        return found

    async def tool(url: str, name: str, *arguments: str) -> dict[str, Any]:
        options = [w for a in arguments for w in ("--tool-arg", a)]
        answer = await inspect(url, "--method", "tools/call", "--tool-name", name, *options)
        envelope: dict[str, Any] = answer["structuredContent"]
        return envelope

    async with served(tmp_path, app.start("/settings"), policy) as ((ready),):
        url = ready["url"]
        listed = {t["name"] for t in (await inspect(url, "--method", "tools/list"))["tools"]}
        assert {"snapshot", "click", "finish"} <= listed
        seen = await tool(url, "snapshot")
        denied = await tool(url, "click", f"ref={ref_of(seen, 'Delete account')}")
        assert denied["error"]["details"]["kind"] == "forbidden_name"
        clicked = await tool(url, "click", f"ref={ref_of(seen, 'Orders')}")
        assert clicked["data"]["disposition"]["delivery"].startswith("delivered")
        assert (await tool(url, "finish", "outcome=done"))["ok"]
    assert verified_word(Path(ready["ledger"]), tmp_path) == "complete"
    assert app.effects() == []


async def test_two_agents_on_two_sessions_never_see_each_other_s_snapshots(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    url = app.start("/orders")
    async with served(tmp_path, url, policy, clients=2) as ready:
        first, second = ready
        assert first["ledger"] != second["ledger"]
        async with Client(first["url"]) as one, Client(second["url"]) as two:
            seen_1, seen_2 = await asyncio.gather(call(one, "snapshot"), call(two, "snapshot"))
            stolen = await call(two, "click", ref=ref_of(seen_1, "Approve", "Order 1001"))
            assert stolen["error"]["code"] == "SNAPSHOT_NOT_FOUND"
            newest = (await two.read_resource("deskcert://snapshot")).contents[0].text
            assert newest.startswith(f"@{seen_2['data']['snapshot_id']} ")
            both = await asyncio.gather(
                call(one, "click", ref=ref_of(seen_1, "Approve", "Order 1001")),
                call(two, "click", ref=ref_of(seen_2, "Approve", "Order 1002")),
            )
            assert [b["ok"] for b in both] == [True, True]
            await app.committed(2)
    assert sorted(e["id"] for e in app.effects()) == [1001, 1002]
    for found in ready:
        assert verified_word(Path(found["ledger"]), tmp_path) == "complete"


async def test_over_http_the_claim_ends_the_session_and_so_does_silence(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    """A client that is killed says nothing over HTTP; its ledger is sealed all the same."""
    process = await asyncio.create_subprocess_exec(
        *(DESKCERT, "mcp", "--url", app.start("/orders"), "--policy", str(policy), "--http", "--clients", "2"),
        *("--idle", "3"),
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    claims, silent = [json.loads(await process.stdout.readline()) for _ in range(2)]
    async with Client(claims["url"]) as client:
        assert (await call(client, "finish", outcome="unsure"))["ok"]
    assert await asyncio.wait_for(process.wait(), 30) == 0
    for found, why in ((claims, "the claim was made"), (silent, "nobody asked")):
        assert verified_word(Path(found["ledger"]), tmp_path) == "complete"
        last = (Path(found["ledger"]) / "ledger.jsonl").read_text().splitlines()[-1]
        assert json.loads(last)["reason"].startswith(why)


async def test_two_agents_on_one_session_act_one_after_the_other(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    url = app.start("/orders")
    async with served(tmp_path, url, policy) as ((ready),), Client(ready["url"]) as one, Client(ready["url"]) as two:
        seen = await call(one, "snapshot")
        clicks = [(c, ref_of(seen, "Approve", f"Order {n}")) for c, n in ((one, 1001), (two, 1002), (one, 1003))]
        answers = await asyncio.gather(*(call(c, "click", ref=ref) for c, ref in clicks))
        await app.committed(len([a for a in answers if a["ok"]]))
        records = [json.loads(line) for line in (Path(ready["ledger"]) / "ledger.jsonl").read_bytes().splitlines()]
    # Every intent has its result before the next intent is recorded, whoever asked.
    turns = [r["kind"] for r in records if r["kind"] in ("action.intent", "action.result")]
    assert turns == ["action.intent", "action.result"] * (len(turns) // 2)
    assert len(turns) > 0
    assert len(app.effects()) == len([a for a in answers if a["ok"]])


def test_a_killed_client_leaves_a_sealed_ledger(app: Application, tmp_path: Path, policy: Path) -> None:
    """The client dies without a word while its server waits for it; the server ends the session in order."""
    script = tmp_path / "client.py"
    script.write_text(
        "import asyncio, sys\nfrom mcp import Client, StdioServerParameters\n"
        "async def main():\n"
        f"    target = StdioServerParameters(command={DESKCERT!r}, args=sys.argv[1:])\n"
        "    async with Client(target) as client:\n"
        "        print((await client.call_tool('snapshot', {})).structured_content['ok'], flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    arguments = ["mcp", "--url", app.start("/orders"), "--policy", str(policy), "--out", "out"]
    client = subprocess.Popen(
        [sys.executable, str(script), *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert client.stdout is not None
    assert client.stdout.readline() == b"True\n"
    (server,) = _children(client.pid)
    gone = os.pidfd_open(server)
    client.send_signal(signal.SIGKILL)
    client.wait()
    client.stdout.close()
    import select

    assert select.select([gone], [], [], 30)[0], "the server did not end after its client"
    os.close(gone)
    (run,) = (tmp_path / "out").iterdir()
    assert verified_word(run, tmp_path) == "complete"


def test_a_server_that_is_told_to_end_seals_and_says_nothing_odd(
    app: Application, tmp_path: Path, policy: Path
) -> None:
    arguments = ["mcp", "--url", app.start("/orders"), "--policy", str(policy), "--out", "out", "--http"]
    with subprocess.Popen(
        [DESKCERT, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert "127.0.0.1" in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        told = server.communicate(timeout=60)[1]
    assert server.returncode == 0
    assert "never retrieved" not in told
    assert "Traceback" not in told
    (run,) = (tmp_path / "out").iterdir()
    assert verified_word(run, tmp_path) == "complete"


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
