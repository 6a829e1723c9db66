"""Asks the application about every page, fault and perturbation that a user's scenarios name, before the first run.

The schema knows their form; only the application knows the words. A wrong one is the user's to put right (exit 2), and
would otherwise come out as trouble of the harness in the middle of a campaign.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from deskcert.certify.documents import shown
from deskcert.certify.fixture import Application, NotUnderstood
from deskcert.certify.scenario import Scenario
from deskcert.certify.suite import Suite
from deskcert_schema.errors import ConfigError

__all__ = ["preflight"]


async def preflight(suite: Suite, *, token: str) -> None:
    """Raises `ConfigError` with file and line. Built-in suites are not asked about: they come with the application."""
    own = [s for s in suite.scenarios if not s.builtin]
    if not own:
        return
    with tempfile.TemporaryDirectory(prefix="deskcert-") as folder:
        application = await Application.start(Path(folder), token=token)
        try:
            problems = [p for scenario in own async for p in _problems(application, scenario)]
        finally:
            await application.close()
    if problems:
        raise ConfigError(problems)


async def _problems(application: Application, scenario: Scenario) -> AsyncIterator[str]:
    name = shown(scenario.path)
    try:
        await application.prepare(scenario.start, seed=0)
    except NotUnderstood as exc:
        yield f"{name}:{scenario.start_line}: start: {exc}"
    for perturbation in scenario.perturb:
        try:
            # There is no page yet, so nothing is applied; what it does not know it says all the same.
            await application.perturb(perturbation.do, perturbation.args)
        except NotUnderstood as exc:
            yield f"{name}:{perturbation.line}: perturb: {exc}"
