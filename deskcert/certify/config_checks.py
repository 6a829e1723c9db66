"""What a configuration names has to be there: suites, policy, the agent's command. Found out before anything is run,
and told with file and line; in the middle of a campaign it would be put down to the agent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from deskcert.certify.documents import contained
from deskcert.certify.suite import BUILTIN, folder_of
from deskcert_schema.errors import ConfigError, UsageError
from deskcert_schema.problems import Path as KeyPath
from deskcert_schema.problems import path_text
from deskcert_schema.strict_yaml import Loaded

if TYPE_CHECKING:
    from deskcert.certify.config import AgentSpec

__all__ = ["check_command", "check_places"]

_SCRIPTS: Final = frozenset({".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".pl", ".php", ".jar"})


def check_places(loaded: Loaded | None, base: Path, *, suites: bool, policy: bool) -> None:
    """`suites`, `policy`: whether the file's are used, not the command line's. Raises `ConfigError`."""
    if loaded is None:
        return
    problems: list[tuple[KeyPath, str]] = []
    if suites:
        problems += _suites(loaded, base)
    if policy and "policy" in loaded.value:
        problems += _policy(loaded, base)
    if problems:
        raise ConfigError(
            [f"{loaded.name}:{loaded.positions.value(p).line}: {path_text(p)}: {why}" for p, why in problems]
        )


def _suites(loaded: Loaded, base: Path) -> Iterator[tuple[KeyPath, str]]:
    for index, name in enumerate(loaded.value.get("suites", ())):
        path: KeyPath = ("suites", index)
        try:
            folder = folder_of(name, base)
            if not name.startswith(BUILTIN):
                contained(folder, base)
        except ConfigError:
            yield path, _OUTSIDE.format(name)
        except UsageError as exc:
            yield path, str(exc)


def _policy(loaded: Loaded, base: Path) -> Iterator[tuple[KeyPath, str]]:
    name = loaded.value["policy"]
    try:
        contained(base / name, base)
    except ConfigError:
        yield ("policy",), _OUTSIDE.format(name)
        return
    if not (base / name).exists():
        yield ("policy",), f"{name}: there is no such file; write it, or name another"


_OUTSIDE: Final = "{} leads out of the project's folder; copy it into the folder, or name it on the command line"


def check_command(agent: AgentSpec, base: Path) -> None:
    """Raises `ConfigError` (it stands in the file) or `UsageError` where the agent's program or script is not there."""
    why = None if agent.builtin is not None else _missing(agent.command, base)
    if why is not None:
        raise ConfigError(f"{agent.where}: agent.command: {why}") if agent.where else UsageError(f"the agent: {why}")


def _missing(command: Sequence[str], base: Path) -> str | None:
    program = command[0]
    if "/" in program:
        if not (base / program).exists():
            return f"there is no program {program} in {base}; write it, or correct its path"
        if shutil.which(base / program) is None:
            return f"{program} cannot be run; make it executable (chmod +x), or name its interpreter first"
    elif shutil.which(program) is None:
        return f"there is no program {program!r} in PATH; install it, or write the path to it"
    script = next((word for word in command[1:] if not word.startswith("-")), "")
    if Path(script).suffix in _SCRIPTS and "{" not in script and not (base / script).exists():
        return f"there is no file {script} in {base}; write it (deskcert agent new {script}), or correct its path"
    return None
