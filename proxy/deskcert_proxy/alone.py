"""The proxy without a runner: a policy, a ledger of its own, and any client in front of it.

Its ledger says `custody: shared` and has no plan: it can be verified and read, and is never part of a certificate.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from deskcert_ledger import ProjectKey, RunLedger, Sealed, SystemClock, default_key_path
from deskcert_ledger.keys import project_of
from deskcert_proxy.addon import SecondLine
from deskcert_proxy.classify import classify
from deskcert_proxy.records import describe
from deskcert_proxy.redaction import Redaction
from deskcert_proxy.replay import Replayer, read_tape
from deskcert_proxy.request import Request
from deskcert_proxy.rules import compile_network
from deskcert_proxy.scribe import Scribe
from deskcert_proxy.tape import FLOWS, Tape
from deskcert_schema.errors import LedgerUnavailable, UsageError
from deskcert_schema.validate import digest, load_config

__all__ = ["Alone", "open_alone"]

_UNBOUNDED: Final = 2**31
"""Where the record wants a budget and there is none."""


@dataclass(frozen=True, slots=True)
class Alone:
    addon: SecondLine | Replayer
    ledger: RunLedger

    def finish(self, reason: str) -> Sealed | None:
        """`run.end` and the seal; None when the ledger can no longer be written. Call it after the proxy has ended."""
        told = {"outcome": "finished", "reason": reason, "effects_log": "disabled", "harness_ok": True}
        try:
            self.ledger.append("run.end", told)
            return self.ledger.seal()
        except LedgerUnavailable:
            return None


def open_alone(
    policy_file: Path, folder: Path, *, base: Path, tape: Path | None = None, replay: Path | None = None
) -> Alone:
    """`tape`: a folder that flows are kept in; `replay`: one that every answer comes out of, and nothing is forwarded.
    Raises `ConfigError` for the policy, `UsageError` for the folders, `LedgerFormatError`, `LedgerUnavailable`."""
    loaded = load_config(policy_file, "policy")
    policy: dict[str, Any] = loaded.value
    compiled, redaction = compile_network(policy), Redaction.of(policy)
    if replay is not None and not (replay / FLOWS).is_file():
        raise UsageError(f"{replay} is no tape: there is no {FLOWS} in it")
    answers = None if replay is None else read_tape(replay)
    run = f"proxy-{secrets.token_hex(3)}"
    start = _start(policy, run)
    ledger = RunLedger.create(
        folder,
        origin=f"deskcert/{project_of(base)}/{run}",
        start=start,
        project_key=ProjectKey.load_or_create(default_key_path(base)),
        clock=SystemClock(),
        rng=os.urandom,
    )
    scribe = Scribe(ledger, rng=os.urandom)
    if answers is not None:

        async def missed(request: Request, why: str) -> None:
            record = describe(classify(request), scribe.salt)
            await scribe.blocked(record | {"rule": "net-replay", "why": why})

        return Alone(Replayer(answers, redaction, missed), ledger)
    kept = Tape(tape, redaction) if tape is not None else None
    return Alone(SecondLine(compiled, scribe, secret=secrets.token_bytes(32), tape=kept), ledger)


def _start(policy: dict[str, Any], run: str) -> dict[str, Any]:
    """`run.start`, as readers of any ledger expect it, where there was no plan, no scenario and no agent of ours."""
    policy_digest, nothing = digest_of(policy), digest_of({})
    planned = {"scenario": "proxy", "trial": 1, "seed": 0, "expected": "complete", "area": "proxy"}
    return {
        "run": run,
        "agent": {"name": "unknown", "command_digest": nothing, "transport": "none", "deterministic": False},
        "versions": {
            "deskcert": version("deskcert"),
            "python": platform.python_version(),
            "mitmproxy": version("mitmproxy"),
        },
        "isolation": "none",
        "proxy": "alone",
        "custody": "shared",
        "policy": {"digest": policy_digest, "content": policy},
        "suite": {"name": "proxy", "digest": policy_digest},
        "schema": {"digest": digest()},
        "gate": {},
        "scenario": {
            "id": "proxy",
            "title": "A proxy in front of any client",
            "area": "proxy",
            "expected": "complete",
            "attribution": "goal_not_met",
            "budget": {"actions": _UNBOUNDED, "seconds": _UNBOUNDED},
            "digest": nothing,
        },
        "trial": 1,
        "seed": 0,
        "trials": 1,
        "plan": [planned | {"attribution": "goal_not_met"}],
        "shard": "1/1",
        "instruction": "",
    }


def digest_of(document: Any) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()
