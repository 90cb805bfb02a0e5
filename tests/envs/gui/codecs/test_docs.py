"""docs/gui_actions.md: its table is what the codecs can say, its examples are read, its program runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from codec_samples import VIEW

from vlrl.envs.gui.actions import (
    Action,
    Answer,
    ButtonDown,
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
from vlrl.envs.gui.codecs.open import CODECS, open_codec

PAGE = (Path(__file__).parents[4] / "docs" / "gui_actions.md").read_text(encoding="utf-8")

ROWS: dict[str, Action] = {
    "move": Move((10, 20)),
    "click": Click((1, 2)),
    "where the pointer is": Click(),
    "right click": Click((1, 2), "right"),
    "middle click": Click((1, 2), "middle"),
    "double click": Click((1, 2), count=2),
    "triple click": Click((1, 2), count=3),
    "with modifiers": Click((1, 2), modifiers=("ctrl",)),
    "button down, up": ButtonDown("left", (5, 5)),
    "drag": Drag(((5, 5), (9, 9))),
    "along a path": Drag(((5, 5), (9, 9), (1, 1))),
    "scroll up, down": Scroll(0, 100),
    "scroll left, right": Scroll(100, 0),
    "type": TypeText("a"),
    "key": Key(("enter",)),
    "key chord": Key(("ctrl", "s")),
    "key down, up": KeyDown("shift"),
    "wait": Wait(),
    "long press": LongPress((1, 2)),
    "swipe": Swipe((1, 2), (3, 4)),
    "back, home": SystemButton("back"),
    "open app": OpenApp("a"),
    "answer": Answer("a"),
    "done": Finish(True),
    "cannot be done": Finish(False),
}
COLUMNS = {
    "plain": ["plain"],
    "uitars*": ["uitars", "uitars_1_5"],
    "gui_r1": ["gui_r1"],
    "pyautogui": ["osworld_pyautogui"],
    "computer_13": ["computer_13"],
    "androidworld": ["androidworld"],
    "browsergym": ["browsergym"],
    "miniwob": ["miniwob"],
    "qwen computer": ["qwen2_5_computer_use", "qwen3_computer_use"],
    "2.5 mobile": ["qwen2_5_mobile_use"],
    "3 mobile": ["qwen3_mobile_use"],
}


def can_say(name: str, action: Action) -> bool:
    try:
        open_codec(name).format(action, VIEW)
    except ActionError:
        return False
    return True


def table() -> list[str]:
    lines = [f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row, action in ROWS.items():
        said = ["●" if all(can_say(name, action) for name in names) else "" for names in COLUMNS.values()]
        lines.append(f"| {row} | {' | '.join(said)} |")
    return lines


def examples() -> list[str]:
    lines = []
    for name in CODECS:
        codec = open_codec(name)
        written = [codec.format(action, VIEW) for action in (Click((320, 240)), TypeText("it's 5"))]
        lines += [f"`{name}`", "", "````", *written, "````", ""]
    return lines[:-1]


def test_the_table_is_what_the_codecs_can_say() -> None:
    assert "\n".join(table()) in PAGE


def test_columns_name_every_codec_once() -> None:
    assert sorted(name for names in COLUMNS.values() for name in names) == sorted(CODECS)
    for names in COLUMNS.values():
        assert len({tuple(can_say(name, action) for action in ROWS.values()) for name in names}) == 1


def test_the_examples_are_what_the_codecs_write() -> None:
    assert "\n".join(examples()) in PAGE


@pytest.mark.parametrize("name", CODECS)
def test_the_page_has_the_codec_with_its_frame(name: str) -> None:
    row = re.search(rf"^\| `{name}` \|.*\| (.*) \|$", PAGE, re.MULTILINE)
    assert row and row.group(1) == f"`{CODECS[name].frame}`"


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    program = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)[-1]  # before: pyautogui's
    exec(compile(program, "docs/gui_actions.md", "exec"), {"__name__": "example"})
    said = capsys.readouterr().out.splitlines()
    assert said[0] == str(Click((320, 240)))
    assert said[1] == "outside at point='<point>700 238</point>'"
    assert [line.split()[0] for line in said[2:]] == list(CODECS)
