"""Speed beside Playwright, Playwright MCP and agent-browser, each in one run and in turns: `benchmarks/web.py` and
`benchmarks/web_peers.py`.

- `web`: ratios in thousandths (ours over theirs) of clicks and of snapshots at three sizes.
- `peers`: a snapshot from the request to the whole answer, its text in characters, and the traps.

A failure is an aim that was missed; `load_in_hundredths` says how busy the machine was with other work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from scripts.evidence_parts import ROOT, Outcome, Part

AIMS: Final = {"click": 500, "physical_click": 1_200}
SNAPSHOT_AIM: Final = 125


def _run(module: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        subprocess.run([sys.executable, "-m", module, "--json", str(file)], cwd=ROOT, check=False)
        found: dict[str, Any] = json.loads(file.read_text())
        return found


def _load() -> int:
    return round(os.getloadavg()[0] * 100)


def web(seed: str, units: int) -> Outcome:  # noqa: ARG001 - nothing in it is random
    outcome = Outcome(units, {"load_in_hundredths": _load()})
    for name, figures in _run("benchmarks.web").items():
        ratio, aim = round(figures["ratio"] * 1000), AIMS.get(name, SNAPSHOT_AIM)
        outcome.counts |= {f"{name}_ratio_in_thousandths": ratio, f"{name}_us": round(figures["ours_ms"] * 1000)}
        if ratio > aim:
            outcome.failures.append(f"{name}: {ratio / 1000} of Playwright's; the aim is {aim / 1000}")
    return outcome


def peers(seed: str, units: int) -> Outcome:  # noqa: ARG001
    outcome = Outcome(units, {"load_in_hundredths": _load()})
    found = _run("benchmarks.web_peers")
    if "snapshots" not in found:
        outcome.failures.append("the peers could not be installed")
        return outcome
    for size, row in found["snapshots"].items():
        for tool, figures in row.items():
            outcome.counts[f"{size} elements, {tool}: us"] = round(figures["ms"] * 1000)
            outcome.counts[f"{size} elements, {tool}: characters"] = figures["characters"]
        ours = row.pop("deskcert")
        for tool, figures in row.items():
            if figures["ms"] < ours["ms"]:
                outcome.failures.append(f"{size} elements: {ours['ms']} ms, {tool} takes {figures['ms']} ms")
            if figures["characters"] < ours["characters"]:
                outcome.failures.append(f"{size} elements: the text of {tool} is shorter")
    for trap, row in found["traps"].items():
        for tool, ended in row.items():
            word = {"✓": "right", "○": "refused or not sure", "✗": "false"}[ended["sign"]]
            key = f"traps, {tool}: {word}"
            outcome.counts[key] = outcome.counts.get(key, 0) + 1
        if row["deskcert"]["sign"] == "✗":
            outcome.failures.append(f"deskcert fell for: {trap}")
    return outcome


PARTS = (Part("web", 1, 1, web, workers=1), Part("peers", 1, 1, peers, workers=1))
