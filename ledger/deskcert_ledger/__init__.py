"""The record that cannot be quietly changed: one append-only file, a Merkle tree over its lines, signed checkpoints.

Writing: `RunLedger`. Reading: `read_records`, `load_blob`, `expand`, `openings`. Judging: `verify_run`. After a crash:
`recover_run`. Keys: `ProjectKey`, `load_pins`, `local_pin`.
"""

from deskcert_ledger.blob import Blob, load_blob
from deskcert_ledger.clock import Clock, SystemClock
from deskcert_ledger.disclosure import Secret
from deskcert_ledger.keys import ProjectKey, default_key_path, load_pins, local_pin
from deskcert_ledger.reader import Record, expand, openings, read_records
from deskcert_ledger.recovery import Recovered, recover_run
from deskcert_ledger.report import RunReport
from deskcert_ledger.run import RunLedger, Sealed
from deskcert_ledger.sequencer import Ack, Receipt
from deskcert_ledger.verify import verify_run
from deskcert_schema.errors import LedgerError, LedgerFormatError, LedgerTampered, LedgerUnavailable

__all__ = [
    "Ack",
    "Blob",
    "Clock",
    "LedgerError",
    "LedgerFormatError",
    "LedgerTampered",
    "LedgerUnavailable",
    "ProjectKey",
    "Receipt",
    "Record",
    "Recovered",
    "RunLedger",
    "RunReport",
    "Sealed",
    "Secret",
    "SystemClock",
    "default_key_path",
    "expand",
    "load_blob",
    "load_pins",
    "local_pin",
    "openings",
    "read_records",
    "recover_run",
    "verify_run",
]
