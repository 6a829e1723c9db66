"""Every envelope that can be built is valid by its schema, and what the contract forbids cannot be built."""

from __future__ import annotations

from typing import Any

import pytest

from deskcert.contract.envelope import ACTING, Failure, LedgerPlace, acted, failure, recovery_for, success
from deskcert_schema.disposition import RETRY_OF, SUCCESS_DELIVERIES, Delivery, Disposition
from deskcert_schema.errors import ContractError
from deskcert_schema.validate import check, schema
from deskcert_schema.vocabulary import Code, Command, DetailKind

SAFE = Disposition(Delivery.NOT_DELIVERED)
DATA: dict[str, Any] = {
    "action": "click",
    "target": {"ref": "@s8f3k2p9:e8", "role": "button", "name": None},
    "hit": None,
    "mode": "headless",
    "steps": [{"label": "click", "outcome": "succeeded", "mechanism": None}],
    "details": {"verification_scope": "none", "application_commit": "not_verified", "verification_reason": None},
    "verification": {"scope": "none", "claim": None},
}


@pytest.mark.parametrize("delivery", list(Delivery))
def test_a_success_carries_only_what_a_success_may(delivery: Delivery) -> None:
    if delivery in SUCCESS_DELIVERIES:
        answer = acted(Command.CLICK, DATA, Disposition(delivery), ledger=LedgerPlace(41, 42, 800))
        assert answer["data"]["disposition"] == {"delivery": delivery.value, "retry": RETRY_OF[delivery].value}
        assert check("envelope", answer) == []
    else:
        with pytest.raises(ContractError, match=f"no success is {delivery}"):
            acted(Command.CLICK, DATA, Disposition(delivery))


@pytest.mark.parametrize("command", sorted(ACTING))
def test_an_acting_command_cannot_succeed_without_a_disposition(command: Command) -> None:
    with pytest.raises(ContractError, match="carries a disposition"):
        success(command, {})


def test_the_acting_commands_are_the_schemas() -> None:
    assert set(schema("envelope")["$defs"]["acting"]["enum"]) == {c.value for c in ACTING}


def test_data_cannot_contradict_the_stamp() -> None:
    with pytest.raises(ContractError, match="the data says"):
        acted(Command.CLICK, DATA | {"disposition": {"delivery": "delivered_verified", "retry": "unsafe"}}, SAFE)


def test_optional_keys_are_left_out_at_every_depth() -> None:
    answer = acted(Command.CLICK, DATA, SAFE)
    assert "null" not in repr(answer)
    assert "None" not in repr(answer)
    assert "ledger" not in answer
    assert answer["data"]["steps"] == [{"label": "click", "outcome": "succeeded"}]


def test_what_was_given_is_not_changed() -> None:
    before = repr(DATA)
    acted(Command.CLICK, DATA, SAFE)
    assert repr(DATA) == before


@pytest.mark.parametrize("code", [c for c in Code if c is not Code.POLICY_DENIED])
@pytest.mark.parametrize("delivery", list(Delivery))
def test_recovery_only_where_a_retry_is_safe(code: Code, delivery: Delivery) -> None:
    hint = recovery_for(code, Disposition(delivery))
    assert hint is None or delivery is Delivery.NOT_DELIVERED
    error = Failure(code, "why", Disposition(delivery), recovery=hint, details={"attempts": 2}).as_json()
    assert error["disposition"]["retry"] == RETRY_OF[delivery].value
    assert ("recovery" in error) == (hint is not None)


@pytest.mark.parametrize(
    ("code", "strategy"),
    [
        (Code.STALE_REF, "refresh_snapshot_then_retry_original"),
        (Code.SNAPSHOT_NOT_FOUND, "refresh_snapshot_then_retry_original"),
        (Code.APP_UNRESPONSIVE, "inspect_state_then_retry_original"),
    ],
)
def test_strategies_of_recovery(code: Code, strategy: str) -> None:
    error = Failure(code, "why", SAFE, recovery=recovery_for(code, SAFE))
    answer = failure("click", error, ledger=LedgerPlace(3))
    assert answer["error"]["recovery"]["strategy"] == strategy
    assert answer["ledger"] == {"seq": 3}
    assert check("envelope", answer) == []


def test_recovery_cannot_stand_beside_an_uncertain_delivery() -> None:
    with pytest.raises(ContractError, match="only a safe retry"):
        Failure(Code.STALE_REF, "why", Disposition(Delivery.UNKNOWN), recovery=recovery_for(Code.STALE_REF, SAFE))


def test_a_denial() -> None:
    answer = failure("click", Failure(Code.POLICY_DENIED, "rule no-delete", SAFE, DetailKind.FORBIDDEN_NAME))
    assert answer["error"]["details"] == {"kind": "forbidden_name", "retryable": False}
    assert "recovery" not in answer["error"]
    assert check("envelope", answer) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"kind": None}, "needs a kind"),
        ({"disposition": Disposition(Delivery.DELIVERED_UNVERIFIED)}, "a denial is not_delivered"),
        ({"recovery": recovery_for(Code.STALE_REF, SAFE)}, "a denial has no recovery"),
        ({"kind": DetailKind.UNSAFE_RETRY}, "needs details.original"),
        ({"message": ""}, "needs a message"),
    ],
)
def test_a_denial_that_cannot_be_built(changed: dict[str, Any], words: str) -> None:
    made = {"code": Code.POLICY_DENIED, "message": "no", "disposition": SAFE, "kind": DetailKind.FORBIDDEN_NAME}
    with pytest.raises(ContractError, match=words):
        Failure(**(made | changed))


def test_a_refused_repeat_names_the_original() -> None:
    original = {"seq": 41, "disposition": Disposition(Delivery.DELIVERY_UNCERTAIN).as_json()}
    error = Failure(Code.POLICY_DENIED, "again", SAFE, DetailKind.UNSAFE_RETRY, details={"original": original})
    answer = failure("click", error)
    assert answer["error"]["details"]["original"] == original
    assert check("envelope", answer) == []


def test_a_command_that_is_none_is_answered_all_the_same() -> None:
    answer = failure("x" * 5000, Failure(Code.INVALID_ARGS, "no such command", SAFE))
    assert answer["command"] == "x" * 100
    assert failure("", Failure(Code.INVALID_ARGS, "no command", SAFE))["command"] == "unknown"
    assert check("envelope", answer) == []
