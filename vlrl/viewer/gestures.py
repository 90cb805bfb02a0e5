"""What an action did to a screen, as marks on the screenshot before it: read from the turn's info."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_POINTS = 64
"""Of a path; of a longer one every so many."""
MAX_TYPED = 120
"""Characters shown of a typed text."""

POINT = re.compile(r"(-?\d{1,6}),(-?\d{1,6})")
BOX = re.compile(r"(-?\d{1,6}),(-?\d{1,6}),(-?\d{1,6}),(-?\d{1,6})")
TIMES = {2: "double ", 3: "triple "}
WORDS = {
    "Move": "move",
    "ButtonDown": "press",
    "ButtonUp": "release",
    "Drag": "drag",
    "KeyDown": "hold",
    "KeyUp": "let go",
    "Wait": "wait",
    "LongPress": "long press",
    "Swipe": "swipe",
    "OpenApp": "open",
    "Answer": "answer",
}


@dataclass(frozen=True, slots=True)
class Gesture:
    """An action's marks and its name.

    Attributes:
        kind: "click", "path", "scroll", "press" or "" for one that is at no place.
        points: (x, y) in pixels of the screen, in the order of time.
        rings: of a click, one for each time it was done.
        towards: (dx, dy) of a scroll, a unit vector.
        words: what was done, such as "double click" or "scroll down 300"; "" if that is not known.
        typed: the text or keys that it gave.
        widget: what it met.
        box: (x, y, width, height) of that.
    """

    kind: str
    points: Sequence[tuple[float, float]]
    rings: int
    towards: tuple[float, float]
    words: str
    typed: str
    widget: str
    box: tuple[int, int, int, int] | None

    def arrow(self, size: float) -> tuple[str, str]:
        """(line, head) of a path or a scroll as SVG takes points.

        Args:
            size: of the head, in pixels of the screen; a scroll's arrow is five times as long.
        """
        points = list(self.points)
        x, y = points[-1]
        dx, dy = self.towards
        if self.kind == "scroll":
            x, y = x + 5 * size * dx, y + 5 * size * dy
            points.append((x, y))
        else:
            before = next((p for p in reversed(points) if p != (x, y)), (x - 1, y))
            length = math.dist(before, (x, y))
            dx, dy = (x - before[0]) / length, (y - before[1]) / length
        back = x - 1.5 * size * dx, y - 1.5 * size * dy
        head = (
            (x, y),
            (back[0] - 0.8 * size * dy, back[1] + 0.8 * size * dx),
            (back[0] + 0.8 * size * dy, back[1] - 0.8 * size * dx),
        )
        return _spelt([*points[:-1], back]), _spelt(head)


def read_gesture(info: Mapping[str, Any]) -> Gesture | None:
    """The gesture of a turn; None for one whose environment reports none.

    Args:
        info: of the turn. `point` is "x,y x,y" in pixels of the image before it; `gui_action` the repr of
            one of `vlrl.envs.gui.actions`, or of several with ";" between them; `widget` and `widget_box`
            what lay there. Any environment may give them; all that cannot be read is left out.
    """
    points = _points(str(info.get("point", "")))
    calls = _calls(str(info.get("gui_action", "")))
    name, fields = calls[0] if calls else ("", {})
    box = BOX.fullmatch(str(info.get("widget_box", "")))
    if not points and not name:
        return None
    kind, towards = "click" if points else "", (0.0, 0.0)
    if len(points) > 1:
        kind = "path"
    elif points and name == "Scroll" and len(calls) == 1:
        kind, towards = "scroll", _unit(fields)
    elif points and name in ("Move", "ButtonDown", "ButtonUp", "LongPress"):
        kind = "press"
    x0, y0, x1, y1 = map(int, box.groups()) if box else (0, 0, 0, 0)
    return Gesture(
        kind=kind,
        points=points,
        rings=_count(fields),
        towards=towards,
        words=", then ".join(_words(*call) for call in calls),
        typed=" ".join(filter(None, (_typed(given) for _, given in calls))),
        widget=str(info.get("widget", "")),
        box=(x0, y0, x1 - x0, y1 - y0) if box else None,
    )


def _spelt(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.5g},{y:.5g}" for x, y in points)


def _points(text: str) -> list[tuple[float, float]]:
    """Middles of the pixels."""
    found = [(int(x) + 0.5, int(y) + 0.5) for x, y in POINT.findall(text)]
    step = -(-len(found) // MAX_POINTS) or 1
    return [*found[:-1:step], *found[-1:]]


def _calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """(class, fields) of reprs such as Click(point=(3, 4), count=2); KeyUp(key='a'). Empty if it is none."""
    try:
        calls = [line.value for line in ast.parse(text).body if isinstance(line, ast.Expr)]
        return [
            (call.func.id, {str(k.arg): ast.literal_eval(k.value) for k in call.keywords})
            for call in calls
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        ]
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # cut off, or a stranger's
        return []


def _number(fields: Mapping[str, Any], name: str, otherwise: int = 0) -> int:
    value = fields.get(name, otherwise)
    return max(-(10**6), min(10**6, value)) if isinstance(value, int) else otherwise


def _several(fields: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    value = fields.get(name, ())
    return value if isinstance(value, tuple) else ()


def _count(fields: Mapping[str, Any]) -> int:
    return min(max(_number(fields, "count", 1), 1), 3)


def _unit(fields: Mapping[str, Any]) -> tuple[float, float]:
    dx, dy = _number(fields, "dx"), _number(fields, "dy")
    length = (dx * dx + dy * dy) ** 0.5
    return (dx / length, dy / length) if length else (0.0, 1.0)


def _words(name: str, fields: Mapping[str, Any]) -> str:
    held = "".join(f"{key}+" for key in _several(fields, "modifiers"))
    match name:
        case "Click":
            button = fields.get("button", "left")
            return f"{held}{'' if button == 'left' else f'{button} '}{TIMES.get(_count(fields), '')}click"
        case "Scroll":
            dx, dy = _unit(fields)
            way = ("right" if dx > 0 else "left") if abs(dx) > abs(dy) else ("down" if dy > 0 else "up")
            return f"scroll {way} {max(abs(_number(fields, 'dx')), abs(_number(fields, 'dy')))}"
        case "TypeText":
            return "type"
        case "Key":
            return "press"
        case "SystemButton":
            return str(fields.get("name", "")) + " button"
        case "Finish":
            return "says that it is done" if fields.get("success", True) else "says that it cannot be done"
    return held + WORDS.get(name, name)


def _typed(fields: Mapping[str, Any]) -> str:
    if keys := _several(fields, "keys"):
        return "+".join(map(str, keys))
    text = str(fields.get("text", fields.get("key", "")))
    return text if len(text) <= MAX_TYPED else f"{text[:MAX_TYPED]}…"
