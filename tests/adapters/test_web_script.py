"""The files of the isolated world."""

from __future__ import annotations

from pathlib import Path

import deskcert.adapters.web.script as module
from deskcert.adapters.web.requests import causal_number


def test_the_files_of_the_world_ship_with_the_package() -> None:
    folder = Path(module.__file__).parent / "world"
    assert sorted(p.stem for p in folder.glob("*.js")) == sorted(module._ORDER)


def test_the_name_of_an_action_stands_inside_its_function() -> None:
    """After the closing brace it would comment out the wrapper, and the call would fail without a word."""
    lines = module.action_function(42).splitlines()
    assert lines[-2:] == ["//# sourceURL=deskcert://action/42", "}"]


def test_the_cause_is_found_along_asynchronous_parents() -> None:
    ours = {"callFrames": [{"url": "x"}, {"url": "deskcert://action/42"}]}
    assert causal_number({"stack": ours}) == 42
    assert causal_number({"stack": {"callFrames": [], "parent": {"callFrames": [], "parent": ours}}}) == 42
    assert causal_number({"stack": {"callFrames": [{"url": "http://a/deskcert://action/42"}]}}) is None
    assert causal_number({"type": "other"}) is None
