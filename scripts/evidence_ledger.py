"""The ledger's evidence: crash states judged in memory, and real processes killed."""

from __future__ import annotations

from scripts.evidence_crash import crash_states
from scripts.evidence_kill import kill_recoveries, kill_writers
from scripts.evidence_parts import Part

PARTS = [
    Part("sigkill", goal=1_200, task=40, work=kill_writers),
    Part("sigkill_recovery", goal=1_000, task=100, work=kill_recoveries),
    Part("crash_states", goal=1_000_000, task=1000, work=crash_states),
]
