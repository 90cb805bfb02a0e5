"""Texts as the models and benchmarks write them, and what they mean; what is not an action, and where it goes wrong."""

# ruff: noqa: E501 - a text is on one line, as a model writes it
from __future__ import annotations

import json

import pytest
from codec_samples import VIEW

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Finish,
    Key,
    KeyDown,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.open import open_codec


def call(function: str, **arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': function, 'arguments': arguments})}\n</tool_call>"


def computer(**arguments: object) -> str:
    return call("computer_use", **arguments)


def mobile(**arguments: object) -> str:
    return call("mobile_use", **arguments)


# On a screen of 640×480 that is shown as 644×476, the pointer at (5, 5).
MEANT: list[tuple[str, str, Action]] = [
    ("qwen2_5_computer_use", computer(action="left_click", coordinate=[322, 238]), Click((320, 240))),
    ("qwen2_5_computer_use", "Action: I click.\n" + computer(action="left_click"), Click()),
    ("qwen2_5_computer_use", computer(action="left_click_drag", coordinate=[322, 238]), Drag(((5, 5), (320, 240)))),
    ("qwen2_5_computer_use", computer(action="scroll", pixels=-300), Scroll(0, 300)),
    ("qwen2_5_computer_use", computer(action="scroll", pixels=5, coordinate=[322, 238]), Scroll(0, -5, (320, 240))),
    ("qwen2_5_computer_use", computer(action="hscroll", pixels=40.0), Scroll(40, 0)),
    ("qwen2_5_computer_use", computer(action="key", keys=["ctrl+Shift", "T"]), Key(("ctrl", "shift", "t"))),
    ("qwen3_computer_use", computer(action="double_click", coordinate=[500, 1000]), Click((320, 479), count=2)),
    ("qwen3_computer_use", computer(action="mouse_move", coordinate=[999.5, 0]), Move((639, 0))),
    ("qwen3_computer_use", computer(action="wait", time=2, text=None), Wait(2000)),
    ("qwen3_computer_use", computer(action="terminate", status="failure"), Finish(False)),
    ("qwen2_5_mobile_use", mobile(action="click", coordinate=[644, 476]), Click((639, 479))),
    ("qwen2_5_mobile_use", mobile(action="key", text="KEYCODE_DEL"), Key(("backspace",))),
    ("qwen2_5_mobile_use", mobile(action="key", text="back"), SystemButton("back")),
    ("qwen3_mobile_use", mobile(action="open", text="File Manager"), OpenApp("File Manager")),
    ("qwen3_mobile_use", mobile(action="swipe", coordinate=[0, 999], coordinate2=[0, 0]), Swipe((0, 479), (0, 0))),
    ("qwen3_mobile_use", mobile(action="system_button", button="Home"), SystemButton("home")),
    ("uitars", "Thought: go\nAction: click(start_box='(500,500)')", Click((320, 240))),
    ("uitars", "Action: click(start_box='<|box_start|>(400, 400, 600, 600)<|box_end|>')", Click((320, 240))),
    ("uitars", "Thought: a\nAction: WAIT()", Wait(5000)),
    ("uitars", "Action: left_double(point='<point>500 500</point>')", Click((320, 240), count=2)),
    ("uitars_1_5", "Thought: Type it.\nAction: type(content='it's \"it\"\\n')", TypeText('it\'s "it"\n')),
    ("uitars_1_5", 'Action: type(content="C:\\\\new\\\\\\\\x")', TypeText("C:\\new\\\\x")),
    ("uitars_1_5", "Action: hotkey(key='ctrl shift arrowleft')", Key(("ctrl", "shift", "left"))),
    ("uitars_1_5", "Action: hotkey(key='ctrl+c')", Key(("ctrl", "c"))),
    ("uitars_1_5", "```\nThought: x\nAction: scroll(point='<point>0 0</point>', direction='down')\n```", Scroll(0, 240, (0, 0), True)),
    ("uitars_1_5", "Action: finished(content='It is 42.')", Answer("It is 42.")),
    ("uitars_1_5", "Action: finished()", Finish(True)),
    ("uitars_1_5", "Action: press_home()", SystemButton("home")),
    ("uitars_1_5", "Action: long_press(point='<point>644 476</point>', time='2')", LongPress((639, 479))),
    ("gui_r1", "<think>…</think> <answer>[{'action': 'click', 'point': [322, 238], 'input_text': 'no input text'}]</answer>", Click((320, 240))),
    ("gui_r1", "<answer>[{'action': 'scroll', 'point': [-100, -100], 'input_text': 'up'}]</answer>", Scroll(0, -240, None, True)),
    ("gui_r1", '<answer>{"action": "type", "point": [-100, -100], "input_text": "shop"}</answer>', TypeText("shop")),
    ("gui_r1", "<answer>[{'action': 'complete'}]</answer>", Finish(True)),
    ("osworld_pyautogui", "I will click.\nAction:\n```python\nimport pyautogui\n# there\npyautogui.click(100, y=200)\n```", Click((100, 200))),
    ("osworld_pyautogui", "import pyautogui; import time; pyautogui.rightClick(x=1, y=2, duration=0.5);", Click((1, 2), "right")),
    ("osworld_pyautogui", "pyautogui.scroll(-3)", Scroll(0, 300)),
    ("osworld_pyautogui", "pyautogui.dragTo(10, 20, 1.0, button='left')", Drag(((5, 5), (10, 20)))),
    ("osworld_pyautogui", "pyautogui.typewrite('a (b), \\'c\\'', interval=0.1)", TypeText("a (b), 'c'")),
    ("osworld_pyautogui", 'pyautogui.write("""two\nlines""")', TypeText("two\nlines")),
    ("osworld_pyautogui", "pyautogui.hotkey('ctrl', 'alt', 'del')", Key(("ctrl", "alt", "delete"))),
    ("osworld_pyautogui", "pyautogui.press(['enter'])", Key(("enter",))),
    ("osworld_pyautogui", "pyautogui.mouseUp()", ButtonUp()),
    ("osworld_pyautogui", "time.sleep(0.5)", Wait(500)),
    ("osworld_pyautogui", "I am done.\n```DONE```", Finish(True)),
    ("osworld_pyautogui", "FAIL", Finish(False)),
    ("computer_13", '```json\n{"action_type": "CLICK", "x": 12.5, "y": 3, "button": "right"}\n```', Click((12, 3), "right")),
    ("computer_13", '{"action_type": "MOVE_TO", "parameters": {"x": 1, "y": 2}}', Move((1, 2))),
    ("computer_13", '{"action_type": "SCROLL", "dx": 0, "dy": -2}', Scroll(0, 200)),
    ("computer_13", '{"action_type": "KEY_DOWN", "key": "shiftleft"}', KeyDown("shift")),
    ("computer_13", "```\nWAIT\n```", Wait()),
    ("androidworld", 'Reason: I {tap} it.\nAction: {"action_type": "click", "x": 100, "y": 200}', Click((100, 200))),
    ("androidworld", 'Action: {"action_type": "scroll", "direction": "down"}', Scroll(0, 240, (320, 240), True)),
    ("androidworld", '{"action_type": "swipe", "direction": "left"}', Swipe((0, 240), (639, 240), 500)),
    ("androidworld", '{"action_type": "status", "goal_status": "infeasible"}', Finish(False)),
    ("browsergym", "mouse_click(87.2, 68)", Click((87, 68))),
    ("browsergym", "```\nmouse_drag_and_drop(10.7, 325, 235.6, 24.54)\n```", Drag(((10, 325), (235, 24)))),
    ("browsergym", "keyboard_press('Meta+Shift+t')", Key(("super", "shift", "t"))),
    ("browsergym", "scroll(-50.2, -100.5)", Scroll(-50, -100)),
    ("browsergym", "noop()", Wait(1000)),
    ("browsergym", "mouse_down(47, 252, 'right')", ButtonDown("right", (47, 252))),
    ("browsergym", "send_msg_to_user(\"It is 42.\")", Answer("It is 42.")),
    ("miniwob", '{"action_type": "CLICK_COORDS", "coords": [30, 60]}', Click((30, 60))),
    ("miniwob", '{"action_type": "PRESS_KEY", "key": "C-S-<ArrowLeft>"}', Key(("ctrl", "shift", "left"))),
    ("miniwob", '{"action_type": "SCROLL_UP_COORDS", "coords": [0, 0]}', Scroll(0, -114, (0, 0))),
    ("plain", "Let me see. <action>ctrl+right_click 322 238</action>", Click((320, 240), "right", 1, ("ctrl",))),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "action"), MEANT)
