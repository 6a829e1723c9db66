"""Tries a user's application before the first run: it starts, comes to each scenario's starting state, has the page
that the scenario begins on, and every question about it has an answer.

What fails here is a file of the user's to put right (exit 2), and would otherwise come out as trouble of the harness in
the middle of a campaign, or as a fault of the agent's.
"""

from __future__ import annotations

import asyncio
import http.client
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deskcert.certify.app_spec import AppSpec
from deskcert.certify.documents import shown
from deskcert.certify.env_secrets import EnvSecrets
from deskcert.certify.https import ServerCertificate
from deskcert.certify.oracle import Answer
from deskcert.certify.own_app import OwnApplication
from deskcert.certify.own_desktop import OwnDesktop
from deskcert.certify.questions import request
from deskcert.certify.scenario import Scenario
from deskcert_schema.errors import ConfigError, HarnessError
from deskcert_schema.vocabulary import Expected

__all__ = ["done_already", "page_problem", "try_own"]

_MISSING: Final = (404, 410)


async def try_own(
    app: AppSpec,
    scenarios: Sequence[Scenario],
    secrets: EnvSecrets,
    *,
    token: str,
    https: bool = False,
    weighing: bool = False,
) -> None:
    """`https`: it finds a certificate in its folder, as in a run. `weighing`: an oracle that holds already is let
    through, for whoever runs the scenario to find out. Raises `ConfigError` with file and line of everything
    that is wrong."""
    problems: list[str] = []
    with tempfile.TemporaryDirectory(prefix="deskcert-", ignore_cleanup_errors=True) as folder:
        if https:
            ServerCertificate.new().write(Path(folder))
        try:
            kind = OwnApplication if app.desktop is None else OwnDesktop
            application = await kind.start(app, Path(folder), token=token, secrets=secrets)
        except HarnessError as exc:
            raise ConfigError(f"{app.where}: app: {exc}") from exc
        try:
            for scenario in scenarios:
                problems += await _problems(application, app, scenario, secrets, token=token, weighing=weighing)
                if problems and not application.alive:
                    break
        finally:
            await application.close()
    if problems:
        raise ConfigError(list(dict.fromkeys(problems)))


async def _problems(
    application: OwnApplication, app: AppSpec, scenario: Scenario, secrets: EnvSecrets, *, token: str, weighing: bool
) -> list[str]:
    name = shown(scenario.path)
    try:
        url = await application.prepare(scenario.start, seed=0)
    except HarnessError as exc:
        own = str(exc).startswith("start.reset")
        return [f"{name}:{scenario.start_line}: {exc}" if own else f"{app.where}: app: {exc}"]
    found = []
    if app.desktop is None and (why := await page_problem(url)) is not None:
        found.append(f"{name}:{scenario.start_line}: start: {secrets.scrub(why)}")
    answers = await application.ask(scenario.oracle, token=token)
    for line, answer in zip(scenario.oracle_lines, answers.answers, strict=True):
        if answer.holds is None:
            observed = answer.observed
            why = str(observed.get("unknown", observed)) if isinstance(observed, Mapping) else str(observed)
            found.append(f"{name}:{line}: oracle: this question has no answer: {why}")
    return found if weighing else [*found, *done_already(scenario, answers.answers)]


def done_already(scenario: Scenario, answers: Sequence[Answer]) -> list[str]:
    """A task whose oracle holds before anybody has touched anything is passed by whoever claims it. A sentence, or
    nothing."""
    if scenario.expected != Expected.COMPLETE or not answers or not all(a.holds is True for a in answers):
        return []
    return [
        f"{shown(scenario.path)}:{scenario.oracle_lines[0]}: oracle: all of it holds in the starting state already, so"
        " it says nothing about the agent; ask for what is only so once the task is done"
    ]


async def page_problem(url: str) -> str | None:
    """Why a run cannot begin on this page, or None."""
    try:
        status = (await asyncio.to_thread(request, url, url)).status
    except (OSError, ValueError, http.client.HTTPException) as exc:
        return f"the page {url} does not answer: {type(exc).__name__}: {exc}"
    if status in _MISSING or status >= 500:
        return f"there is no page {url} (status {status}); name one that the application has"
    return None
