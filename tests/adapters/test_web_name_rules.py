"""Roles, names and states of everything that can be acted on, against Chromium's own accessibility tree: a page for
each rule, and every page of the application under test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chromium_tree import INTERACTIVE, both_trees, differences
from name_rules import NAMES, ROLES, STATES
from web_pages import Witness, nowhere, show

from deskcert.adapters.base import ObserveOptions
from deskcert.adapters.web.adapter import WebAdapter
from deskcert.certify.fixture import Application

pytestmark = [pytest.mark.web, pytest.mark.asyncio(loop_scope="module")]


CHOSEN = {
    "2A inert says nothing": ["only ours has Seen(role='button', name='A', states=('disabled',))"],
    "2B a reference to a field": ["name='typed', states=()), ours Seen(role='button', name='L'"],
    "2F capitals of the style are capitals": ["name='SMALL', states=()), ours Seen(role='button', name='small'"],
    "required parents are not asked": ["ours Seen(role='option', name='A'", "ours Seen(role='treeitem', name='D'"],
}
"""What we do otherwise, on purpose: docs/web.md says why."""

PAGES = (
    *("/overview", "/orders", "/orders/1001", "/customers", "/customers/1", "/payouts", "/payouts/501", "/messages"),
    *("/messages/301", "/notes", "/files", "/settings", "/lab/names", "/lab/plain-names", "/stock", "/courier"),
    *("/courier/desk/1001", "/orders/1001/slip", "/outbox", "/dispatch", "/missing"),
)


@pytest.mark.parametrize(("rule", "body"), [*NAMES.items(), *ROLES.items(), *STATES.items()], ids=lambda v: v[:60])
async def test_as_chromium_has_it(adapter: WebAdapter, witness: Witness, rule: str, body: str) -> None:
    seen = await show(adapter, witness, body)
    found = differences(*await both_trees(adapter, seen.nodes))
    chosen = CHOSEN.get(rule, [])
    assert len(found) == len(chosen), found
    assert all(text in line for text, line in zip(chosen, found, strict=True)), found


async def test_every_page_of_the_application_as_chromium_has_it(adapter: WebAdapter, tmp_path: Path) -> None:
    application = await Application.start(tmp_path, token="test")
    compared = 0
    try:
        for path in PAGES:
            start = {"page": path, "seed": {"orders": 12}, "faults": []}
            url = await application.prepare(start, seed=1)
            came = await adapter.navigate(url, number=0, budget_ms=10_000, at=nowhere)
            assert came.status == (404 if path == "/missing" else 200), path
            found: list[str] = []
            for _ in range(20):  # a page that is still coming alive is looked at again
                seen = await adapter.observe(ObserveOptions())
                chromium, ours, what = await both_trees(adapter, seen.nodes)
                found = differences(chromium, ours, what)
                if not found:
                    break
                await asyncio.sleep(0.05)
            assert (found, seen.complete) == ([], True), path
            compared += sum(node.role in INTERACTIVE for node in ours.values())
    finally:
        await application.close()
    assert compared > 400
