"""The ledger's evidence: crash states judged in memory, and real processes killed."""

from __future__ import annotations

from scripts.evidence_crash import crash_states
from scripts.evidence_parts import Part

PARTS = [Part("crash_states", goal=1_000_000, task=1000, work=crash_states)]
