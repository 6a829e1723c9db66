"""A small stand-in for a pipeline's runner: the `run:` steps of a workflow file, in order, in fresh folders.

Steps that are actions have a local meaning: `checkout` clones the project, `setup-python` is the machine's
interpreter, artifacts are folders. Nothing of a `run:` step is changed. Two things of the machine are not GitHub's:
packages that this test run has already are seen (no network), and `playwright` writes down what it was asked for, the
browser being there.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml


@dataclass
class Machine:
    """A fresh interpreter, and a folder of programs."""

    folder: Path

    def __post_init__(self) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / "venv"], check=True)
        python = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = self.folder / "venv" / "lib" / python / "site-packages"
        (site / "seen.pth").write_text(sysconfig.get_path("purelib") + "\n")
        tools = self.folder / "tools"
        tools.mkdir()
        (tools / "playwright").write_text(f'#!/bin/sh\necho "$*" >> "{self.asked}"\n')
        (tools / "playwright").chmod(0o755)

    @property
    def asked(self) -> Path:
        return self.folder / "playwright.asked"

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DESKCERT_", "GITHUB_", "CI_", "PYTHON"))}
        path = f"{self.folder / 'venv' / 'bin'}:{self.folder / 'tools'}:{kept['PATH']}"
        return kept | {
            "PATH": path,
            "PIP_NO_INDEX": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "CI": "true",
        }


@dataclass
class Done:
    """What a job left behind."""

    steps: dict[str, int] = field(default_factory=dict)
    """Exit code by the step's name; a step that was passed over is not there."""
    said: str = ""
    summary: str = ""

    @property
    def ok(self) -> bool:
        return all(code == 0 for code in self.steps.values())


@dataclass
class Rehearsal:
    workflow: Path
    project: Path
    """A git repository."""
    folder: Path
    inputs: Mapping[str, str]
    key: str = ""
    run_id: str = "1"

    @property
    def artifacts(self) -> Path:
        return self.folder / "artifacts"

    def job(self, name: str, machine: Machine, *, shard: int = 1, total: int = 1) -> Done:
        told = yaml.safe_load(self.workflow.read_text())
        inputs = {k: str(v.get("default", "")) for k, v in told[True]["workflow_call"]["inputs"].items()}
        table = {f"inputs.{k}": v for k, v in (inputs | dict(self.inputs)).items()}
        table |= {"secrets.key": self.key, "matrix.shard": str(shard), "strategy.job-total": str(total)}
        place, done = self.folder / f"{name}-{shard}", Done()
        summary = self.folder / f"{name}-{shard}.summary"
        github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_RUN_ID": self.run_id}
        environment = machine.environment() | github | {"GITHUB_RUN_ATTEMPT": "1"}
        for step in told["jobs"][name]["steps"]:
            if not done.ok and "cancelled()" not in str(step.get("if", "")):
                continue
            if "uses" in step:
                self._action(step, place, table)
                continue
            own = {k: _filled(str(v), table) for k, v in step.get("env", {}).items()}
            # As the runner has it for `shell: bash` that is not named: bash -e.
            ran = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                cwd=place,
                env=environment | own,
                capture_output=True,
                text=True,
                check=False,
                timeout=240,
                stdin=subprocess.DEVNULL,
            )
            done.steps[step["name"]] = ran.returncode
            done.said += ran.stdout + ran.stderr
        done.summary = summary.read_text() if summary.exists() else ""
        return done

    def _action(self, step: Mapping[str, Any], place: Path, table: Mapping[str, str]) -> None:
        given = {k: _filled(str(v), table) for k, v in step.get("with", {}).items()}
        match step["uses"].partition("@")[0]:
            case "actions/checkout":
                subprocess.run(["git", "clone", "-q", self.project, place], check=True)
            case "actions/setup-python":
                assert given["python-version"]
            case "actions/upload-artifact":
                # As upload-artifact has it: the folder's content, without hidden files.
                shutil.copytree(place / given["path"], self.artifacts / given["name"], ignore=_hidden)
            case "actions/download-artifact":
                for found in sorted(self.artifacts.iterdir()):
                    if fnmatch.fnmatch(found.name, given["pattern"]):
                        shutil.copytree(found, place / given["path"] / found.name)
            case other:
                raise AssertionError(f"what does {other} mean here?")


def _hidden(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(".")]


def _filled(words: str, table: Mapping[str, str]) -> str:
    """An expression that is not in the table is an error of the workflow's or of this file's."""
    return re.sub(r"\$\{\{\s*(.*?)\s*\}\}", lambda found: table[found[1]], words)
