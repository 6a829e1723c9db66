"""The script of our isolated world: the files of `world/`, joined once; at load each uses only earlier ones."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["BINDING", "WORLD", "action_function", "call_function", "world_script"]

WORLD: Final = "deskcert"
BINDING: Final = "deskcert_reached"
"""A function in our world only. What is told through it arrives at once, even while a handler still runs."""

_ORDER: Final = (
    "dom",
    "sheets",
    "ids",
    "roles",
    "names",
    "texts",
    "states",
    "context",
    "paths",
    "hits",
    "evidence",
    "act",
    "physical",
    "pointer",
    "editing",
    "keys",
    "drag",
    "walker",
    "world",
)


_NO_WORLD: Final = """JSON.stringify({ end: "not_sent", error: "our script is not in this document" })"""


@cache
def world_script() -> str:
    folder = files("deskcert.adapters.web") / "world"
    parts = [(folder / f"{name}.js").read_text("utf-8") for name in _ORDER]
    # A document can get the script twice (once for new documents, once at once): the first copy stays.
    body = "\n".join(parts)
    return f'"use strict";\nif (!globalThis.deskcert) {{ (() => {{\n{body}\n}})(); }}\n//# sourceURL=deskcert://world'


def call_function(name: str) -> str:
    return f"function(...args) {{ return globalThis.deskcert.{name}(...args);\n//# sourceURL=deskcert://look\n}}"


def action_function(number: int) -> str:
    """The name of the source stands in the initiator stack of every request that the action causes. It must stand
    inside the braces: after them it would comment out the wrapper's closing parenthesis."""
    return (
        f"function(id, request) {{ const world = globalThis.deskcert;\n"
        f"return world ? world.perform(id, request) : {_NO_WORLD};\n"
        f"//# sourceURL=deskcert://action/{number}\n}}"
    )
