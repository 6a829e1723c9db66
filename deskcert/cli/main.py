"""The `deskcert` program. A command's module is imported only when that command runs: `deskcert score --help` must not
wait for a browser library."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import click

from deskcert.cli._shared import Exit, exit_code_of, say
from deskcert.ways.arguments import COMMANDS as ONE_SHOT
from deskcert_schema.errors import DeskcertError

__all__ = ["cli", "main"]


@dataclass(frozen=True, slots=True)
class _Entry:
    module: str
    attribute: str
    line: str
    """For `deskcert --help`, which imports no command."""


COMMANDS: Final[Mapping[str, _Entry]] = MappingProxyType(
    {
        "demo": _Entry(
            "deskcert.cli.ci", "demo", "Certify the reference agent on the built-in suite, into a fresh folder."
        ),
        "ci": _Entry("deskcert.cli.ci", "ci", "Run an agent on a suite and say whether it can be trusted."),
        "score": _Entry("deskcert.cli.score", "score", "Compute the verdict again from run folders alone."),
        "merge": _Entry("deskcert.cli.merge", "merge", "Put the shards of one certification together and decide."),
        "compare": _Entry(
            "deskcert.cli.compare", "compare", "Say what got better and what got worse since a baseline."
        ),
        "certificate": _Entry(
            "deskcert.cli.certificate", "certificate", "Check a certificate and what changed since; make a badge."
        ),
        "ledger": _Entry("deskcert.cli.ledger", "ledger", "Check or recover a run's ledger."),
        "proxy": _Entry("deskcert.cli.proxy", "proxy", "Stop forbidden network writes, in front of any client."),
        "report": _Entry("deskcert.cli.report", "report", "Write runs as one HTML file that opens from disk."),
        "case": _Entry("deskcert.cli.case", "case", "Pack what shows one record, for a ticket; check such a file."),
        "replay": _Entry("deskcert.cli.replay", "replay", "Decide a run's actions again, or under another policy."),
        "rules": _Entry("deskcert.cli.rules", "rules", "List the scoring rules."),
        "explain": _Entry("deskcert.cli.explain", "explain", "Say what a rule, a code or a disposition means."),
        "key": _Entry("deskcert.cli.key", "key", "Show the project's public key."),
        "session": _Entry("deskcert.cli.session", "session", "Keep a guarded page open for one-shot commands."),
        "doctor": _Entry("deskcert.cli.doctor", "doctor", "Look at what deskcert needs here, and say what is missing."),
        "init": _Entry("deskcert.cli.init", "init", "Begin a project: configuration, policy, scenario, workflow."),
        "scenario": _Entry(
            "deskcert.cli.scenario", "scenario", "Begin a scenario of your own; try it before it judges."
        ),
        "agent": _Entry("deskcert.cli.agent", "agent", "Begin an agent of your own."),
        "completion": _Entry("deskcert.cli.completion", "completion", "Print what makes a shell complete deskcert."),
        "mcp": _Entry("deskcert.cli.mcp", "mcp", "Serve a guarded page to an agent that speaks MCP."),
    }
)

_EPILOG: Final = """\b
Examples:
  deskcert demo
  deskcert ci --agent builtin:careful --suite builtin:core
  deskcert ci --suite ./scenarios --policy policy.yaml -- python my_agent.py
  deskcert ledger verify deskcert-out/<time>/runs/<run>
  deskcert score deskcert-out/<time>/runs/*

\b
Exit codes of ci, demo and score: 0 certified, 1 not certified, 2 usage or configuration,
3 inconclusive, 4 a ledger is tampered with or cannot be verified.
"""


class _Lazy(click.Group):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*COMMANDS, *ONE_SHOT]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return _one_shot(cmd_name)
        command = getattr(import_module(entry.module), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.line) for name, entry in COMMANDS.items()])
        with formatter.section("In an open session (deskcert session start), one envelope each"):
            formatter.write_dl([(name, info.line) for name, info in ONE_SHOT.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx) from exc


def _one_shot(name: str) -> click.Command | None:
    """A command of the contract; those that the table does not know are asked of the vocabulary, which takes longer."""
    if name not in ONE_SHOT:
        from deskcert_schema.vocabulary import Command

        if name not in set(Command):
            return None
    from deskcert.cli.commands import command_for

    return command_for(name)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"deskcert {version('deskcert')}")
        ctx.exit()


@click.group(cls=_Lazy, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
def cli() -> None:
    """Decide whether an AI agent may touch a screen.

    deskcert stands between an agent and an application, lets nothing through that it cannot account for, writes down
    what happened in a ledger that cannot be quietly changed, and judges the agent from that ledger alone.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit code. The one place where errors become exit codes."""
    # A locale without these letters costs a letter, not the verdict: standard error does the same by itself.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        result: Any = cli.main(arguments, prog_name="deskcert", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.ClickException as exc:
        exc.show()
        code = Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        code = Exit.INCONCLUSIVE
    except DeskcertError as exc:
        say(f"deskcert: {exc}")
        code = exit_code_of(exc)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said there.
        sys.stderr.close()
        code = Exit.INCONCLUSIVE
    except Exception:
        # A fault of ours must never look like a verdict (1) or like a success (0).
        traceback.print_exc()
        say("deskcert: this is a fault in deskcert, not in your agent; the verdict is inconclusive")
        code = Exit.INCONCLUSIVE
    sys.exit(int(code))


if __name__ == "__main__":
    main()
