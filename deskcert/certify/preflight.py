"""Asks the application about every page, fault and perturbation that a user's scenarios name, before the first run.

The schema knows their form; only the application knows the words. A wrong one is the user's to put right (exit 2), and
would otherwise come out as trouble of the harness in the middle of a campaign.
"""

from __future__ import annotations

import difflib
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from deskcert.certify.desktop import DesktopApplication
from deskcert.certify.documents import shown
from deskcert.certify.fixture import Application, NotUnderstood
from deskcert.certify.own_preflight import done_already, page_problem, try_own
from deskcert.certify.scenario import Scenario
from deskcert.certify.suite import Suite
from deskcert_schema.errors import ConfigError
from deskcert_schema.vocabulary import Expected

__all__ = ["preflight"]


async def preflight(suite: Suite, *, token: str, weighing: bool = False) -> None:
    """Raises `ConfigError` with file and line. Built-in suites are not asked about: they come with the application."""
    if suite.app is not None:
        await try_own(suite.app, suite.scenarios, suite.secrets, token=token, https=suite.https, weighing=weighing)
        return
    own = [s for s in suite.scenarios if not s.builtin]
    if not own:
        return
    with tempfile.TemporaryDirectory(prefix="deskcert-") as folder:
        start = DesktopApplication.start if suite.desktop else Application.start
        application: Application | DesktopApplication = await start(Path(folder), token=token)
        try:
            kinds = await application.effect_kinds()
            problems = [p for scenario in own async for p in _problems(application, scenario, kinds, token, weighing)]
        finally:
            await application.close()
    if problems:
        raise ConfigError(problems)


async def _problems(
    application: Application | DesktopApplication, scenario: Scenario, kinds: Sequence[str], token: str, weighing: bool
) -> AsyncIterator[str]:
    name = shown(scenario.path)
    try:
        url = await application.prepare(scenario.start, seed=0)
    except NotUnderstood as exc:
        yield f"{name}:{scenario.start_line}: start: {exc}"
    else:
        if isinstance(application, Application) and (why := await page_problem(url)) is not None:
            yield f"{name}:{scenario.start_line}: start: {why}"
    for line, item in zip(scenario.oracle_lines, scenario.oracle, strict=True):
        wanted = item.get("effect") or item.get("no_effect") or {}
        if wanted and wanted["kind"] not in kinds:
            near = difflib.get_close_matches(wanted["kind"], kinds, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(kinds)}"
            yield f"{name}:{line}: oracle: the application has no effect of the kind {wanted['kind']!r}; {hint}"
    complete = scenario.expected == Expected.COMPLETE and not weighing
    if complete or any("sql" in item for item in scenario.oracle):
        told = await application.ask(scenario.oracle, token=token)
        for line, item, answer in zip(scenario.oracle_lines, scenario.oracle, told.answers, strict=True):
            if "sql" in item and answer.holds is None:
                yield f"{name}:{line}: oracle: this question has no answer: {answer.observed['unknown']}"
        for sentence in () if weighing else done_already(scenario, told.answers):
            yield sentence
    for perturbation in scenario.perturb:
        try:
            # There is no page yet, so nothing is applied; what it does not know it says all the same.
            await application.perturb(perturbation.do, perturbation.args)
        except NotUnderstood as exc:
            yield f"{name}:{perturbation.line}: perturb: {exc}"
