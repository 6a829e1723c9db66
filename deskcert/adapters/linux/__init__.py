"""Linux desktops, over AT-SPI. Needs the extra `desktop`; nothing heavy is imported before an adapter is opened."""

from __future__ import annotations

from deskcert.adapters.linux.adapter import LinuxAdapter
from deskcert.adapters.linux.application import AppSelector

__all__ = ["AppSelector", "LinuxAdapter"]
