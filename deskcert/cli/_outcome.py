"""What `ci` and `merge` leave in their folder, and what they say, once there is a verdict."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deskcert.cli._shared import say
from deskcert.scoring.gate import ExitCode
from deskcert_schema.vocabulary import RunOutcome

if TYPE_CHECKING:
    from deskcert.certify.shard import Shard
    from deskcert.report.ci.write import Reports
    from deskcert.scoring import Verdict
    from deskcert_ledger import ProjectKey

__all__ = ["Outcome"]

_UNDECIDED: Final = frozenset({RunOutcome.INCONCLUSIVE, RunOutcome.CONTAMINATED})


@dataclass(frozen=True, slots=True)
class Outcome:
    verdict: Verdict
    out: Path
    folders: tuple[Path, ...]
    """Of the runs."""
    pins: Sequence[Any]

    def write(self, key: ProjectKey | None, summaries: Sequence[Path]) -> None:
        """verdict.json, the certificate (no key: none) and the summary."""
        from deskcert.certify.suite_certificate import drop_suite_certificate, write_suite_certificate
        from deskcert.report.summary import summary_text

        (self.out / "verdict.json").write_bytes(self.verdict.as_bytes())
        if key is None:
            drop_suite_certificate(self.out)
        else:
            write_suite_certificate(self.out, self.verdict, self.folders, key)
        for path in summaries:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(summary_text(self.verdict, **self._places), encoding="utf-8")
            except OSError as exc:
                say(f"the summary could not be written to {path}: {exc.strerror}")

    def tell(self, reports: Reports | None, *, as_json: bool) -> None:
        """Print the verdict, write the reports, and tell the pipeline (None: neither). Raises `UsageError`."""
        from deskcert.report.ci.write import on_github, write_reports
        from deskcert.report.summary import print_summary

        if as_json:
            sys.stdout.buffer.write(self.verdict.as_bytes())
            sys.stdout.flush()
        else:
            print_summary(self.verdict, sys.stdout, **self._places)
            sys.stdout.flush()
        if reports is not None:
            on_github(write_reports(self.verdict, self.folders, reports, self.pins), os.environ, say)

    def tell_part(self, shard: Shard, *, interrupted: bool, as_json: bool) -> int:
        """Of a shard: what it found, no certificate and no reports; those are `merge`'s. 0 unless something in it
        speaks against a certificate already, or a run of it proves nothing."""
        self.write(None, [self.out / "summary.txt"])
        self.tell(None, as_json=as_json)
        undecided = [s.planned.words for s in self.verdict.slots if s.result is not None and s.outcome in _UNDECIDED]
        say(f"shard {shard}: {len(self.folders)} of {len(self.verdict.slots)} runs; deskcert merge decides")
        match self.verdict.exit_code:
            case ExitCode.INCONCLUSIVE:
                return int(ExitCode.INCONCLUSIVE if undecided or interrupted else ExitCode.CERTIFIED)
            case code:
                return int(code)

    @property
    def _places(self) -> dict[str, Path]:
        return {"ledgers": self.out / "runs", "verdict_file": self.out / "verdict.json"}
