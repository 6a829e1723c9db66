"""`deskcert mcp`: the guard as a server of the Model Context Protocol."""

from __future__ import annotations

from pathlib import Path

import click

from deskcert.cli._how import how_opened, mode_of

__all__ = ["mcp"]

_EPILOG = """\b
Examples:
  deskcert mcp --url http://127.0.0.1:8000/ --policy policy.yaml
        over standard input and output: for an MCP client that starts its servers itself
  deskcert mcp --url http://127.0.0.1:8000/ --policy policy.yaml --http --clients 2
        prints one address a client; each has a token, a browser context, a session and a ledger of its own

\b
In a client's configuration:
  {"mcpServers": {"deskcert": {"command": "deskcert",
     "args": ["mcp", "--url", "http://127.0.0.1:8000/", "--policy", "/path/policy.yaml"]}}}
"""


@click.command(epilog=_EPILOG)
@click.option("--url", required=True, help="The page that the session begins on.")
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="What the agent may not do.")
@click.option("--task", default="", help="The task, for the prompt `task`.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/sessions.")
@click.option("--actions", type=click.IntRange(min=1), help="At most so many acting commands.")
@click.option("--seconds", type=click.IntRange(min=1), help="At most so long.")
@click.option("--http", "over_http", is_flag=True, help="Streamable HTTP on 127.0.0.1, instead of standard streams.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="With --http; default: a free one.")
@click.option("--clients", type=click.IntRange(1, 16), default=1, help="With --http: sessions, one a client.")
@click.option(
    "--config", "config", type=click.Path(path_type=Path), help="With --http: write a client's mcpServers file."
)
@click.option(
    "--idle", type=click.IntRange(min=1), default=900, help="With --http: a session ends unused after so many s."
)
@how_opened
def mcp(
    *,
    url: str,
    policy: Path,
    task: str,
    out: Path | None,
    actions: int | None,
    seconds: int | None,
    over_http: bool,
    port: int,
    clients: int,
    config: Path | None,
    idle: int,
    mode: str | None,
    headed: bool,
    uploads: tuple[Path, ...],
    cdp: str | None,
) -> int:
    """Serve a guarded page to an agent that speaks MCP.

    A tool a command, with schemas; every answer is the same envelope as everywhere else. When the client leaves (over
    HTTP: after its claim, or when it asks for nothing any more), the session ends and its ledger is sealed.
    """
    import asyncio

    from deskcert.ways.mcp.serving import need_sdk, serve_http, serve_stdio
    from deskcert.ways.opening import Wanted, load_policy
    from deskcert_schema.vocabulary import Mode

    need_sdk()
    wanted = Wanted(
        url=url,
        policy=load_policy(policy),
        way="mcp-http" if over_http else "mcp-stdio",
        out=(out or Path("deskcert-out") / "sessions").absolute(),
        base=Path.cwd(),
        task=task,
        actions=actions,
        seconds=seconds,
        mode=Mode(mode_of(mode, headed=headed)),
        uploads=tuple(folder.resolve() for folder in uploads),
        cdp=cdp,
    )
    if over_http:
        return asyncio.run(serve_http(wanted, port=port, clients=clients, config=config, idle_s=idle))
    return asyncio.run(serve_stdio(wanted))
