"""BrowserGym's accessibility tree as a list of what can be seen or used, in the order of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SKIPPED = frozenset({"none", "generic", "InlineTextBox", "LineBreak", "RootWebArea", "MenuListPopup"})
"""Chromium's roles that say nothing of their own."""
RENAMED = {"StaticText": "text", "image": "img", "SvgRoot": "img", "Canvas": "img", "LabelText": "label"}
"""Chromium's role → the word that ARIA, and gui/web, have for it."""
STATES = ("focused", "checked", "selected", "expanded", "disabled")


class Tree:
    """One tree, walked once."""

    def __init__(self, tree: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Take `axtree_object` and `extra_element_properties` of an observation."""
        self._nodes = {node["nodeId"]: node for node in tree["nodes"]}
        self._properties = properties
        self.found: list[dict[str, Any]] = []
        if tree["nodes"]:
            self._walk(tree["nodes"][0], [], None, "")

    def _walk(
        self, node: Mapping[str, Any], path: Sequence[str], place: Mapping[str, Any] | None, around: str
    ) -> None:
        own = self._properties.get(node.get("browsergym_id", ""))
        place = own or place  # a text has the place of what it stands in
        role, name = _text(node, "role"), " ".join(_text(node, "name").split())
        if role in SKIPPED and own and own["set_of_marks"]:
            role, name = "button", name or self._text_in(node)  # what a page lets people click
        is_said = role == "StaticText" and name in around
        if role and role not in SKIPPED and not node.get("ignored") and place and not is_said:
            self.found.append(_element(node, RENAMED.get(role, role.lower()), name, place, path))
            path, around = [*path, name or role], name
        for child in self._children(node):
            self._walk(child, path, place, around)

    def _children(self, node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Those that the tree has; Chromium names a few that it leaves out."""
        return [self._nodes[i] for i in node.get("childIds", ()) if i in self._nodes and i != node["nodeId"]]

    def _text_in(self, node: Mapping[str, Any]) -> str:
        if _text(node, "role") == "StaticText":
            return _text(node, "name")
        return " ".join(filter(None, map(self._text_in, self._children(node))))


def _element(
    node: Mapping[str, Any], role: str, name: str, place: Mapping[str, Any], path: Sequence[str]
) -> dict[str, Any]:
    left, top, width, height = place["bbox"] or (0, 0, 0, 0)
    seen = place["visibility"] or 0.0
    said = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
    states = [state for state in STATES if said.get(state) in (True, "true")]
    if not (width and height and seen):
        states.append("hidden")
    elif seen < 1:
        states.append("clipped")
    box = [round(left), round(top), round(left + width), round(top + height)]
    return {
        "role": role,
        "name": name,
        "value": _text(node, "value"),
        "states": states,
        "box": box,
        "path": list(path),
    }


def _text(node: Mapping[str, Any], key: str) -> str:
    value = node.get(key, {}).get("value")
    return "" if value is None else str(value)
