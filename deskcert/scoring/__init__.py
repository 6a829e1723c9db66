"""Scoring: from run folders to a verdict, by reading their ledgers and nothing else.

`score(folders, pins)` is the whole of it; `judge` judges one run's records; `RULES` are the scoring rules, in order.
"""

from deskcert.scoring.judge import Judgement, judge
from deskcert.scoring.rule import About, Finding, Rule
from deskcert.scoring.rules import RULES
from deskcert.scoring.verdict import Verdict, score

__all__ = ["RULES", "About", "Finding", "Judgement", "Rule", "Verdict", "judge", "score"]
