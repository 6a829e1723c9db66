"""For `mitmdump -s .../deskcert_proxy/script.py`, with `DESKCERT_POLICY` and `DESKCERT_LEDGER` in the environment."""

from __future__ import annotations

import os
from pathlib import Path

from deskcert_proxy.addon import SecondLine
from deskcert_proxy.alone import open_alone
from deskcert_proxy.replay import Replayer
from deskcert_schema.errors import DeskcertError, UsageError

__all__ = ["addons"]


class _Sealing:
    """Last: when mitmdump ends, the ledger is ended and sealed."""

    def __init__(self, finish: object) -> None:
        self._finish = finish

    def done(self) -> None:
        assert callable(self._finish)
        self._finish("mitmdump ended")


def _open() -> list[SecondLine | Replayer | _Sealing]:
    policy, ledger = os.environ.get("DESKCERT_POLICY"), os.environ.get("DESKCERT_LEDGER")
    if not policy or not ledger:
        raise UsageError("set DESKCERT_POLICY to a policy file and DESKCERT_LEDGER to a folder that does not exist yet")
    alone = open_alone(Path(policy), Path(ledger), base=Path.cwd())
    return [alone.addon, _Sealing(alone.finish)]


try:
    addons = _open()
except DeskcertError as error:
    # A script that only raises is left out by mitmdump, which then would forward everything.
    raise SystemExit(f"deskcert: {error}") from error
