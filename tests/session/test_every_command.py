"""The contract's commands: each is there, told on every way in, and has an answer's schema."""

from __future__ import annotations

import pytest

from deskcert.contract.envelope import ACTING
from deskcert.session.commands import COMMANDS, NOT_YET
from deskcert.ways.arguments import COMMANDS as TOLD
from deskcert_schema.validate import schema
from deskcert_schema.vocabulary import Command


def test_none_is_missing() -> None:
    assert set(NOT_YET) == set()
    assert set(TOLD) == set(COMMANDS)


@pytest.mark.parametrize("command", Command)
def test_its_answer_has_a_schema(command: Command) -> None:
    envelope = schema("envelope")
    acting = set(envelope["$defs"]["acting"]["enum"])
    rules = envelope["then"]["allOf"]
    told = {r["if"]["properties"]["command"].get("const") for r in rules}
    assert (command in ACTING) == (command in acting) == COMMANDS[command].acting
    assert command in acting or command in told


def test_policies_may_name_every_command_and_downloads() -> None:
    words = schema("policy")["$defs"]["action"]["enum"]
    assert set(words) == {*Command, "download"}
