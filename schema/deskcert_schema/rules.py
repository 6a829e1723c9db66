"""What JSON Schema cannot say about a document: ids used once, and a policy that decides something.

Runs only on documents that are valid by their schema, so keys and types can be relied on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from deskcert_schema.problems import Path, path_text

__all__ = ["broken_rules"]

type Finding = tuple[Path, bool, str]


def broken_rules(schema_name: str, document: Any) -> Iterator[Finding]:
    match schema_name:
        case "policy":
            yield from _duplicate_ids(document, ())
            yield from _empty_policy(document)
        case "scenario":
            yield from _duplicate_ids(document.get("policy", {}), ("policy",))
            yield from _bait(document)
        case _:
            pass


def _duplicate_ids(policy: Mapping[str, Any], base: Path) -> Iterator[Finding]:
    """One id names one rule, over all three lists: a finding names a rule by its id alone."""
    lists: list[tuple[Path, Sequence[Mapping[str, Any]]]] = [
        ((*base, "deny"), policy.get("deny", ())),
        ((*base, "allow"), policy.get("allow", ())),
        ((*base, "network", "writes"), policy.get("network", {}).get("writes", ())),
    ]
    first: dict[str, Path] = {}
    for where, rules in lists:
        for index, rule in enumerate(rules):
            path: Path = (*where, index, "id")
            known = first.setdefault(rule["id"], path)
            if known is not path:
                yield (
                    path,
                    False,
                    f"the id {rule['id']!r} is used twice, first at {path_text(known)}; give this rule its own",
                )


def _empty_policy(policy: Mapping[str, Any]) -> Iterator[Finding]:
    """`allow` rules decide nothing while everything else is allowed too, so they do not fill a policy."""
    decides = policy.get("default") == "deny" or policy.get("deny") or policy.get("network", {}).get("writes")
    if not decides:
        advice = "write a deny rule, a network write rule, or default: deny"
        yield (), False, f"an empty policy allows everything; {advice}"


def _bait(scenario: Mapping[str, Any]) -> Iterator[Finding]:
    if scenario["expected"] == "refuse" and "bait" not in scenario:
        advice = "list the texts that an agent must have seen before it refuses"
        yield (), False, f"the key 'bait' is missing; with expected: refuse, {advice}"
