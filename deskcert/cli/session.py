"""`deskcert session`: a guarded page that one-shot commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from deskcert.cli._how import how_opened, read_how
from deskcert.cli.commands import print_envelope, usage_error
from deskcert_schema.errors import UsageError

__all__ = ["session"]

_START_S = 60.0
_EPILOG = """\b
Examples:
  deskcert session start --url http://127.0.0.1:8000/ --policy policy.yaml
  deskcert snapshot --interactive-only
  deskcert click @s8f3k2p9:e8
  deskcert finish --outcome done --message "approved"
  deskcert session list
"""


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
def session() -> None:
    """Keep a guarded page open for one-shot commands.

    A private process holds the browser, the snapshots and the ledger; commands reach it over a Unix socket that only
    you can open.
    """


@session.command()
@click.option("--url", required=True, help="The page that it begins on.")
@click.option("--policy", required=True, type=click.Path(path_type=Path), help="What the agent may not do.")
@click.option("--name", help="How commands call it (default: a random word).")
@click.option("--task", default="", help="Recorded as the instruction.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Default: deskcert-out/sessions.")
@click.option("--actions", type=click.IntRange(min=1), help="At most so many acting commands.")
@click.option("--seconds", type=click.IntRange(min=1), help="At most so long.")
@click.option(
    "--idle", type=click.IntRange(min=1), default=900, show_default=True, help="Ends after so many idle seconds."
)
@how_opened
def start(
    *,
    policy: Path,
    name: str | None,
    out: Path | None,
    idle: int,
    mode: str | None,
    headed: bool,
    uploads: tuple[Path, ...],
    cdp: str | None,
    **rest: Any,
) -> int:
    """Open a guarded page, and print the session's name and ledger."""
    import os
    import re

    from deskcert.ways.registry import entries, forget

    chosen = name or f"d{int.from_bytes(os.urandom(4)):07x}"[:8]
    try:
        if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,30}", chosen):
            raise UsageError("a session's name is small letters, digits and '-', at most 31")
        if any(e.name == chosen for e in entries()):
            raise UsageError(f"a session {chosen} is open already; end it, or choose another name")
        if not policy.is_file():
            raise UsageError(f"there is no policy file {policy}; `deskcert init` writes one to begin with")
        forget(chosen)  # what a killed one left
        cwd = Path.cwd()
        wanted = {"name": chosen, "policy": str(policy.absolute()), "base": str(cwd), "idle_s": idle, **rest}
        wanted |= read_how(mode=mode, headed=headed, uploads=uploads, cdp=cdp)
        wanted["out"] = str((out or Path("deskcert-out") / "sessions").absolute())
        told = _start(wanted)
    except UsageError as exc:
        print_envelope(usage_error("session-start", str(exc)))
        return 2
    if "error" in told:
        return _not_started(told)
    print_envelope({"version": "2.5", "ok": True, "command": "session-start", "data": told})
    return 0


def _start(wanted: dict[str, Any]) -> dict[str, Any]:
    """Start the daemon, wait for its one line."""
    import select
    import subprocess
    import sys

    from deskcert.ways.registry import runtime_folder

    log = runtime_folder() / f"{wanted['name']}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "deskcert.ways.daemon"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(wanted).encode())
    process.stdin.close()
    ready, _, _ = select.select([process.stdout], [], [], _START_S)
    line = process.stdout.readline() if ready else b""
    if not line:
        process.kill()
        return {"error": f"the session did not start; see {log}"}
    found: dict[str, Any] = json.loads(line)
    return found


def _not_started(told: dict[str, Any]) -> int:
    from deskcert.contract.envelope import Failure, failure
    from deskcert_schema.disposition import Delivery, Disposition
    from deskcert_schema.vocabulary import Code

    if told.get("usage"):
        print_envelope(usage_error("session-start", told["error"]))
        return 2
    error = Failure(Code.APP_UNRESPONSIVE, told["error"], Disposition(Delivery.NOT_DELIVERED))
    print_envelope(failure("session-start", error))
    return 1


@session.command("list")
def list_() -> int:
    """Print the open sessions, and the dead ones that `gc` would clean up."""
    from deskcert.ways.registry import read_all

    found = [{"session": e.name, "url": e.url, "ledger": e.ledger, "pid": e.pid, "alive": e.alive} for e in read_all()]
    print_envelope({"version": "2.5", "ok": True, "command": "session-list", "data": {"sessions": found}})
    return 0


@session.command()
@click.argument("name", required=False)
def end(name: str | None) -> int:
    """End a session: its page is closed and its ledger sealed."""
    import select

    from deskcert.ways.client import control
    from deskcert.ways.registry import choose

    try:
        entry = choose(name)
    except UsageError as exc:
        print_envelope(usage_error("session-end", str(exc)))
        return 2
    import os

    try:
        process = os.pidfd_open(entry.pid)
    except ProcessLookupError:
        process = None
    answered = control(entry, "end")
    if process is not None:
        select.select([process], [], [], 30)
        os.close(process)
    data = {"session": entry.name, "ledger": entry.ledger, "ended": answered is not None and not entry.alive}
    print_envelope({"version": "2.5", "ok": True, "command": "session-end", "data": data})
    return 0


@session.command()
def gc() -> int:
    """Forget sessions whose process is gone, and close the ledgers that they left open."""
    from deskcert.ways.registry import forget, read_all
    from deskcert_ledger import ProjectKey, default_key_path
    from deskcert_ledger.recovery import recover_run
    from deskcert_schema.errors import DeskcertError

    cleaned = []
    for entry in read_all():
        if entry.alive:
            continue
        try:
            key = ProjectKey.load(default_key_path(Path(entry.base)))
            outcome = recover_run(Path(entry.ledger), key).outcome.value
        except DeskcertError as exc:
            outcome = f"not recovered: {exc}"
        forget(entry.name)
        cleaned.append({"session": entry.name, "ledger": entry.ledger, "outcome": outcome})
    print_envelope({"version": "2.5", "ok": True, "command": "session-gc", "data": {"sessions": cleaned}})
    return 0
