"""Several actions in one message, in each grammar's own form."""

from __future__ import annotations

from typing import Any

import pytest

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Click, Drag, Key, Move, TypeText, Wait
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.several import read_several
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.errors import ConfigError

VIEW = View(Canvas((480, 640), (480, 640)), (0, 0))
TOOL = '<tool_call>{"name": "computer_use", "arguments": %s}</tool_call>'
PHONE = '<tool_call>{"name": "mobile_use", "arguments": %s}</tool_call>'
CLICK_AND_TYPE = {
    "plain": "<think>x</think><action>click 30 40</action>\n<action>type hello</action>",
    "uitars": "Thought: t\nAction: click(start_box='(47,83)')\n\ntype(content='hello')",
    "uitars_1_5": "Action: click(point='<point>30 40</point>')\n\ntype(content='hello')",
    "gui_r1": "<answer>[{'action': 'click', 'point': [30, 40], 'input_text': 'no input text'}, "
    "{'action': 'type', 'point': [-100, -100], 'input_text': 'hello'}]</answer>",
    "osworld_pyautogui": "import pyautogui\npyautogui.click(30, 40)\npyautogui.write('hello')",
    "computer_13": '[{"action_type": "CLICK", "x": 30, "y": 40}, {"action_type": "TYPING", "text": "hello"}]',
    "androidworld": 'Action: [{"action_type": "click", "x": 30, "y": 40}, '
    '{"action_type": "input_text", "text": "hello"}]',
    "browsergym": "```\nmouse_click(30, 40)\nkeyboard_type('hello')\n```",
    "miniwob": '[{"action_type": "CLICK_COORDS", "coords": [30, 40]}, '
    '{"action_type": "TYPE_TEXT", "text": "hello"}]',
    "qwen2_5_computer_use": TOOL % '{"action": "left_click", "coordinate": [30, 40]}'
    + "\n"
    + TOOL % '{"action": "type", "text": "hello"}',
    "qwen3_computer_use": TOOL % '{"action": "left_click", "coordinate": [47, 84]}'
    + TOOL % '{"action": "type", "text": "hello"}',
    "qwen2_5_mobile_use": PHONE % '{"action": "click", "coordinate": [30, 40]}'
    + PHONE % '{"action": "type", "text": "hello"}',
    "qwen3_mobile_use": PHONE % '{"action": "click", "coordinate": [47, 84]}'
    + PHONE % '{"action": "type", "text": "hello"}',
}


def test_every_grammar_has_an_example() -> None:
    assert CLICK_AND_TYPE.keys() == CODECS.keys()


@pytest.mark.parametrize("name", CODECS)
def test_two_actions_are_read_in_their_order(name: str) -> None:
    codec = open_codec(name, "strict")
    first, second = (reading.action for reading in read_several(codec, CLICK_AND_TYPE[name], VIEW, 2))
    assert isinstance(first, Click) and first.point is not None and second == TypeText("hello")
    assert max(abs(first.point[0] - 30), abs(first.point[1] - 40)) <= 1
    with pytest.raises(ActionError):
        read_several(codec, CLICK_AND_TYPE[name], VIEW, 1)


@pytest.mark.parametrize("name", CODECS)
def test_one_action_is_read_as_ever(name: str) -> None:
    codec = open_codec(name)
    said = codec.format(Click((30, 40)), VIEW)
    assert read_several(codec, said, VIEW, 8) == read_several(codec, said, VIEW, 1)


def test_a_program_s_drag_starts_where_its_pointer_is() -> None:
    codec = open_codec("osworld_pyautogui", "strict")
    program = """```python
import pyautogui
import time
pyautogui.moveTo(10, 20)  # to its corner
pyautogui.dragTo(200, 100)
time.sleep(0.5)
pyautogui.hotkey('ctrl', 's')
```"""
    read = [reading.action for reading in read_several(codec, program, VIEW, 4)]
    assert read == [Move((10, 20)), Drag(((10, 20), (200, 100))), Wait(500), Key(("ctrl", "s"))]


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos.remove('a')",
        "pyautogui.click(1, 2)\nfor i in range(3): pyautogui.press('a')",
        "x = 3\npyautogui.click(x, x)",
        "pyautogui.click(1, 2)\n__import__('os').system('ls')",
        "pyautogui.click(1, 2)\neval('1')",
    ],
)
def test_a_program_of_anything_else_is_none(program: str) -> None:
    with pytest.raises(ActionError):
        read_several(open_codec("osworld_pyautogui"), program, VIEW, 8)


def test_more_than_are_allowed_and_one_that_is_wrong_do_nothing() -> None:
    env = EmuEnv(tasks="basics/*", actions_per_turn=2)
    assert "up to 2 actions" in env.system_prompt
    before = env.reset({}, 0).images[0]
    one = "<action>move 1 1</action>"
    for text, reason in (
        (one * 3, "3 actions in one message; 2 are allowed"),
        (f"{one}<action>fly</action>", "'fly'"),
    ):
        result = env.step(text)
        assert result.info["invalid"] and reason in result.observation.text
        assert (result.observation.images[0] == before).all()
    assert result.info["num_steps"] == 2


def play(env: EmuEnv, words: list[str]) -> Any:
    result = None
    for text in words:
        result = env.step(text)
    return result


@pytest.mark.parametrize("seed", range(4))
def test_what_follows_the_goal_is_not_done(seed: int) -> None:
    one_by_one = EmuEnv(tasks=["basics/*", "settings/*"])
    one_by_one.reset({}, seed)
    words, over = [], False
    while not over:
        words.append(one_by_one.oracle())
        result = one_by_one.step(words[-1])
        over = result.terminated
    assert result.info["success"]
    env = EmuEnv(tasks=["basics/*", "settings/*"], actions_per_turn=8)
    env.reset({}, seed)
    more = "<action>click 3 3</action>"
    at_once = play(env, ["".join([*words, more])] if len(words) < 8 else [*words])
    assert at_once.terminated and at_once.info["success"] and at_once.info["num_steps"] == len(words)
    assert at_once.observation.images[0].tobytes() == result.observation.images[0].tobytes()
    assert at_once.info["gui_action"].count("; ") == (len(words) - 1 if len(words) < 8 else 0)


def test_actions_count_towards_the_limit() -> None:
    env = EmuEnv(tasks="basics/*", actions_per_turn=8, max_steps=3)
    env.reset({}, 0)
    result = env.step("<action>move 1 1</action>" * 5)
    assert (
        result.truncated and result.info["num_steps"] == 3 and result.info["gui_action"].count("Move(") == 3
    )


@pytest.mark.parametrize("number", [0, 9])
def test_a_wrong_number_is_refused(number: int) -> None:
    with pytest.raises(ConfigError, match="a whole number from 1 to 8"):
        EmuEnv(actions_per_turn=number)
