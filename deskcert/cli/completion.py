"""`deskcert completion`: the line that makes a shell complete deskcert."""

from __future__ import annotations

import click

__all__ = ["completion"]


@click.command(epilog="Example: deskcert completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete deskcert's commands and options."""
    from click.shell_completion import get_completion_class

    from deskcert.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "deskcert", "_DESKCERT_COMPLETE").source())
