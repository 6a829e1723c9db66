"""A real run folder with a wait, a denial, a repeat and a secret in it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "replay"))


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from replay_histories import application, as_session

    folder = tmp_path_factory.mktemp("audit")

    async def make() -> None:
        world = application()
        world.change("n2", name="Approve \x1b[31m\u202eevil")
        session, ledger = as_session(folder, world)
        seen = await session.handle("snapshot", {})
        approve, evil, note, delete, _ = (f"@{seen['data']['snapshot_id']}:e{n}" for n in range(1, 6))
        for command, args in (
            ("click", {"ref": approve}),
            ("set-value", {"ref": note, "value": "call twelve"}),
            ("click", {"ref": delete}),
            ("click", {"ref": evil}),
            ("click", {"ref": "@snothere0:e1"}),
        ):
            await session.handle(command, {"timeout_ms": 0} | args)
        await session.handle("finish", {"outcome": "done", "message": "=HYPERLINK(1)"})
        ledger.seal()

    asyncio.run(make())
    return folder / "run"
