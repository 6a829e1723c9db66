"""`batch`: several commands in one call. Every entry is parsed, and every action on an element, on the page or on the
desktop judged by the policy, before the first one runs; then they run in order, each through the whole guard, until one
fails.

A batch is not atomic: what ran before the failure stays done, and the answer says which entries never started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from deskcert.adapters.base import Live
from deskcert.contract.envelope import success
from deskcert.guard import policy
from deskcert.guard.desktop_subject import DESKTOP_COMMANDS, desktop_subject
from deskcert.session.answers import Refused
from deskcert.session.args import Arg, boolean, parse_args
from deskcert.session.desk import Call, Desk, Handler
from deskcert_schema.errors import AdapterError, ContractError
from deskcert_schema.vocabulary import Command

__all__ = ["COMMANDS"]

MOST_ENTRIES: Final = 64
_NEVER: Final = frozenset({Command.BATCH, Command.FINISH})
_LOOK_MS: Final = 750


async def _batch(desk: Desk, call: Call) -> dict[str, Any]:
    entries: Sequence[tuple[str, Mapping[str, Any]]] = call.values["entries"]
    forbidden = await _forbidden(desk, entries)
    answers: list[dict[str, Any] | None] = [None] * len(entries)
    stopped: dict[str, Any] | None = None
    if forbidden is not None:
        # Its own pipeline says and records the denial; nothing else begins.
        answers[forbidden] = await desk.handle(*entries[forbidden])
        stopped = {"index": forbidden, "reason": "the policy denies this entry, so none was begun"}
    else:
        for index, entry in enumerate(entries):
            answers[index] = answer = await desk.handle(*entry)
            if not answer["ok"] and call.values["stop_on_error"]:
                stopped = {"index": index, "reason": f"it failed: {answer['error']['code']}"}
                break
    data: dict[str, Any] = {
        "entries": [_shown(name, answer) for (name, _), answer in zip(entries, answers, strict=True)],
        "all_ok": all(answer is not None and answer["ok"] for answer in answers),
    }
    if stopped is not None:
        data["stopped"] = stopped
    return success(Command.BATCH, data)


def _shown(name: str, answer: dict[str, Any] | None) -> dict[str, Any]:
    if answer is None:
        return {"command": name, "execution": "not_started"}
    return {"command": name, "execution": "completed", "answer": answer}


async def _forbidden(desk: Desk, entries: Sequence[tuple[str, Mapping[str, Any]]]) -> int | None:
    """The first entry that the policy denies on the page as it is now. What cannot be read is judged in its turn."""
    from deskcert.session import commands
    from deskcert.session.commands.element import action_of

    for index, (name, raw) in enumerate(entries):
        handler = commands.COMMANDS[name]
        values = parse_args(handler.name, handler.args, raw)
        if name in DESKTOP_COMMANDS and await _forbidden_on_desktop(desk, Call(name, raw, values, 0)):
            return index
        if name in policy.PAGE_COMMANDS and await _forbidden_page(desk, Call(name, raw, values, 0)):
            return index
        if not handler.acting or "ref" not in values:
            continue
        try:
            saved = desk.saved(values["ref"])
            action = action_of(Call(name, raw, values, 0), saved, desk.options.mode)
            if "to" in values:
                action = replace(action, to=desk.saved(values["to"]).handle)
            probed = await desk.adapter.probe(saved.handle, action, budget_ms=_LOOK_MS)
        except (Refused, AdapterError):
            continue
        if not isinstance(probed, Live):
            continue
        facts = policy.value_facts(desk.policy, action.value, action.command)
        subject = policy.subject_of(action, probed.evidence, saved.window, facts)
        if isinstance(policy.decide(desk.policy, subject), policy.Deny):
            return index
    return None


async def _forbidden_page(desk: Desk, call: Call) -> bool:
    """Where it would lead from here. What that is only after an earlier entry is judged in its turn."""
    from deskcert.session.commands.page import entry_of
    from deskcert.session.commands.tabs import open_tabs

    try:
        match call.command:
            case Command.NAVIGATE:
                target: dict[str, Any] = {"url": call.values["url"]}
            case Command.TAB_FOCUS | Command.TAB_CLOSE:
                tab = next(t for t in await open_tabs(desk) if t.id == call.values["tab"])
                target = {"url": tab.url, "tab": {"id": tab.id, "title": tab.title}}
            case Command.BACK | Command.FORWARD | Command.RELOAD:
                entry = await entry_of(desk, call.command)
                if entry is None:
                    return False
                target = {"url": entry.url}
            case _:
                return False
        window = await desk.adapter.window()
    except (Refused, AdapterError, StopIteration):
        return False
    verdict = policy.decide(desk.policy, policy.page_subject(call.command, target, window))
    return isinstance(verdict, policy.Deny)


async def _forbidden_on_desktop(desk: Desk, call: Call) -> bool:
    from deskcert.session.commands.desktop import meant

    try:
        found = await meant(desk, call)
    except Refused:
        return False
    facts = policy.value_facts(desk.policy, found.operation.text, call.command)
    subject = desktop_subject(call.command, found.target, facts)
    return isinstance(policy.decide(desk.policy, subject), policy.Deny)


def _entries(name: str, raw: object) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Each `{"command": …, "args": {…}}`, parsed here so that nothing runs where one is wrong."""
    from deskcert.session import commands

    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_ENTRIES:
        raise ContractError(f"{name} must be a list of 1 to {MOST_ENTRIES} commands")
    found = []
    for index, entry in enumerate(raw):
        where = f"{name}[{index}]"
        if not isinstance(entry, Mapping) or set(entry) - {"command", "args"} or "command" not in entry:
            raise ContractError(f"{where} must hold command and args")
        command, args = entry["command"], entry.get("args", {})
        if not isinstance(command, str) or command not in commands.COMMANDS or command in _NEVER:
            raise ContractError(f"{where} cannot be {str(command)[:60]!r} in a batch")
        if not isinstance(args, Mapping):
            raise ContractError(f"{where}.args must be an object")
        try:
            parse_args(command, commands.COMMANDS[command].args, args)
        except ContractError as exc:
            raise ContractError(f"{where}: {exc}") from exc
        found.append((command, args))
    return tuple(found)


COMMANDS: Final = (
    Handler(
        Command.BATCH,
        (Arg("entries", _entries, required=True), Arg("stop_on_error", boolean, default=True)),
        _batch,
    ),
)
