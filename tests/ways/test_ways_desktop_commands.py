"""Which commands an agent is told of: those of a desktop only where there is one."""

from __future__ import annotations

from deskcert.session.commands import COMMANDS
from deskcert.ways.desktop_arguments import DESKTOP_COMMANDS
from deskcert.ways.opening import offered


def test_an_agent_on_a_page_is_not_told_of_windows_and_one_on_a_desktop_is() -> None:
    assert set(offered(desktop=True)) == set(COMMANDS)
    assert set(COMMANDS) - set(offered()) == set(DESKTOP_COMMANDS) > {"launch", "move-window", "clipboard-get"}
    assert "list-surfaces" in offered()
