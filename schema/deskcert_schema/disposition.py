"""The disposition table: what is known about delivery, and what that means for a retry.

| delivery | retry | meaning |
| --- | --- | --- |
| `not_delivered` | `safe` | nothing reached the application; on a success: the asked state already held |
| `delivered_unverified` | `unsafe` | dispatched; the effect was not independently confirmed |
| `delivered_verified` | `unsafe` | the post-condition was read back, within the declared scope only |
| `delivery_uncertain` | `never_automatic` | the call was made and its answer does not prove non-delivery |
| `unknown` | `never_automatic` | nobody established whether input went out |

`retry` is a function of `delivery`; nothing else in the project may decide it. Source: contract.md, "Disposition".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from deskcert_schema.errors import ContractError

__all__ = ["RETRY_OF", "SUCCESS_DELIVERIES", "Delivery", "Disposition", "Retry", "strongest"]


class Delivery(StrEnum):
    NOT_DELIVERED = "not_delivered"
    UNKNOWN = "unknown"
    DELIVERY_UNCERTAIN = "delivery_uncertain"
    DELIVERED_UNVERIFIED = "delivered_unverified"
    DELIVERED_VERIFIED = "delivered_verified"


class Retry(StrEnum):
    SAFE = "safe"
    UNSAFE = "unsafe"
    NEVER_AUTOMATIC = "never_automatic"


RETRY_OF: Final[Mapping[Delivery, Retry]] = MappingProxyType(
    {
        Delivery.NOT_DELIVERED: Retry.SAFE,
        Delivery.DELIVERED_UNVERIFIED: Retry.UNSAFE,
        Delivery.DELIVERED_VERIFIED: Retry.UNSAFE,
        Delivery.DELIVERY_UNCERTAIN: Retry.NEVER_AUTOMATIC,
        Delivery.UNKNOWN: Retry.NEVER_AUTOMATIC,
    }
)

SUCCESS_DELIVERIES: Final = frozenset(
    {Delivery.NOT_DELIVERED, Delivery.DELIVERED_UNVERIFIED, Delivery.DELIVERED_VERIFIED}
)
"""The only deliveries that an `ok: true` answer may carry."""

# Pairs that foreign tools publish beside ours; a reader of *foreign* answers maps them, our own reader refuses them.
_FOREIGN_RETRY: Final = frozenset(
    {(Delivery.DELIVERY_UNCERTAIN, "unsafe"), (Delivery.UNKNOWN, "unknown"), (Delivery.UNKNOWN, "unsafe")}
)


@dataclass(frozen=True, slots=True)
class Disposition:
    """Of *this attempt*: what was delivered. `retry` follows from it."""

    delivery: Delivery

    @property
    def retry(self) -> Retry:
        return RETRY_OF[self.delivery]

    def as_json(self) -> dict[str, str]:
        return {"delivery": self.delivery.value, "retry": self.retry.value}

    @classmethod
    def read(cls, data: Mapping[str, object], *, foreign: bool = False) -> Disposition:
        """Read `{"delivery", "retry"}`. Raises `ContractError` for a pair that our table does not hold,
        unless `foreign` is set and the pair is one that another tool publishes."""
        try:
            delivery = Delivery(str(data["delivery"]))
            retry = str(data["retry"])
        except (KeyError, ValueError) as exc:
            raise ContractError(f"not a disposition: {dict(data)!r}") from exc
        if retry == RETRY_OF[delivery] or (foreign and (delivery, retry) in _FOREIGN_RETRY):
            return cls(delivery)
        raise ContractError(f"delivery {delivery} never goes with retry {retry!r}; it is {RETRY_OF[delivery]}")


_EVIDENCE_ORDER: Final = (
    Delivery.NOT_DELIVERED,
    Delivery.UNKNOWN,
    Delivery.DELIVERY_UNCERTAIN,
    Delivery.DELIVERED_UNVERIFIED,
    Delivery.DELIVERED_VERIFIED,
)


def strongest(before: Delivery, now: Delivery) -> Delivery:
    """Combine two statements about one attempt: evidence of delivery is kept whatever is said later."""
    return max(before, now, key=_EVIDENCE_ORDER.index)
