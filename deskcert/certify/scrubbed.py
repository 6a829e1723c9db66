"""A run's ledger, in front of which every value of a `${ENV:NAME}` is replaced by its placeholder.

A page can show a secret and an agent can type it, so every record passes here, whoever writes it. What an agent typed
is a commitment in the record; where it holds a secret, its opening is not kept either.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, cast

from deskcert.certify.env_secrets import EnvSecrets
from deskcert_ledger import Ack, Blob, Secret

if TYPE_CHECKING:
    from deskcert_ledger import Receipt, RunLedger, Sealed

__all__ = ["ScrubbedLedger", "scrubbed", "without_secrets"]


def without_secrets(ledger: RunLedger, secrets: EnvSecrets) -> RunLedger:
    """The ledger itself where there is nothing to keep out of it."""
    return cast("RunLedger", ScrubbedLedger(ledger, secrets)) if secrets.values else ledger


class ScrubbedLedger:
    """As much of `RunLedger` as a run uses."""

    def __init__(self, ledger: RunLedger, secrets: EnvSecrets) -> None:
        self._ledger, self._secrets = ledger, secrets

    def submit(
        self, kind: str, payload: Mapping[str, Any], *, w: str = "guard", ack: Ack = Ack.DURABLE
    ) -> Future[Receipt]:
        return self._ledger.submit(kind, scrubbed(payload, self._secrets), w=w, ack=ack)

    def append(self, kind: str, payload: Mapping[str, Any], *, w: str = "guard", ack: Ack = Ack.DURABLE) -> Receipt:
        return self._ledger.append(kind, scrubbed(payload, self._secrets), w=w, ack=ack)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    def seal(self) -> Sealed:
        return self._ledger.seal()


def scrubbed(value: Any, secrets: EnvSecrets) -> Any:
    match value:
        case Secret():
            return Secret(value.value, openable=False) if secrets.holds(value.value) else value
        case Blob():
            return Blob(scrubbed(value.content, secrets))
        case Mapping():
            return {secrets.scrub(str(key)): scrubbed(inner, secrets) for key, inner in value.items()}
        case list() | tuple():
            return [scrubbed(inner, secrets) for inner in value]
        case _:
            return secrets.scrub(value)
