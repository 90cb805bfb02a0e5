"""Qwen2.5-VL's and Qwen3-VL's computer_use: one function, called in <tool_call> tags.

Names of the actions and their arguments, and the enums: QwenLM/Qwen3-VL,
cookbooks/utils/agent_function_call.py, class ComputerUse (facts; the descriptions are ours). Coordinates:
Qwen2.5-VL writes pixels of the image as it was given to it, Qwen3-VL 0 to 1000 of each side; its prompt
names a screen of 1000x1000 (xlang-ai/OSWorld mm_agents/qwen3vl_agent.py).

A drag starts where the pointer is. So does a scroll without `coordinate`, and so is a click without one, as
OSWorld's agents do it. `pixels` scrolls up where it is positive; `hscroll` to the right.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.actions import Action, Button, Click, Drag, Key, Move, Pixel, Scroll
from vlrl.envs.gui.codecs.grammar.frames import Grid
from vlrl.envs.gui.codecs.grammar.keys import written_keys
from vlrl.envs.gui.codecs.grammar.parsed_call import MAX_SCROLL_PX, ParsedAction
from vlrl.envs.gui.codecs.qwen import QwenCodec, action_of, of_type, one_of, parameters

_CLICKS: Mapping[str, tuple[Button, int]] = {
    "left_click": ("left", 1),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
    "double_click": ("left", 2),
    "triple_click": ("left", 3),
}
_ACTIONS = {
    "key": "press the keys in `keys` one after the other, then release them in the opposite order",
    "type": "type `text` on the keyboard",
    "mouse_move": "move the pointer to `coordinate`",
    "left_click": "click the left button at `coordinate`",
    "left_click_drag": "drag with the left button from where the pointer is to `coordinate`",
    "right_click": "click the right button at `coordinate`",
    "middle_click": "click the middle button at `coordinate`",
    "double_click": "click the left button twice at `coordinate`",
    "triple_click": "click the left button three times at `coordinate`",
    "scroll": "turn the wheel by `pixels`, upwards if positive",
    "hscroll": "turn the wheel sideways by `pixels`, to the right if positive",
    "wait": "wait `time` seconds for the screen to change",
    "terminate": "end the task and say its `status`",
    "answer": "answer a question with `text`",
}
_PARAMETERS = parameters(
    action=action_of(_ACTIONS),
    keys=of_type("array", "Needed by `action=key` only."),
    text=of_type("string", "Needed by `action=type` and `action=answer` only."),
    coordinate=of_type("array", "(x, y): where, from the left edge and from the top edge."),
    pixels=of_type("number", "How far; up is positive. Needed by `action=scroll` and `action=hscroll`."),
    time=of_type("number", "Seconds to wait. Needed by `action=wait` only."),
    status=one_of("How the task ended. Needed by `action=terminate` only.", "success", "failure"),
)


class QwenComputerCodec(QwenCodec):
    """computer_use in <tool_call> tags."""

    function = "computer_use"
    description = (
        "Use a mouse and a keyboard to work with a computer, and see its screen.\n"
        "* This is a desktop with windows; programs are started by their icons and menus.\n"
        "* Programs may need time to start or to react; wait and look again.\n"
        "* The screen's resolution is {screen}.\n"
        "* Find an element on the screenshot first, and click its middle, not its edge."
    )

    def _schema(self) -> dict[str, Any]:
        return _PARAMETERS

    def _action(self, said: ParsedAction, grid: Grid) -> Action | None:
        place = said.point("coordinate", grid) if said.has("coordinate") else None
        match said.name:
            case name if name in _CLICKS:
                return Click(place, *_CLICKS[name])
            case "mouse_move":
                return Move(said.point("coordinate", grid))
            case "left_click_drag":
                return Drag((grid.view.pointer, said.point("coordinate", grid)))
            case "key":
                return Key(said.chord("keys", "text"))
            case "scroll":
                return Scroll(0, -round(said.number("pixels", -MAX_SCROLL_PX, MAX_SCROLL_PX)), place)
            case "hscroll":
                return Scroll(round(said.number("pixels", -MAX_SCROLL_PX, MAX_SCROLL_PX)), 0, place)
        return None

    def _arguments(self, action: Action, grid: Grid) -> dict[str, Any] | None:
        def at(point: Pixel | None) -> dict[str, Any]:
            return {} if point is None else {"coordinate": list(grid.written(point))}

        match action:
            case Click(point=point, button=button, count=count, modifiers=()):
                name = next((name for name, click in _CLICKS.items() if click == (button, count)), None)
                return {"action": name, **at(point)} if name else None
            case Move(point=point):
                return {"action": "mouse_move", **at(point)}
            case Drag(path=(start, end), button="left", modifiers=()) if grid.is_pointer(start):
                return {"action": "left_click_drag", **at(end)}
            case Scroll(dx=0, dy=dy, point=point):
                return {"action": "scroll", **at(None if grid.is_pointer(point) else point), "pixels": -dy}
            case Scroll(dx=dx, dy=0, point=point):
                return {"action": "hscroll", **at(None if grid.is_pointer(point) else point), "pixels": dx}
            case Key(keys=keys):
                return {"action": "key", "keys": written_keys(keys, "pyautogui")}
        return None
