"""What a run folder lacks, and what can no longer be shown for want of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deskcert_ledger.redaction import REDACTIONS
from deskcert_ledger.run_certificate import RUN_FILES
from deskcert_ledger.store import CHECKPOINT, CHECKPOINTS, DISCLOSURES, HASHES, TORN_FOLDER

__all__ = ["absent"]

_CERTIFICATE, _BUNDLE, _ARMOUR = RUN_FILES
_ALWAYS: Final = {
    CHECKPOINTS: "the checkpoints before the last: which records were durable when",
    CHECKPOINT: "that the run was sealed, and that nothing was cut off its end",
    DISCLOSURES: "what the records hide: their openings are gone",
    HASHES: "which record it is, should one ever differ: it is computed again for proofs, and was derived anyway",
}
_OF_A_SEAL: Final = {
    _CERTIFICATE: "whether each record class is complete, and the run to somebody without the ledger",
    _BUNDLE: "the certificate to Sigstore's verifiers",
    _ARMOUR: "the certificate to ssh-keygen",
}


def absent(folder: Path, *, sealed: bool, torn: dict[int, int]) -> Iterator[str]:
    """One sentence for each file that is missing. `torn`: offset -> bytes that recoveries cut and kept."""
    expected = _ALWAYS | (_OF_A_SEAL if sealed else {})
    for name, lost in expected.items():
        if not (folder / name).is_file():
            yield f"`{name}` is missing; no longer shown: {lost}"
    for offset, count in torn.items():
        if not (folder / TORN_FOLDER / str(offset)).is_file():
            yield f"`{TORN_FOLDER}/{offset}` is missing; no longer shown: the {count} bytes that recovery cut there"
    if not (folder / REDACTIONS).is_file():
        yield f"why openings are gone, where any are: there is no `{REDACTIONS}`"
