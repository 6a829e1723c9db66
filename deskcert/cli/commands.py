"""The one-shot commands: `deskcert snapshot`, `deskcert click @s…:e3`, …, each one envelope of the open session.

Exit codes: 0 ok, 1 a structured error, 2 a usage error; standard output is an envelope in every case. Nothing heavy is
imported here: an agent may start this a hundred times.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from deskcert.contract.shown import shown_json
from deskcert.ways.arguments import COMMANDS, CommandInfo, Param
from deskcert_schema.errors import UsageError

__all__ = ["command_for", "print_envelope"]

_OPTION_TYPES: Mapping[str, Any] = {"integer": click.INT, "string": click.STRING}


def command_for(name: str) -> click.Command:
    """A contract command that this version has no arguments for takes any, and the session says what it thinks."""
    info = COMMANDS.get(name)
    if info is None:
        return _OneShot(
            name,
            params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED), *_common()],
            callback=lambda rest, session, as_text: _run(
                name, _untold(rest), session=session, as_text=as_text, acting=True
            ),
            help="A command of the contract: [REF] [--name value]… as its documentation says.",
            context_settings={"ignore_unknown_options": True},
        )
    return _OneShot(
        name,
        params=[*(_param(p) for p in info.params), *_common()],
        callback=_callback(name, info),
        help=info.line,
        epilog=f"Example: {info.example}" if info.example else None,
    )


def _untold(words: tuple[str, ...]) -> dict[str, Any]:
    """Arguments of a command that the table does not know: a ref, and `--name value`. The session judges them."""
    args: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            args.setdefault("ref", word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals and rest and not rest[0].startswith("--"):
            value, equals = rest.pop(0), "="
        number = int(value) if value.isascii() and value.isdecimal() and len(value) < 16 else None
        args[name.replace("-", "_")] = True if not equals else number if number is not None else value
    return args


class _OneShot(click.Command):
    """Usage errors are envelopes too."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> click.Context:
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as exc:
            print_envelope(usage_error(self.name or "unknown", exc.format_message()))
            raise click.exceptions.Exit(2) from exc


def _common() -> list[click.Parameter]:
    return [
        click.Option(["--session"], metavar="NAME", help="Which session (default: DESKCERT_SESSION, or the only one)."),
        click.Option(["--text", "as_text"], is_flag=True, help="A few words for a person, instead of the envelope."),
    ]


def _param(param: Param) -> click.Parameter:
    if param.schema["type"] == "array":
        return _list_param(param)
    if param.positional:
        kind: Any = click.Choice(param.schema["enum"]) if "enum" in param.schema else click.STRING
        return click.Argument([param.name], required=param.required, type=kind)
    option = f"--{param.name.replace('_', '-')}"
    if param.schema["type"] == "boolean":
        return click.Option([option, param.name], is_flag=True, default=None, help=param.help)
    kind = click.Choice(param.schema["enum"]) if "enum" in param.schema else _OPTION_TYPES[param.schema["type"]]
    return click.Option([option, param.name], type=kind, required=param.required, help=param.help)


def _list_param(param: Param) -> click.Parameter:
    """Texts one by one, or a list of objects as one JSON text."""
    if param.schema["items"]["type"] == "object":
        return click.Argument([param.name], required=param.required, callback=_from_json)
    if param.positional:
        return click.Argument([param.name], nargs=-1, required=param.required, type=click.STRING)
    return click.Option([f"--{param.name.replace('_', '-')}", param.name], multiple=True, help=param.help)


def _from_json(_ctx: click.Context, param: click.Parameter, raw: str) -> Any:
    try:
        return json.loads(raw)
    except ValueError as exc:
        raise click.BadParameter(f"must be JSON ({exc})", param=param) from exc


def _callback(name: str, info: CommandInfo) -> Any:
    def run(*, session: str | None, as_text: bool, **given: Any) -> int:
        told = {key: value for key, value in given.items() if value is not None and value != ()}
        args = {key: list(value) if isinstance(value, tuple) else value for key, value in told.items()}
        return _run(name, args, session=session, as_text=as_text, acting=info.acting or info.may_act)

    return run


def _run(name: str, args: Mapping[str, Any], *, session: str | None, as_text: bool, acting: bool) -> int:
    from deskcert.ways.client import ask
    from deskcert.ways.registry import choose

    try:
        entry = choose(session)
    except UsageError as exc:
        print_envelope(usage_error(name, str(exc)))
        return 2
    envelope = ask(entry, name, args, acting=acting)
    print_envelope(envelope, as_text=as_text)
    return 0 if envelope.get("ok") is True else 1


def usage_error(command: str, why: str) -> dict[str, Any]:
    from deskcert.contract.envelope import Failure, failure
    from deskcert_schema.disposition import Delivery, Disposition
    from deskcert_schema.vocabulary import Code

    return failure(command, Failure(Code.INVALID_ARGS, why, Disposition(Delivery.NOT_DELIVERED)))


def print_envelope(envelope: Mapping[str, Any], *, as_text: bool = False) -> None:
    if as_text:
        from deskcert.ways.text import as_text as told

        click.echo(told(envelope))
    else:
        click.echo(shown_json(envelope, separators=(",", ":")))
