"""What a run needs of the application under test, whether deskcert's own (`fixture.py`) or a user's (`own_app.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskcert.certify.fixture import Perturbed
from deskcert.certify.oracle import OracleAnswers

__all__ = ["UnderTest"]


class UnderTest(Protocol):
    """Every method raises `HarnessError` for what is the application's trouble."""

    @property
    def url(self) -> str:
        """Its origin, which every page of it begins with."""
        ...

    async def prepare(self, start: Mapping[str, Any], *, seed: int) -> str:
        """Bring it to the scenario's starting state; returns the absolute URL to begin at."""
        ...

    async def perturb(self, do: str, args: Mapping[str, Any]) -> Perturbed: ...

    async def quiet(self, longest_s: float) -> None:
        """Let what it has begun come to its end, so that no effect on its way is missed."""
        ...

    async def ask(self, items: Sequence[Mapping[str, Any]], *, token: str) -> OracleAnswers: ...

    async def close(self) -> None: ...
