"""`deskcert key`: the project's key."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from deskcert.contract.shown import shown_json
from deskcert_schema.errors import UsageError

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
    from deskcert_ledger.keys import default_key_path, public_key

    path = default_key_path(Path.cwd())
    verifier = public_key(path)
    if ssh:
        from deskcert_ledger.sshsig import allowed_signer

        click.echo(allowed_signer(verifier), nl=False)
    elif as_json:
        facts = {"vkey": str(verifier), "name": verifier.name, "id": verifier.id.hex(), "file": str(path)}
        click.echo(shown_json(facts))
    else:
        click.echo(str(verifier))


@key.command()
@click.option("--remove", is_flag=True, help="Take the passphrase away.")
def protect(remove: bool) -> None:
    """Put the project's key under a passphrase, or under another one.

    The passphrase is asked for, or comes from DESKCERT_KEY_PASSPHRASE_NEW. Afterwards every command that signs needs
    it: in DESKCERT_KEY_PASSPHRASE, in the file that DESKCERT_KEY_PASSPHRASE_FILE names, or typed. The public key stays
    the same, and verifying needs no passphrase.
    """
    from deskcert_ledger.keys import default_key_path
    from deskcert_ledger.keys import protect as protect_key

    path = default_key_path(Path.cwd())
    protect_key(path, None if remove else _new_passphrase())
    click.echo(f"{path}: {'no passphrase' if remove else 'under a passphrase'}")


def _new_passphrase() -> str:
    given = os.environ.get("DESKCERT_KEY_PASSPHRASE_NEW", "")
    if given:
        return given
    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask on. Set DESKCERT_KEY_PASSPHRASE_NEW.")
    return str(click.prompt("New passphrase", hide_input=True, confirmation_prompt=True))
