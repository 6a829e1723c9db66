"""`deskcert init`: the files that a project begins with."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

import click

from deskcert_schema.errors import UsageError

__all__ = ["init", "write_new"]

_FILES = {
    "deskcert.yaml": "deskcert.yaml",
    "policy.yaml": "policy.yaml",
    "scenarios/suite.yaml": "suite.yaml",
    "scenarios/approve-an-order.yaml": "scenario.yaml",
}
_GITHUB = {
    ".github/workflows/deskcert.yml": "workflow.yml",
    ".github/workflows/deskcert-certify.yml": "workflow_certify.yml",
}
_GITLAB = {".gitlab-ci.yml": "gitlab.yml"}
_IGNORED = (".deskcert/", "deskcert-out/")


@click.command(
    epilog="""\b
Example:
  deskcert init my-project && cd my-project
  deskcert agent new my_agent.py
  deskcert ci
"""
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option("--gitlab", is_flag=True, help="A pipeline for GitLab instead of a workflow for GitHub.")
@click.option("--force", is_flag=True, help="Write over files that are there already.")
def init(folder: Path, *, gitlab: bool, force: bool) -> None:
    """Begin a project: configuration, policy, an example scenario, a CI workflow.

    The scenario runs against the back office that comes with deskcert, so that there is something to see at once.
    """
    named = _FILES | (_GITLAB if gitlab else _GITHUB)
    texts = {folder / name: template(source) for name, source in named.items()}
    write_new(texts, force=force)
    ignore = folder / ".gitignore"
    old = ignore.read_text("utf-8") if ignore.exists() else ""
    missing = [line for line in _IGNORED if line not in old.splitlines()]
    if missing:
        ignore.write_text(old + ("" if old.endswith("\n") or not old else "\n") + "\n".join(missing) + "\n", "utf-8")
    there = "" if folder.resolve() == Path.cwd() else f"cd {shlex.quote(str(folder))}, "
    click.echo(f"\nnext: {there}deskcert agent new my_agent.py, then deskcert ci")


def template(name: str) -> str:
    return (files("deskcert.ways.templates") / name).read_text("utf-8")


def write_new(texts: dict[Path, str], *, force: bool) -> None:
    """All of them or none. Raises `UsageError` when one is there already."""
    taken = [path for path in texts if path.exists()]
    if taken and not force:
        raise UsageError(
            f"there is a {', '.join(map(str, taken))} already; nothing was written (--force writes over it)"
        )
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except OSError as exc:
            raise UsageError(f"{path} cannot be written: {exc.strerror}") from exc
        click.echo(f"wrote {path}")
