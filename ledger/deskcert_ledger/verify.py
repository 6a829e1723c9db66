"""`verify_run`: is this ledger what was signed, is it all of it, and whose is it?

It reads in one pass and constant memory, never writes, and trusts nothing in the folder but what a pinned key leads to:
(1) the pinned project key introduces the run key, (2) the run key signs checkpoints, (3) every checkpoint's root is
recomputed from the lines, (4) every line is in the strict subset and has its number, (5) every blob is what its record
says. `ledger.hashes` is only used to say *where* a line differs, never whether.

`scan` reads lines, `ranges` does it in several processes, `evidence` follows keys, checkpoints and intents through what
they found, `judgement` says what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from deskcert_ledger.evidence import Evidence
from deskcert_ledger.judgement import judge
from deskcert_ledger.note import Verifier, parse_vkey
from deskcert_ledger.policy import VerifierPolicy
from deskcert_ledger.ranges import NotInParts
from deskcert_ledger.report import RunReport

__all__ = ["verify_run"]


def verify_run(
    folder: Path,
    *,
    pins: Sequence[str | Verifier] = (),
    policy: VerifierPolicy | None = None,
    every_signature: bool = False,
    schema: bool = False,
    allow_elided: bool = False,
    jobs: int = 1,
) -> RunReport:
    """Verify one run folder. `pins`: vkeys of project keys that count; none leaves it `unverifiable`.

    `policy`: witnesses whose cosignatures on the final checkpoint are asked for; its log keys are pins too.
    `allow_elided`: lines that were elided for export count as records that nobody can read; without it they leave the
    ledger `unverifiable`. `jobs`: processes that read, where the ledger is large enough; the answer is the same.

    Raises `LedgerFormatError` when the folder holds no ledger, or a pin is no key.
    """
    keys = tuple(parse_vkey(pin) if isinstance(pin, str) else pin for pin in pins)
    if policy is not None:
        keys = tuple(dict.fromkeys((*keys, *policy.logs)))

    def look(processes: int) -> RunReport:
        evidence = Evidence(folder, keys, every_signature=every_signature, schema=schema)
        evidence.read(processes)
        return judge(evidence, policy, allow_elided=allow_elided)

    try:
        return look(jobs)
    except NotInParts:  # something is unusual where the parts meet: one after the other, so that its place is known
        return look(1)
