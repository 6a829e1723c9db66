"""One proxy, origin and ledger for a module of tests; each test looks at what is new."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from proxy_rig import POLICY, Origin, Reply, make_ledger, net_records, request_bytes, send_raw

from deskcert_ledger import RunLedger
from deskcert_proxy.supervisor import ProxyRun


@dataclass
class Line:
    folder: Path
    ledger: RunLedger
    origin: Origin
    proxy: ProxyRun

    def send(self, method: str, path: str, body: bytes = b"", *headers: tuple[str, str]) -> Reply:
        url = path if path.startswith("http") else self.origin.url + path
        return self.raw(request_bytes(method, url, body, list(headers)))

    def raw(self, data: bytes) -> Reply:
        return send_raw(self.proxy.port, data)

    def records(self, *kinds: str) -> list[dict]:
        return net_records(self.folder, *kinds)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Line]:
    folder = tmp_path_factory.mktemp("line")
    ledger, origin = make_ledger(folder), Origin()
    proxy = await ProxyRun.start(ledger, POLICY, folder=folder / "proxy", insecure=True)
    yield Line(folder, ledger, origin, proxy)
    await proxy.stop()
    origin.close()
    ledger.seal()
