"""`deskcert doctor` on the display: Wayland's limits are stated before a run, not discovered in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskcert.cli.doctor import State, examine


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"XDG_SESSION_TYPE": "wayland"}, State.OPTIONAL),
        ({"WAYLAND_DISPLAY": "wayland-0"}, State.OPTIONAL),
        ({"DISPLAY": ":0", "XDG_SESSION_TYPE": "x11"}, State.GOOD),
    ],
)
def test_a_wayland_session_is_said_not_to_be_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], state: State
) -> None:
    for name in ("XDG_SESSION_TYPE", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (found,) = [f for f in examine(tmp_path) if f.name == "display"]
    assert found.state is state
    assert "Wayland session" in found.said
    assert "not supported" in found.said
    assert "X11" in found.said
