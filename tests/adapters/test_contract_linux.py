"""The adapter contract on a real desktop: a Qt window under Xvfb, over AT-SPI."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from contract import AdapterContract
from desktop_rig import Desktop
from linux_stage import LinuxStage


class TestLinux(AdapterContract):
    @pytest_asyncio.fixture
    async def stage(self, desktop: Desktop) -> AsyncIterator[LinuxStage]:
        opened = await LinuxStage.open(desktop)
        yield opened
        await opened.close()
