"""Each defect agent that the desktop gives a chance, certified on the scenarios that are declared for it: `deskcert ci`
has to exit 1, and for the expected rule."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from deskcert_schema import strict_yaml
from scripts.evidence_parts import ROOT, Outcome

__all__ = ["AGENTS", "certified", "defects"]

_MATRIX: Final = ROOT / "fixture_app" / "deskcert_fixture_app" / "desktop_matrix.yaml"
AGENTS: Final[Mapping[str, Mapping[str, Any]]] = strict_yaml.load(_MATRIX.read_text(), name=_MATRIX.name).value[
    "agents"
]


def defects(seed: str, units: int) -> Outcome:
    """The agents from the task's number on; `seed` ends with it."""
    outcome, names, first = Outcome(0), sorted(AGENTS), int(seed.rpartition("/")[2]) * units
    for name in (names[i % len(names)] for i in range(first, first + units)):
        declared = AGENTS[name]
        code, verdict = certified(name, declared["scenarios"])
        rules = {finding["rule"] for finding in verdict.get("findings", ())}
        attributions = {run["attribution"] for run in verdict.get("runs", ())}
        outcome.done += 1
        word = f"{name}: exit {code}, {declared['rule']}"
        if code == 1 and declared["rule"] in rules and attributions == {declared["attribution"]}:
            outcome.counts[word] = outcome.counts.get(word, 0) + 1
        else:
            outcome.failures.append(f"{word} expected; {sorted(rules)} found, {sorted(map(str, attributions))}")
    return outcome


def certified(agent: str, scenarios: list[str]) -> tuple[int, dict[str, Any]]:
    """The program's exit code, and its verdict."""
    with tempfile.TemporaryDirectory(prefix="deskcert-evidence-") as folder:
        done = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("deskcert")), "ci", "--json", "--suite", "builtin:desktop"),
                *("--agent", f"builtin:{agent}", "--only", ",".join(scenarios), "--workers", "1", "--out", "out"),
            ],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return done.returncode, json.loads(done.stdout or "{}")
