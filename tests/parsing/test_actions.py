"""Actions read from text: every form, and nothing that would have to be run to be understood."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.coordinates import Point
from vlrl.parsing.actions import ALIASES, Action, read_action
from vlrl.parsing.literals import MAX_DEPTH, Call, read_literal
from vlrl.parsing.places import try_read
from vlrl.parsing.strict_json import Unreadable

HERE = {"point": Point(100, 200)}


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"action": "left_click", "coordinate": [100, 200]}', Action("click", HERE)),
        ('[{"action": "click", "point": [100.0, 200]}]', Action("click", HERE)),
        ("[{'action': 'click', 'point': [100, 200], 'input_text': 'no input text'}]", Action("click", HERE)),
        ("[{'action': 'click' ,'coordinate': (100, 200)}]", Action("click", HERE)),
        ("click(start_box='<|box_start|>(100,200)<|box_end|>')", Action("click", HERE)),
        ("click(start_box='(100,200)')", Action("click", HERE)),
        ("click(point='<point>100 200</point>')", Action("click", HERE)),
        ("click(100, 200)", Action("click", HERE)),
        ("click([100, 200])", Action("click", HERE)),
        ("pyautogui.click(x=100, y=200)", Action("click", HERE)),
        ("pyautogui.click(100, 200, button='right')", Action("right_click", HERE)),
        ("pyautogui.click(100, 200, clicks=2)", Action("double_click", HERE)),
        ("pyautogui.doubleClick(100, 200)", Action("double_click", HERE)),
        ("left_double(start_box='(100,200)')", Action("double_click", HERE)),
        ("```json\n{\"action\": \"tap\", \"point\": [100, 200]}\n```", Action("click", HERE)),
        (
            '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", '
            '"coordinate": [100, 200]}}\n</tool_call>',
            Action("click", HERE),
        ),
        ('{"name": "press_back", "arguments": {}}', Action("back")),
        (
            "drag(start_box='(100,200)', end_box='(1,2)')",
            Action("drag", {**HERE, "end": Point(1, 2)}),
        ),
        ("type(content='it\\'s\\n')", Action("type", {}, {"text": "it's"})),
        ("pyautogui.write('C:\\dir')", Action("type", {}, {"text": "C:\\dir"})),
        ("[{'action': 'type', 'point': [-9, -9], 'input_text': 'né'}]", Action("type", {}, {"text": "né"})),
        ('{"action": "key", "keys": ["ctrl", "C"]}', Action("key", {}, {"keys": "ctrl c"})),
        ("pyautogui.hotkey('ctrl', 'c')", Action("key", {}, {"keys": "ctrl c"})),
        ("hotkey(key='ctrl c')", Action("key", {}, {"keys": "ctrl c"})),
        ("press('+')", Action("key", {}, {"keys": "+"})),
        ("pyautogui.scroll(-5)", Action("scroll", {}, {"amount": "-5", "direction": "down"})),
        ("scroll(direction='Down', point='(100,200)')", Action("scroll", HERE, {"direction": "down"})),
        (
            "[{'action': 'scroll', 'point': [100, 200], 'input_text': 'UP'}]",
            Action("scroll", HERE, {"direction": "up"}),
        ),
        ("wait()", Action("wait")),
        ("sleep(2.5)", Action("wait", {}, {"seconds": "2.5"})),
        ('{"action": "terminate", "status": "success"}', Action("finish", {}, {"status": "success"})),
        ("[{'action': 'close/delete', 'point': [1, 2], 'input_text': ''}]", Action("close/delete")),
    ],
)  # fmt: skip
def test_an_action_in_every_form(text: str, action: Action) -> None:
    assert read_action(text) == action


REFUSED = [
    "",
    "click",
    "I click(100, 200)",
    "click(100, 200) now",
    "Action: click(100, 200)",
    "click(1, 2); click(3, 4)",
    "click(1, 2)\nclick(3, 4)",
    "[click(1, 2)]",
    "[{'action': 'click', 'point': [1, 2]}, {'action': 'click', 'point': [3, 4]}]",
    "[]",
    "[{}]",
    "{'action': 7}",
    "{'action': 'click', 'action': 'type'}",
    '{"action": "click", "action": "type"}',
    '{"action": "click", "point": [1, 2], "coordinate": [3, 4]}',
    '{"action": "click", "point": [1, 2], "secret": 1}',
    "click(x=1, y=2, point=[1, 2])",
    "click(1, 2, 3)",
    "click(True, 2)",
    "click(1, 1e400)",
    "click(1, nan)",
    "click(button='left', clicks=9)",
    "drag('a', 'b')",
    "type(text=['a'])",
    "type(text=b'a')",
    "type(text=f'{1}')",
    "type(text='a' + 'b')",
    "type(text='a' * 9**9)",
    "type(text=open('/etc/passwd').read())",
    "type(text=x)",
    "click(*[1, 2])",
    "click(**{'x': 1})",
    "click(x:=1)",
    "(lambda: click)()(1, 2)",
    "click.__class__.__bases__",
    "os.system.now('x')",
    "__import__('os').system('true')",
    "[x for x in (1, 2)]",
    "1 + 1",
    "{'action': 'click', **{}}",
    "{1: 2}",
    "click(1, 2",
    "click(1, 2))",
    "\x00",
    "click(1,\x00 2)",
    "{'action': '" + "a" * 60 + "'}",
    "(" * 3000,
    "[" * 90 + "]" * 90,
    "-" * 3990 + "1",
    "a." * 1900 + "a()",
    "1" + "+1" * 1990,
    "a" * 4001,
    "9" * 4000,
    "click(x=" + "9" * 3900 + ", y=1)",
    "not " * 990 + "1",
    "wait(t='" + "9" * 3000 + "')",
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:30])
def test_what_is_no_single_action_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read_action(text)


def test_nothing_a_model_writes_is_run(tmp_path: object) -> None:
    mark = f"{tmp_path}/ran"
    for text in (
        f"open({mark!r}, 'w')",
        f"[{{'action': open({mark!r}, 'w')}}]",
        f"type(text=open({mark!r}, 'w'))",
    ):
        try_read(read_action, text)  # "open" is an app's name to it
    assert not __import__("pathlib").Path(mark).exists()


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(LITERALS)
def test_literals_are_read_back(value: object) -> None:
    text = repr(value)
    if text.count("[") + text.count("{") + text.count("(") <= MAX_DEPTH:
        assert read_literal(text) == value
        assert read_literal(f"f({text}, key={text})") == Call("f", [value], {"key": value})


@given(st.text(st.sampled_from("click(x=1,y)[]{}'\":-+*.\\\n typeaon"), max_size=60))
def test_no_text_raises_anything_else(text: str) -> None:
    for reader in (read_action, read_literal):
        try_read(reader, text)


@given(st.sampled_from(sorted(ALIASES)), st.integers(0, 999), st.integers(0, 999))
def test_every_name_of_an_action_is_one_kind_in_every_form(alias: str, x: int, y: int) -> None:
    forms = [json.dumps({"action": alias, "point": [x, y]}), f"{{'action': {alias!r}, 'point': ({x}, {y})}}"]
    forms += [
        f"{alias}({x}, {y})",
        f"pyautogui.{alias}(x={x}, y={y})",
        f"{alias}(point='<point>{x} {y}</point>')",
    ]
    found = [read_action(form) for form in forms]
    assert all(action == found[0] for action in found)
    assert found[0].kind == ALIASES[alias]
