"""One browser, or one private desktop, for a module of tests; a fresh context, or a fresh program, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from desktop_rig import Desktop, missing
from web_pages import Witness

from deskcert.adapters.web.adapter import WebAdapter
from deskcert.adapters.web.browser import WebBrowser


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[WebBrowser]:
    started = await WebBrowser.launch()
    yield started
    await started.close()


@pytest_asyncio.fixture(loop_scope="module")
async def adapter(browser: WebBrowser) -> AsyncIterator[WebAdapter]:
    opened = await browser.open()
    yield opened
    await opened.close()


@pytest.fixture
def witness() -> Iterator[Witness]:
    server = Witness()
    yield server
    server.close()


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    if lacking := missing():
        pytest.skip(f"a desktop needs {', '.join(lacking)}: see .ci/run")
    with Desktop() as started:
        yield started
