"""`deskcert agent`: a script to begin an agent with."""

from __future__ import annotations

from pathlib import Path

import click

from deskcert.cli.init import template, write_new

__all__ = ["agent"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def agent() -> None:
    """Begin an agent of your own."""


@agent.command(
    epilog="""\b
Examples:
  deskcert agent new my_agent.py
  deskcert agent new my_agent.py --transport mcp-http
"""
)
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="my_agent.py")
@click.option("--transport", type=click.Choice(["jsonl", "mcp-http"]), default="jsonl", show_default=True)
@click.option("--force", is_flag=True, help="Write over a file that is there already.")
def new(path: Path, *, transport: str, force: bool) -> None:
    """Write an agent of some thirty lines that does the example scenario: a place to put your model in."""
    source = "agent_jsonl.py.txt" if transport == "jsonl" else "agent_mcp.py.txt"
    write_new({path: template(source)}, force=force)
    option = "" if transport == "jsonl" else f" --transport {transport}"
    click.echo(f"\ntry it: deskcert ci{option} -- python3 {path}")
