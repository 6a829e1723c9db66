"""One proxy, origin and ledger for a module of tests; each test looks at what is new."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from proxy_rig import POLICY, Line, Origin, make_ledger

from deskcert_proxy.supervisor import ProxyRun


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Line]:
    folder = tmp_path_factory.mktemp("line")
    ledger, origin = make_ledger(folder), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=folder / "proxy", insecure=True)
    yield Line(folder, ledger, origin, proxy)
    await proxy.stop()
    origin.close()
    ledger.seal()
