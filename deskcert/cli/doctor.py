"""`deskcert doctor`: what deskcert needs on this machine, what is missing, and the command that gets it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

import click

from deskcert.contract.shown import shown_json

__all__ = ["Finding", "State", "doctor", "examine"]


class State(StrEnum):
    GOOD = "good"
    OPTIONAL = "optional"
    """Missing, and only some commands need it."""
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    state: State
    said: str
    fix: tuple[str, ...] = ()
    """The command that puts it right, as words."""


@click.command(
    epilog="""\b
Examples:
  deskcert doctor
  deskcert doctor --fix        (says what it will do, and asks; --yes does not ask)
  deskcert doctor --json

\b
Exit codes: 0 nothing that is needed is missing, 2 something is.
"""
)
@click.option("--fix", is_flag=True, help="Install what can be installed, after saying what will be done.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def doctor(*, fix: bool, yes: bool, as_json: bool) -> int:
    """Look at what deskcert needs here, and say what is missing and how to get it."""
    found = examine(Path.cwd())
    if as_json:
        click.echo(shown_json([asdict(f) for f in found], indent=1))
    else:
        _show(found)
    if fix and _repair([f for f in found if f.state is not State.GOOD and f.fix], ask=not yes):
        found = examine(Path.cwd())
        _show(found)
    return 2 if any(f.state is State.MISSING for f in found) else 0


def _show(found: list[Finding]) -> None:
    marks = {State.GOOD: "ok", State.OPTIONAL: "--", State.MISSING: "!!"}
    width = max(len(f.name) for f in found)
    for finding in found:
        click.echo(f"  {marks[finding.state]}  {finding.name:<{width}}  {finding.said}")
        if finding.fix and finding.state is not State.GOOD:
            click.echo(f"      {'':<{width}}  get it with: {' '.join(finding.fix)}")


def _repair(wanted: list[Finding], *, ask: bool) -> bool:
    """Whether anything was run."""
    if not wanted:
        click.echo("there is nothing that could be put right from here")
        return False
    click.echo("this will run:")
    for finding in wanted:
        click.echo(f"  {' '.join(finding.fix)}")
    if ask and not click.confirm("go on?", default=False):
        return False
    for finding in wanted:
        done = subprocess.run(finding.fix, check=False)
        click.echo(f"{finding.name}: {'done' if done.returncode == 0 else f'failed with status {done.returncode}'}")
    return True


def examine(folder: Path) -> list[Finding]:
    """Every look, in order; each says what it saw."""
    looks: tuple[Callable[[Path], Finding], ...] = (
        _python,
        _browser,
        _sandbox,
        _playwright,
        _fixture,
        _mcp,
        _proxy,
        _isolation,
        _desktop,
        _display,
        _key,
        _project,
        _runtime,
    )
    return [look(folder) for look in looks]


def _python(_: Path) -> Finding:
    return Finding("python", State.GOOD, f"{platform.python_version()} ({sys.executable})")


def _browser(_: Path) -> Finding:
    from deskcert.adapters.web.find_browser import find_browser
    from deskcert_schema.errors import HarnessError

    try:
        return Finding("browser", State.GOOD, str(find_browser()))
    except HarnessError as exc:
        root = os.geteuid() == 0 and shutil.which("apt-get")
        fix = ("apt-get", "install", "-y", "--no-install-recommends", "chromium-headless-shell")
        other = ("playwright", "install", "chromium", "--only-shell")
        return Finding("browser", State.MISSING, str(exc), fix if root else other)


def _sandbox(_: Path) -> Finding:
    if os.geteuid() == 0:
        return Finding("browser sandbox", State.OPTIONAL, "off as root (--no-sandbox); every run records it")
    return Finding("browser sandbox", State.GOOD, "on")


def _extra(name: str, module: str, extra: str, for_what: str, *, needed: bool = False) -> Finding:
    if find_spec(module) is not None:
        return Finding(name, State.GOOD, f"{module} is installed")
    state = State.MISSING if needed else State.OPTIONAL
    fix = (sys.executable, "-m", "pip", "install", f"deskcert[{extra}]")
    return Finding(name, state, f"{module} is not installed: {for_what}", fix)


def _playwright(_: Path) -> Finding:
    return _extra("web adapter", "playwright", "web", "no page can be guarded", needed=True)


def _fixture(_: Path) -> Finding:
    return _extra("fixture app", "starlette", "fixture", "the built-in suites cannot run")


def _mcp(_: Path) -> Finding:
    return _extra("mcp", "mcp", "mcp", "deskcert mcp, and agents over MCP")


def _proxy(_: Path) -> Finding:
    return _extra("proxy", "mitmproxy", "proxy", "the second line, on the network")


def _isolation(_: Path) -> Finding:
    from deskcert.ways.isolation import available

    why = {kind: available(kind) for kind in ("bwrap", "netns")}
    good = [kind for kind, reason in why.items() if reason is None]
    if "bwrap" in good:
        return Finding("isolation", State.GOOD, f"{' and '.join(good)} work here")
    can = os.geteuid() == 0 and shutil.which("apt-get")
    fix = ("apt-get", "install", "-y", "bubblewrap") if can and shutil.which("bwrap") is None else ()
    rest = f"; {good[0]} works here" if good else ""
    return Finding("isolation", State.OPTIONAL, f"{why['bwrap']}{rest}", fix)


def _desktop(_: Path) -> Finding:
    from deskcert.adapters.linux.desktop_session import lacking

    found = lacking(fixture=True)
    if not found:
        return Finding("desktop", State.GOOD, "a private desktop can be started for each run")
    root = os.geteuid() == 0 and shutil.which("apt-get")
    apt = [lack.package for lack in found if not lack.package.startswith("pip:")]
    pip = [lack.package.removeprefix("pip:") for lack in found if lack.package.startswith("pip:")]
    fix = ("apt-get", "install", "-y", "--no-install-recommends", *apt) if apt and root else ()
    fix = fix or ((sys.executable, "-m", "pip", "install", *pip) if pip else ())
    return Finding(
        "desktop", State.OPTIONAL, f"no agent can be certified on the desktop: {', '.join(map(str, found))}", fix
    )


def _display(_: Path) -> Finding:
    """Stated here, not discovered in a run: Wayland shows a client neither other windows nor the clipboard."""
    env = os.environ
    if env.get("XDG_SESSION_TYPE") == "wayland" or env.get("WAYLAND_DISPLAY"):
        said = "a Wayland session, which is not supported: X11 only; a private desktop for each run (Xvfb) works here"
        return Finding("display", State.OPTIONAL, said)
    return Finding("display", State.GOOD, "desktops are guarded under X11 only; Wayland sessions are not supported")


def _key(folder: Path) -> Finding:
    from deskcert_ledger.keys import default_key_path, public_key
    from deskcert_schema.errors import DeskcertError

    path = default_key_path(folder)
    if not path.exists():
        return Finding("project key", State.OPTIONAL, f"none yet; `deskcert ci` makes {path}")
    try:
        public_key(path)
    except DeskcertError as exc:
        return Finding("project key", State.MISSING, str(exc))
    if path.stat().st_mode & 0o077:
        return Finding("project key", State.MISSING, f"{path} can be read by others", ("chmod", "600", str(path)))
    return Finding("project key", State.GOOD, str(path))


def _project(folder: Path) -> Finding:
    from deskcert_schema.errors import ConfigError
    from deskcert_schema.validate import load_config

    path = folder / "deskcert.yaml"
    if not path.exists():
        return Finding("deskcert.yaml", State.OPTIONAL, "none here; `deskcert init` writes one to begin with")
    try:
        load_config(path, "config", name=path.name)
    except ConfigError as exc:
        return Finding("deskcert.yaml", State.MISSING, exc.problems[0])
    return Finding("deskcert.yaml", State.GOOD, "is as it should be")


def _runtime(_: Path) -> Finding:
    from deskcert.ways.registry import read_all, runtime_folder
    from deskcert_schema.errors import UsageError

    try:
        folder, dead = runtime_folder(), [e for e in read_all() if not e.alive]
    except (UsageError, OSError) as exc:
        return Finding("sessions", State.MISSING, str(exc))
    if dead:
        fix = (sys.executable, "-m", "deskcert.cli.main", "session", "gc")
        return Finding("sessions", State.OPTIONAL, f"{len(dead)} dead in {folder}", fix)
    return Finding("sessions", State.GOOD, str(folder))
