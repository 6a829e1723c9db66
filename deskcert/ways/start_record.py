"""The first record of a session of its own: what `run.start` says where there is no suite and no scenario."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from deskcert.ways.opening import Wanted

__all__ = ["start_payload"]

UNBOUNDED: Final = 2**31
"""Where the record wants a budget and there is none."""


def start_payload(wanted: Wanted, run: str, *, custody: str, browser: Mapping[str, Any] | None) -> dict[str, Any]:
    from deskcert.certify.documents import digest_of
    from deskcert_schema.validate import digest

    budget = {"actions": wanted.actions or UNBOUNDED, "seconds": wanted.seconds or UNBOUNDED}
    scenario = {
        "id": "session",
        "title": "A session of its own",
        "area": "session",
        "expected": "complete",
        "attribution": "goal_not_met",
        "budget": budget,
        "digest": digest_of({"task": wanted.task, "url": wanted.url}),
    }
    planned = {"scenario": "session", "trial": 1, "seed": 0, "expected": "complete", "area": "session"}
    policy_digest = digest_of(wanted.policy)
    told: dict[str, Any] = {
        "run": run,
        "agent": {
            "name": f"{wanted.way} client",
            "command_digest": digest_of([]),
            "transport": wanted.way,
            "deterministic": False,
        },
        "versions": _versions(browser),
        "isolation": "none",
        "proxy": "off",
        "custody": custody,
        "mode": wanted.mode.value,
        "policy": {"digest": policy_digest, "content": dict(wanted.policy)},
        "suite": {"name": "session", "digest": policy_digest},
        "schema": {"digest": digest()},
        "gate": {},
        "scenario": scenario,
        "trial": 1,
        "seed": 0,
        "trials": 1,
        "plan": [planned | {"attribution": "goal_not_met"}],
        "shard": "1/1",
        "instruction": wanted.task,
    }
    if browser is not None:
        told["browser"] = dict(browser)
    return told


def _versions(browser: Mapping[str, Any] | None) -> dict[str, str]:
    found = {"deskcert": version("deskcert"), "python": platform.python_version()}
    with contextlib.suppress(PackageNotFoundError):
        found["playwright"] = version("playwright")
    if browser is not None:
        found["browser"] = str(browser["version"])
    return found
