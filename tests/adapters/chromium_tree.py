"""Chromium's own accessibility tree beside our walk, node by node.

Every element that our walk gave an id is marked with it, so that one reading of the document tells which of Chromium's
nodes it is. Only the nodes of the page's own document and its shadow roots are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from deskcert.adapters.base import RawNode
from deskcert.adapters.web.adapter import WebAdapter

SAME_WORD = {
    "DisclosureTriangle": "button",
    "DisclosureTriangleGrouped": "button",
    "image": "img",
    "Date": "textbox",
    "DateTime": "textbox",
    "InputTime": "textbox",
    "ColorWell": "textbox",
    "LabelText": "label",
    "Legend": "legend",
    "ComboBoxSelect": "combobox",
    "ComboBoxMenuButton": "combobox",
    "TextFieldWithComboBox": "combobox",
    "ListBox": "listbox",
    "Iframe": "iframe",
    "PopUpButton": "combobox",
    "ToggleButton": "button",
    "SvgRoot": "img",
    "FigureCaption": "caption",
}
"""Chromium's words for what ARIA calls otherwise (docs/web.md)."""
INTERACTIVE = frozenset(
    (
        *(
            "button",
            "checkbox",
            "combobox",
            "link",
            "listbox",
            "menuitem",
            "menuitemcheckbox",
            "menuitemradio",
            "option",
        ),
        *("radio", "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem", "scrollbar"),
    )
)
STATES = ("checked", "disabled", "expanded", "focused", "pressed", "readonly", "required", "selected")


@dataclass(frozen=True, slots=True)
class Seen:
    role: str
    name: str
    states: tuple[str, ...]


def _elements(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for key in ("children", "shadowRoots"):
        for child in node.get(key, ()):
            if child.get("shadowRootType") != "user-agent":  # how the browser makes a control is its own affair
                yield from _elements(child)


def _attributes(node: dict[str, Any]) -> dict[str, str]:
    found: list[str] = node.get("attributes", [])
    return dict(zip(found[::2], found[1::2], strict=True))


async def both_trees(
    adapter: WebAdapter, nodes: tuple[RawNode, ...]
) -> tuple[dict[str, Seen], dict[str, Seen], dict[str, str]]:
    """(Chromium's, ours, what the elements are), by our ids; nodes of Chromium's alone have one that begins with
    a question mark."""
    own = [n for n in nodes if "node" in n and "@" not in n["node"]]
    ids = json.dumps([n["node"] for n in own])
    main = adapter._frames.main
    mark = f"for (const id of {ids}) deskcert.node(id)?.setAttribute('data-our', id)"
    await adapter._channel.call("Runtime.evaluate", {"expression": mark, "contextId": main.context}, budget_ms=5_000)
    document = await adapter._channel.call("DOM.getDocument", {"depth": -1, "pierce": True}, budget_ms=10_000)
    tree = await adapter._channel.call("Accessibility.getFullAXTree", budget_ms=30_000)
    elements = {n["backendNodeId"]: n for n in _elements(document["root"])}
    chromium, what = {}, {}
    for node in tree["nodes"]:
        element = elements.get(node.get("backendDOMNodeId", -1))
        if node.get("ignored") or element is None or element["nodeType"] != 1:
            continue
        attributes = _attributes(element)
        key = attributes.get("data-our", f"?{element['backendNodeId']}")
        what[key] = element["localName"] + "#" + attributes.get("id", "")
        if (found := _chromium(node, attributes, element["localName"])) is not None:
            chromium[key] = found
    ours = {n["node"]: Seen(n["role"], " ".join(str(n.get("name", "")).split()), _ours(n)) for n in own}
    return chromium, ours, what


def _chromium(node: dict[str, Any], attributes: dict[str, str], tag: str) -> Seen | None:
    """None for an option of a native list, which is a value of its list here."""
    role = str(node["role"]["value"])
    if tag == "option" and "role" not in attributes:
        return None
    properties = {p["name"]: p["value"].get("value") for p in node.get("properties", ())}
    states = []
    for state in STATES:
        value = properties.get(state)
        if value is True or value == "true":
            states.append(state)
        elif value == "mixed":
            states.append("indeterminate" if state == "checked" else "pressed=mixed")
        elif state == "expanded" and value is False and tag != "select":  # a native list is chosen from, never opened
            states.append("collapsed")
    if tag == "select" and "required" in attributes:
        states.append("required")  # Chromium does not tell
    name = " ".join(str(node.get("name", {}).get("value", "")).split())
    return Seen(SAME_WORD.get(role, role), name, tuple(sorted(states)))


def _ours(node: RawNode) -> tuple[str, ...]:
    kept = {*STATES, "collapsed", "indeterminate"}
    return tuple(sorted(s for s in node.get("states", ()) if s in kept))


def differences(chromium: dict[str, Seen], ours: dict[str, Seen], what: dict[str, str]) -> list[str]:
    """Of interactive nodes: in role, name and states, and what only one of the two has."""
    found = []
    for key, truth in chromium.items():
        mine = ours.get(key)
        if truth.role in INTERACTIVE and mine is None:
            found.append(f"{what[key]}: only Chromium has {truth}")
        elif mine is not None and (truth.role in INTERACTIVE or mine.role in INTERACTIVE) and mine != truth:
            found.append(f"{what[key]}: Chromium {truth}, ours {mine}")
    native = {key for key, mine in ours.items() if mine.role == "option" and key not in chromium}
    alone = {k: mine for k, mine in ours.items() if k not in chromium and k not in native and mine.role in INTERACTIVE}
    found += [f"{key}: only ours has {mine}" for key, mine in alone.items()]
    return found
