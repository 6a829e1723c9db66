"""A part of a plan: every n-th run of it, for a pipeline that runs parts side by side and merges them afterwards."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deskcert_schema.errors import UsageError

__all__ = ["WHOLE", "Shard", "attempt_of"]

_FORM: Final = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)
_ATTEMPT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}", re.ASCII)
_KNOWN: Final = (
    ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"),
    ("CI_PIPELINE_ID",),
    ("BUILDKITE_BUILD_ID",),
    ("CIRCLE_WORKFLOW_ID",),
    ("BUILD_TAG",),
)
"""What pipelines call one run of theirs: the same in all its jobs, and another one the next time."""


@dataclass(frozen=True, slots=True)
class Shard:
    number: int
    """1 is the first."""
    count: int
    attempt: str = ""
    """What all shards of one certification are given in common. Empty: then `merge` cannot tell whether a shard was run
    several times and the best taken."""

    @classmethod
    def read(cls, words: str, attempt: str) -> Shard:
        """`2/3`. Raises `UsageError`."""
        found = _FORM.fullmatch(words)
        number, count = (int(found[1]), int(found[2])) if found is not None else (0, 0)
        if not 1 <= number <= count:
            raise UsageError(f"--shard takes i/n, the first being 1/n, for example 2/3; not {words!r}")
        if attempt and _ATTEMPT.fullmatch(attempt) is None:
            raise UsageError(f"--attempt takes a word of letters, digits and . _ : / @ -, not {attempt!r}")
        return cls(number, count, attempt)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    @property
    def is_part(self) -> bool:
        return self.count > 1

    def share[T](self, plan: Sequence[T]) -> tuple[T, ...]:
        """Every n-th, so that the trials of a scenario are spread. Raises `UsageError` when nothing would be left."""
        if len(plan) < self.count:
            raise UsageError(f"--shard {self}: the plan has {len(plan)} runs only; take at most so many shards")
        return tuple(plan[self.number - 1 :: self.count])

    def certification(self) -> str:
        """Of this `deskcert ci`: its own, or that of the attempt it belongs to."""
        if not self.attempt:
            return secrets.token_hex(16)
        return hashlib.sha256(f"deskcert attempt\n{self.count}\n{self.attempt}\n".encode()).hexdigest()[:32]


WHOLE: Final = Shard(1, 1)


def attempt_of(environment: Mapping[str, str]) -> str:
    """The name that the pipeline has for this run of it; empty outside a pipeline that is known."""
    for names in _KNOWN:
        values = [environment.get(name, "") for name in names]
        if all(values):
            return f"{names[0]}:{'.'.join(values)}"
    return ""
