"""The widgets of a desktop, as its apps tell them over AT-SPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vlrl.envs.gui.screen import Element, PixelBox
from vlrl.envs.gui.x11.accessibility.dbus import Bus, BusCall

_REGISTRY = ("org.a11y.atspi.Registry", "/org/a11y/atspi/accessible/root")
_ATSPI = "org.a11y.atspi"
_ACCESSIBLE, _PROPERTIES = f"{_ATSPI}.Accessible", "org.freedesktop.DBus.Properties"
_MOST_WIDGETS, _MOST_CHILDREN, _MOST_DEPTH = 3000, 500, 40
"""A table of a spreadsheet has 2³⁴ cells, each a child."""
_MOST_TEXT = 200
# AtspiRole of at-spi2-core's atspi-constants.h → ARIA's word; what only holds others is left out.
_ROLES = {
    **{2: "alert", 7: "checkbox", 8: "menuitemcheckbox", 10: "columnheader", 11: "combobox", 16: "dialog"},
    **{19: "dialog", 26: "img", 27: "img", 29: "label", 31: "list", 32: "option", 33: "menuitem"},
    **{35: "menuitem", 37: "tab", 40: "textbox", 42: "progressbar", 43: "button", 44: "radio"},
    **{45: "menuitemradio", 48: "scrollbar", 51: "slider", 52: "spinbutton", 56: "cell", 57: "columnheader"},
    **{60: "textbox", 61: "textbox", 62: "button", 65: "tree", 66: "treegrid", 69: "window", 23: "window"},
    **{73: "paragraph", 79: "textbox", 83: "heading", 88: "link", 91: "treeitem", 129: "button"},
}
_STATES = {4: "checked", 10: "expanded", 12: "focused", 23: "selected"}
_SENSITIVE, _SHOWING = 24, 25
_MENUS = (33, 41)
_HOLDERS_OF_WINDOWS = (14, 75)
"""The desktop and an app, which are nowhere on the screen."""


class _Node(NamedTuple):
    address: tuple[str, str]
    holders: tuple[_Node, ...]
    name: str
    role: int
    states: int
    box: PixelBox | None


def widgets(bus: Bus, size: tuple[int, int]) -> dict[str, list[Element]]:
    """What every app shows, by the title of its window, each list in the order of drawing.

    Args:
        bus: of the desktop.
        size: (width, height) of the screen.

    Raises:
        BusError: if the apps do not answer.
    """
    nodes = [node for node in _tree(bus, size) if node.role in _ROLES and node.states >> _SHOWING & 1]
    nodes.sort(
        key=lambda node: sum(one.role in _MENUS for one in node.holders)
    )  # open menus lie over the rest
    texts = [node for node in nodes if _ROLES[node.role] == "textbox"]
    said = bus.ask([_call(node.address, "Text", "GetText", "ii", 0, _MOST_TEXT) for node in texts])
    values = {node.address: reply[0] for node, reply in zip(texts, said, strict=True) if reply}
    found: dict[str, list[Element]] = {}
    for node in nodes:
        if node.box:
            states = {word for bit, word in _STATES.items() if node.states >> bit & 1}
            states |= set() if node.states >> _SENSITIVE & 1 else {"disabled"}
            path = tuple(one.name for one in node.holders if one.name)
            value = values.get(node.address, "")
            element = Element(_ROLES[node.role], node.name.strip(), node.box, value, frozenset(states), path)
            found.setdefault(_window_of(node), []).append(element)
    return found


def _tree(bus: Bus, size: tuple[int, int]) -> list[_Node]:
    """All that is shown, level by level: an app is asked for a whole level at once."""
    level: list[tuple[tuple[str, str], tuple[_Node, ...]]] = [(_REGISTRY, ())]
    found: list[_Node] = []
    while level and len(found) < _MOST_WIDGETS:
        replies = bus.ask([call for address, _ in level for call in _questions(address)])
        nodes, counts = list[_Node](), list[int]()
        for (address, holders), at in zip(level, range(0, len(replies), 5), strict=True):
            name, count, role, states, extents = (
                reply[0] if reply else None for reply in replies[at : at + 5]
            )
            if name is not None and count is not None and role is not None and states is not None:
                box = _box(extents, size) if extents else None
                nodes.append(_Node(address, holders, name, role, states[0] | states[1] << 32, box))
                counts.append(count)
        found += nodes
        opened = [
            n for n, count in zip(nodes, counts, strict=True) if _opens(n) and 0 < count <= _MOST_CHILDREN
        ]
        children = bus.ask([_call(node.address, "Accessible", "GetChildren") for node in opened])
        level = [
            ((child[0], child[1]), (*node.holders, node))
            for node, reply in zip(opened, children, strict=True)
            for child in (reply[0] if reply and len(node.holders) < _MOST_DEPTH else [])
        ]
    return found


def _questions(address: tuple[str, str]) -> list[BusCall]:
    return [
        *(
            BusCall(*address, _PROPERTIES, "Get", "ss", (_ACCESSIBLE, name))
            for name in ("Name", "ChildCount")
        ),
        *(_call(address, "Accessible", member) for member in ("GetRole", "GetState")),
        _call(address, "Component", "GetExtents", "u", 0),
    ]


def _opens(node: _Node) -> bool:
    return node.role in _HOLDERS_OF_WINDOWS or bool(node.states >> _SHOWING & 1)


def _call(
    address: tuple[str, str], interface: str, member: str, signature: str = "", *arguments: int
) -> BusCall:
    return BusCall(*address, f"{_ATSPI}.{interface}", member, signature, arguments)


def _window_of(node: _Node) -> str:
    line = (*node.holders, node)
    return next((one.name for one in line if _ROLES.get(one.role) in ("window", "dialog", "alert")), "")


def _box(extents: Sequence[int], size: tuple[int, int]) -> PixelBox | None:
    """Its part on the screen; None if there is none."""
    x, y, width, height = extents
    x0, y0, x1, y1 = max(x, 0), max(y, 0), min(x + width, size[0]), min(y + height, size[1])
    return (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None
