"""`deskcert key`: the project's key."""

from __future__ import annotations

import json
from pathlib import Path

import click

__all__ = ["key"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def key() -> None:
    """Show the project's public key: what a verifier pins with --key."""


@key.command()
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.option("--ssh", is_flag=True, help="As a line of an `allowed_signers` file, for `ssh-keygen -Y verify`.")
def show(as_json: bool, ssh: bool) -> None:
    """Print the public key of this project (C2SP vkey text).

    The key is `.deskcert/key` in this folder, or the file that DESKCERT_KEY_FILE names. `deskcert ci` makes it.
    """
    from deskcert_ledger.keys import ProjectKey, default_key_path

    path = default_key_path(Path.cwd())
    verifier = ProjectKey.load(path).verifier
    if ssh:
        from deskcert_ledger.sshsig import allowed_signer

        click.echo(allowed_signer(verifier), nl=False)
    elif as_json:
        facts = {"vkey": str(verifier), "name": verifier.name, "id": verifier.id.hex(), "file": str(path)}
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        click.echo(str(verifier))
