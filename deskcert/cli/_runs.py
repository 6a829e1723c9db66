"""What the commands about run folders share: pinned keys, the folder that was meant, the form of an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deskcert_schema.errors import LedgerFormatError, LedgerTampered, UsageError

if TYPE_CHECKING:
    from deskcert_ledger.note import Verifier

__all__ = ["FAILED", "NOT_ONE", "NO_PIN", "evidence_errors", "pinned", "read_limited", "run_folder", "write_whole"]

FAILED, NOT_ONE, NO_PIN = 1, 2, 3
"""Exit codes: the evidence contradicts itself or the pin, it is not what it should be, nobody's key is pinned."""


def pinned(keys: tuple[str, ...]) -> tuple[Verifier, ...]:
    """What --key says; without it the local project's key, or nothing. Raises `UsageError`."""
    from deskcert_ledger.keys import load_pins, local_pin

    if keys:
        return load_pins(keys)
    pin = local_pin(Path.cwd())
    return () if pin is None else (pin,)


def run_folder(path: Path) -> Path:
    return path.parent if path.name == "ledger.jsonl" and path.is_file() else path


@contextmanager
def evidence_errors(ctx: click.Context, what: object) -> Iterator[None]:
    """Errors of evidence as one sentence and an exit code: 1 tampered with, 2 not what it should be."""
    try:
        yield
    except (LedgerTampered, LedgerFormatError) as error:
        click.echo(f"{what}: {error}", err=True)
        ctx.exit(FAILED if isinstance(error, LedgerTampered) else NOT_ONE)


def read_limited(path: Path, limit: int) -> bytes:
    """At most one byte more than `limit`. Raises `UsageError`."""
    try:
        with path.open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Whole or not at all. Raises `UsageError`."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UsageError(f"--out {path}: cannot be written: {error.strerror}.") from error