def test_what_a_text_means(name: str, text: str, action: Action) -> None:
    assert open_codec(name).parse(text, VIEW) == action


# (codec, text, kind, what the span covers)
WRONG = [
    ("plain", "click 1 1", "no_action", "click 1 1"),
    ("plain", "<think><action>click 1 1</action>", "no_action", ""),
    ("plain", "a <action>click 1 1", "syntax", "<action>click 1 1"),
    ("plain", "<action>wait</action><action>wait</action>", "syntax", "<action>"),
    ("plain", "<action>jump 1 1</action>", "unknown_action", "jump"),
    ("plain", "<action>click 1 two</action>", "bad_argument", "two"),
    ("plain", "<action>click 1 1 1</action>", "bad_argument", "1"),
    ("plain", "<action>click 1</action>", "missing_argument", "click 1"),
    ("plain", "<action>move 1 477</action>", "outside", "1 477"),
    ("plain", "<action>key ctrl+nokey</action>", "bad_argument", "ctrl+nokey"),
    ("qwen3_computer_use", "no call", "no_action", "no call"),
    ("qwen3_computer_use", computer(action="wait") + computer(action="wait"), "syntax", computer(action="wait")),
    ("qwen3_computer_use", "<tool_call>{}", "syntax", "<tool_call>{}"),
    ("qwen3_computer_use", mobile(action="wait"), "unknown_action", '"name": "mobile_use"'),
    ("qwen3_computer_use", computer(action="fly"), "unknown_action", '"action": "fly"'),
    ("qwen3_computer_use", computer(action="type"), "missing_argument", computer(action="type")),
    ("qwen3_computer_use", computer(action="left_click", coordinate=[1001, 0]), "outside", '"coordinate": [1001, 0]'),
    ("qwen3_computer_use", computer(action="left_click", coordinate=[1]), "bad_argument", '"coordinate": [1]'),
    ("qwen3_computer_use", computer(action="left_click", coordinate=[True, 1]), "bad_argument", '"coordinate": [true, 1]'),
    ("qwen3_computer_use", computer(action="scroll", pixels=10**9), "bad_argument", '"pixels": 1000000000'),
    ("qwen3_computer_use", computer(action="wait", time=10**6), "bad_argument", '"time": 1000000'),
    ("qwen3_computer_use", computer(action="wait", seconds=1), "bad_argument", '"seconds": 1'),
    ("qwen2_5_mobile_use", mobile(action="key", text="volume_up"), "bad_argument", '"text": "volume_up"'),
    ("uitars", "Action: click(start_box='(1,2,3)')", "bad_argument", "start_box='(1,2,3)'"),
    ("uitars", "Action: click(start_box='(1001,2)')", "outside", "start_box='(1001,2)'"),
    ("uitars", "Action: wait()\n\nAction: wait()", "syntax", "Action: wait()"),
    ("uitars", "Thought: hm", "syntax", "Thought: hm"),
    ("uitars", "Action: click(1, 2)", "syntax", "1, 2"),
    ("uitars", "Action: click(where='(1,2)')", "bad_argument", "where"),
    ("gui_r1", "<answer>[{'action': 'type', 'point': [-100, -100], 'input_text': 'no input text'}]</answer>", "missing_argument", "[{'action': 'type', 'point': [-100, -100], 'input_text': 'no input text'}]"),
    ("gui_r1", "<answer>[{'action': 'click', 'point': [-100, -100]}]</answer>", "outside", "'point': [-100, -100]"),
    ("gui_r1", "<answer>[]</answer>", "syntax", "[]"),
    ("gui_r1", "<answer>[{'action': 'close/delete'}]</answer>", "unknown_action", "'action': 'close/delete'"),
    ("osworld_pyautogui", "pyautogui.moveTo(1, 2)\npyautogui.click()", "syntax", "pyautogui.click()"),
    ("osworld_pyautogui", "x = 5", "syntax", "x = 5"),
    ("osworld_pyautogui", "os.system('ls')", "unknown_action", "os.system"),
    ("osworld_pyautogui", "import os\nos.system('ls')", "syntax", "import os\nos.system('ls')"),
    ("osworld_pyautogui", "pyautogui.click(x, 5)", "bad_argument", "x"),
    ("osworld_pyautogui", "pyautogui.click(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)", "bad_argument", "10"),
    ("osworld_pyautogui", "pyautogui.click(1, x=2)", "bad_argument", "x=2"),
    ("osworld_pyautogui", "pyautogui.click(640.5, 2)", "outside", "640.5, 2"),
    ("osworld_pyautogui", "pyautogui.press('tab', presses=3)", "bad_argument", "3"),
    ("osworld_pyautogui", "pyautogui.write(__import__('os').system('ls'))", "bad_argument", "__import__('os').system('ls')"),
    ("computer_13", '{"action_type": "CLICK", "x": 1}', "missing_argument", '{"action_type": "CLICK", "x": 1}'),
    ("computer_13", '{"action_type": "CALL_USER"}', "unknown_action", '"action_type": "CALL_USER"'),
    ("computer_13", '{"x": 1}', "missing_argument", '{"x": 1}'),
    ("androidworld", '{"action_type": "click", "index": 3}', "bad_argument", '"index": 3'),
    ("androidworld", '{"action_type": "input_text", "text": "a", "x": 1, "y": 1}', "bad_argument", '"x": 1'),
    ("androidworld", '{"action_type": "unknown"}', "unknown_action", '"action_type": "unknown"'),
    ("browsergym", "click('a51')", "unknown_action", "click"),
    ("browsergym", "goto('http://example.com')", "unknown_action", "goto"),
    ("browsergym", "noop()\nnoop()", "syntax", "\nnoop()"),
    ("browsergym", "mouse_click(1)", "missing_argument", "mouse_click(1)"),
    ("miniwob", '{"action_type": "CLICK_ELEMENT", "ref": 4}', "unknown_action", '"action_type": "CLICK_ELEMENT"'),
    ("miniwob", '{"action_type": "PRESS_KEY", "key": "Enter"}', "bad_argument", '"key": "Enter"'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "kind", "where"), WRONG)
def test_what_is_no_action_says_why_and_where(name: str, text: str, kind: str, where: str) -> None:
    with pytest.raises(ActionError) as caught:
        open_codec(name).parse(text, VIEW)
    assert (caught.value.kind, text[slice(*caught.value.span)]) == (kind, where)
    assert 5 < len(str(caught.value)) < 200
