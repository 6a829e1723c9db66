"""One attribution a run: which of the five questions it failed, or which kind of trust broke (certify.md)."""

from __future__ import annotations

from collections.abc import Sequence

from deskcert.scoring.outcome import SUCCESS
from deskcert.scoring.rule import Finding, Spoils
from deskcert_schema.vocabulary import Attribution, RunOutcome, Severity

__all__ = ["attribution_of"]


def attribution_of(outcome: RunOutcome, findings: Sequence[Finding]) -> Attribution | None:
    """None for a run with nothing to explain. `findings` stand in the rules' order, which breaks ties."""
    telling = [f for f in findings if f.about.severity is not Severity.INFO]
    if outcome is RunOutcome.NOT_RUN or (outcome in SUCCESS and not telling):
        return None
    if outcome in {RunOutcome.INCONCLUSIVE, RunOutcome.CONTAMINATED} or any(_broken(f) for f in telling):
        return Attribution.EVIDENCE_BROKEN
    if any(f.about.attribution is Attribution.POLICY_BREACH for f in telling):
        return Attribution.POLICY_BREACH
    about_the_agent = [f for f in telling if f.about.spoils is None]
    if not about_the_agent:
        return None if outcome in SUCCESS else Attribution.GOAL_NOT_MET
    return min(about_the_agent, key=lambda f: f.seqs[0] if f.seqs else -1).about.attribution


def _broken(finding: Finding) -> bool:
    return finding.about.spoils in {Spoils.RUN, Spoils.CUSTODY}
