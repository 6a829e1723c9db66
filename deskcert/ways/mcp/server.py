"""The MCP server of one guarded session: a tool for each command, resources, prompts. Transports are elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from deskcert.ways.arguments import COMMANDS as KNOWN
from deskcert.ways.arguments import input_schema
from deskcert.ways.guarding import About, Gate
from deskcert.ways.mcp import teaching
from deskcert.ways.schemas import output_schema
from deskcert.ways.text import as_text

__all__ = ["make_server"]

_PROGRESS_EVERY_S: Final = 1.0
_TEXT: Final = "text/plain"
_JSON: Final = "application/json"


def make_server(gate: Gate, about: About, commands: Mapping[str, bool]) -> Server[Any]:
    """`commands`: name → whether it acts, of all that this session offers."""
    return _Desk(gate, about, commands).server()


class _Desk:
    def __init__(self, gate: Gate, about: About, commands: Mapping[str, bool]) -> None:
        self._gate, self._about, self._commands = gate, about, commands
        self._tools = [_tool(name, acting=acting) for name, acting in commands.items()]

    def server(self) -> Server[Any]:
        from deskcert import __version__

        return Server(
            "deskcert",
            version=__version__,
            title="deskcert: a guarded user interface",
            instructions=teaching.INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            get_tool_input_schema=self._input_schema,
        )

    def _input_schema(self, name: str) -> Mapping[str, Any] | None:
        return _input_schema(name) if name in self._commands else None

    async def _list_tools(
        self, _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def _call_tool(
        self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """An unknown tool is answered by the session like an unknown command: refused, recorded, with a suggestion."""
        envelope = await self._with_progress(ctx, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=as_text(envelope))],
            structured_content=dict(envelope),
            is_error=envelope.get("ok") is not True,
        )

    async def _with_progress(
        self, ctx: ServerRequestContext[Any, Any], command: str, args: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Tells a client that asked for it that the command is still being worked on; others hear nothing of it."""
        ticking = asyncio.create_task(_tick(ctx, command))
        try:
            return await self._gate(command, args)
        finally:
            ticking.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await ticking

    async def _list_resources(
        self, _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=uri, name=name, description=line, mime_type=kind)
                for uri, (name, line, kind) in teaching.RESOURCES.items()
            ]
        )

    async def _list_templates(
        self, _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    async def _read_resource(
        self, _ctx: ServerRequestContext[Any, Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        match uri:
            case "deskcert://snapshot":
                newest = self._gate.newest
                text = str(newest["text"]) if newest is not None else "no snapshot yet; call snapshot"
            case "deskcert://policy":
                text = teaching.policy_summary(self._about.policy)
            case "deskcert://run":
                status = await self._gate("status", {})
                told = {"run": self._about.run, **self._about.facts, "status": status.get("data", status.get("error"))}
                text = json.dumps(told, ensure_ascii=False, indent=1)
            case _:
                known = ", ".join(teaching.RESOURCES)
                raise MCPError(code=types.INVALID_PARAMS, message=f"no resource {uri[:100]!r}; there are {known}")
        kind = teaching.RESOURCES[uri][2]
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=kind, text=text)])

    async def _list_prompts(
        self, _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        prompts = [types.Prompt(name=name, description=line) for name, (line, _) in teaching.PROMPTS.items()]
        return types.ListPromptsResult(prompts=prompts)

    async def _get_prompt(
        self, _ctx: ServerRequestContext[Any, Any], params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        found = teaching.PROMPTS.get(params.name)
        if found is None:
            known = ", ".join(teaching.PROMPTS)
            raise MCPError(code=types.INVALID_PARAMS, message=f"no prompt {params.name[:100]!r}; there are {known}")
        line, text = found
        if params.name == "task":
            text = teaching.task_prompt(self._about.task, self._about.start_url)
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=line, messages=[message])


def _tool(name: str, *, acting: bool) -> types.Tool:
    info = KNOWN.get(name)
    line = info.line if info is not None else f"The command {name}."
    acting = acting or (info is not None and info.may_act)
    reads = not acting and name != "finish"
    return types.Tool(
        name=name,
        description=line,
        input_schema=_input_schema(name),
        output_schema=output_schema(name),
        # Even a verified action is not idempotent: a client must never repeat one by itself.
        annotations=types.ToolAnnotations(
            title=name, read_only_hint=reads, destructive_hint=acting, idempotent_hint=reads, open_world_hint=acting
        ),
    )


def _input_schema(name: str) -> dict[str, Any]:
    from deskcert.session.commands import COMMANDS

    handler = COMMANDS.get(name)
    return input_schema(name, {a.name: a.required for a in handler.args} if handler is not None else None)


async def _tick(ctx: ServerRequestContext[Any, Any], command: str) -> None:
    seconds = 0
    while True:
        await asyncio.sleep(_PROGRESS_EVERY_S)
        seconds += 1
        await ctx.session.report_progress(seconds, None, f"{command}: still at it")
