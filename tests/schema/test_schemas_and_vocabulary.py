"""The schemas are JSON Schema 2020-12, resolve among themselves, and use the vocabulary's words and no others."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import StrEnum
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from deskcert_schema import validate, vocabulary
from deskcert_schema.disposition import RETRY_OF, SUCCESS_DELIVERIES, Delivery, Retry
from deskcert_schema.errors import ContractError
from deskcert_schema.validate import SCHEMAS, check, digest, schema

PAIRS: list[tuple[str, str, type[StrEnum]]] = [
    ("common", "code", vocabulary.Code),
    ("common", "command", vocabulary.Command),
    ("common", "delivery", Delivery),
    ("common", "retry", Retry),
    ("common", "attribution", vocabulary.Attribution),
    ("common", "expected", vocabulary.Expected),
    ("common", "claim_outcome", vocabulary.ClaimOutcome),
    ("common", "run_outcome", vocabulary.RunOutcome),
    ("common", "severity", vocabulary.Severity),
    ("common", "confidence", vocabulary.Confidence),
    ("common", "pipeline_point", vocabulary.PipelinePoint),
    ("common", "mode", vocabulary.Mode),
    ("common", "check", vocabulary.Check),
    ("common", "check_status", vocabulary.CheckStatus),
    ("common", "step_outcome", vocabulary.StepOutcome),
]


@pytest.mark.parametrize(("name", "part", "enum"), PAIRS)
def test_enum_is_the_vocabularys(name: str, part: str, enum: type[StrEnum]) -> None:
    assert schema(name)["$defs"][part]["enum"] == [member.value for member in enum]


def test_enums_that_stand_inside_other_shapes() -> None:
    scope = schema("common")["$defs"]["verification"]["properties"]["scope"]["enum"]
    assert scope == list(vocabulary.VerificationScope)
    assert schema("policy")["$defs"]["deny_rule"]["properties"]["effect"]["enum"] == list(vocabulary.PolicyEffect)
    assert schema("record")["$defs"]["net.write"]["properties"]["how"]["enum"] == list(vocabulary.NetworkHow)


@pytest.mark.parametrize("delivery", list(Delivery))
@pytest.mark.parametrize("retry", list(Retry))
def test_the_disposition_table_holds_in_the_schema(delivery: Delivery, retry: Retry) -> None:
    pair = {"delivery": delivery.value, "retry": retry.value}
    assert (check("common#/$defs/disposition", pair) == []) == (RETRY_OF[delivery] is retry)
    ours = RETRY_OF[delivery] is retry and delivery in SUCCESS_DELIVERIES
    assert (check("common#/$defs/success_disposition", pair) == []) == ours


def test_every_kind_with_a_schema_is_a_kind_of_the_vocabulary() -> None:
    kinds: set[str] = set()
    for branch in schema("record")["allOf"]:
        kind = branch["if"]["properties"]["kind"]
        kinds |= set(kind.get("enum", [kind.get("const")]))
    assert kinds == set(vocabulary.RecordKind)


@pytest.mark.parametrize("name", SCHEMAS)
def test_is_a_schema_and_all_its_references_resolve(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    for reference in references(schema(name)):
        whole, _, pointer = reference.rpartition("#")
        found: Any = schema(whole.rpartition(":")[2] if whole else name if reference.startswith("#") else "")
        for step in pointer.split("/")[1:]:
            found = found[step]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value if "#" in value else f"{value}#"
            else:
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_every_shipped_file_is_listed() -> None:
    shipped = {p.name for p in (files("deskcert_schema") / "schemas").iterdir()}
    assert shipped == {f"{name}.json" for name in SCHEMAS}


def test_digest_changes_with_any_byte_of_any_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    read = validate._schema_bytes
    assert len(before) == 64
    for name in SCHEMAS:
        monkeypatch.setattr(validate, "_schema_bytes", lambda n, name=name: read(n) + (b" " if n == name else b""))
        digest.cache_clear()
        assert digest() != before
    monkeypatch.undo()
    digest.cache_clear()
    assert digest() == before


def test_no_schema_takes_a_float_for_an_integer() -> None:
    budget = {"actions": 30, "seconds": 60}
    assert check("common#/$defs/budget", budget) == []
    assert check("common#/$defs/budget", budget | {"seconds": 60.0})
    assert check("common#/$defs/budget", budget | {"seconds": True})


def test_unknown_schema_name() -> None:
    with pytest.raises(ContractError, match="there is no schema 'polcy'"):
        check("polcy", {})


def test_schemas_are_plain_json_without_duplicate_keys() -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len({k for k, _ in pairs}) == len(pairs), [k for k, _ in pairs]
        return dict(pairs)

    for name in SCHEMAS:
        json.loads((files("deskcert_schema") / "schemas" / f"{name}.json").read_bytes(), object_pairs_hook=once)
