"""Real run folders, written through `RunLedger`: what a suite leaves behind, with any conversation in it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scoring_talk import Rec, start

from deskcert_ledger import ProjectKey, RunLedger


@dataclass
class Ticking:
    """A clock that moves by 1 ms a look."""

    us: int = 0

    def now(self) -> datetime:
        self.us += 1000
        return datetime.fromtimestamp(self.us // 1_000_000, UTC)

    def monotonic_us(self) -> int:
        self.us += 1000
        return self.us


@dataclass
class Suite:
    """A plan, and the folders of the runs that were made of it."""

    out: Path
    scenarios: Sequence[str] = ("orders-approve",)
    trials: int = 1
    gate: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    same_seed: bool = False
    agent: str = "builtin:careful"
    certification: str = "first"
    key: ProjectKey = field(init=False)

    def __post_init__(self) -> None:
        self.key = ProjectKey.load_or_create(self.out / "key" / "key", name="deskcert/test")

    def seed(self, trial: int) -> int:
        return 1 if self.same_seed else trial

    def planned(self) -> list[dict[str, Any]]:
        return [
            {
                "scenario": scenario,
                "trial": trial,
                "seed": self.seed(trial),
                "expected": "complete",
                "area": scenario.partition("-")[0],
                "attribution": "goal_not_met",
            }
            for scenario in self.scenarios
            for trial in range(1, self.trials + 1)
        ]

    def run(
        self,
        *records: Rec,
        scenario: str = "orders-approve",
        trial: int = 1,
        seal: bool = True,
        start_more: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Path:
        """Write one run. `start_more` changes `run.start`, `facts` its scenario."""
        salt = f"{random.Random(f'{self.out}{scenario}{trial}').getrandbits(30):06x}"[-6:]
        name = f"{scenario}-t{trial}-{salt}"
        told = start(id=scenario, area=scenario.partition("-")[0], **facts)
        del told["kind"], told["origin"]
        told |= {
            "run": name,
            "certification": self.certification,
            "agent": told["agent"] | {"name": self.agent, "deterministic": self.deterministic},
            "suite": {"name": "builtin:core", "digest": "1" * 64},
            "gate": dict(self.gate),
            "trial": trial,
            "seed": self.seed(trial),
            "trials": self.trials,
            "plan": self.planned(),
        }
        told |= dict(start_more or {})
        rng = random.Random(name)
        ledger = RunLedger.create(
            self.out / "runs" / name,
            origin=f"deskcert/test/{name}",
            start=told,
            project_key=self.key,
            clock=Ticking(),
            rng=rng.randbytes,
        )
        last_intent = -1
        for seq, record in enumerate(records, 1):
            payload = {("kind" if k == "detail_kind" else k): v for k, v in record.items() if k != "kind"}
            if record["kind"] == "action.intent":
                last_intent = seq
            if payload.get("of") == "the intent before":
                payload["of"] = last_intent
            ledger.append(record["kind"], payload)
        if seal:
            ledger.seal()
        else:
            ledger.abandon()
        return ledger.folder
