"""`python -m deskcert.agents NAME --plan FILE`: one agent, over JSON lines on stdin and stdout.

Remarks go to stderr."""

from __future__ import annotations

import argparse
import difflib
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from deskcert.agents.channel import Channel, Ended
from deskcert.agents.engine import Engine
from deskcert.agents.plan import load_plan
from deskcert.agents.registry import REGISTRY, AgentEntry, agent_names
from deskcert_schema.errors import DeskcertError, UsageError

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 after the session ended or the claim was made, 1 when deskcert broke the protocol, 2 for usage."""
    parser = argparse.ArgumentParser(prog="python -m deskcert.agents", description=__doc__)
    parser.add_argument("name", metavar="NAME", help=", ".join(f"{e.name}: {e.line}" for e in REGISTRY.values()))
    parser.add_argument("--plan", type=Path, metavar="FILE", help="goals by role, name and context (YAML)")
    options = parser.parse_args(argv)
    channel = Channel(sys.stdin.buffer, sys.stdout.buffer)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the runner's to handle; the agent is ended by it
    try:
        _run(_entry(options.name), options.plan, channel)
    except Ended:
        return 0
    except UsageError as exc:
        print(exc, file=sys.stderr)
        return 2
    except (DeskcertError, ValueError, KeyError) as exc:
        print(f"the other side broke the protocol: {exc!r}", file=sys.stderr)
        return 1
    return 0


def _entry(name: str) -> AgentEntry:
    if name in REGISTRY:
        return REGISTRY[name]
    near = difflib.get_close_matches(name, agent_names(), 1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(agent_names())}"
    raise UsageError(f"there is no reference agent {name!r}; {hint}")


def _run(entry: AgentEntry, plan: Path | None, channel: Channel) -> None:
    if entry.null is not None:
        entry.null(channel)
        return
    if plan is None or entry.decisions is None:
        raise UsageError(f"{entry.name} needs a plan: --plan FILE")
    goals = load_plan(plan)
    Engine(channel, goals, entry.decisions(), channel.task(), time.sleep).run()


if __name__ == "__main__":
    sys.exit(main())
