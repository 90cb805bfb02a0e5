"""What real models write: which tolerance reads it, what it means then, and that it is counted."""

# ruff: noqa: E501 - a text is on one line, as a model writes it
from __future__ import annotations

import random

import pytest
from codec_samples import SAMPLES, VIEW

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Action, Click, Drag, TypeText, points_of
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.grammar.tolerance import TOLERANCES
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.errors import ConfigError
from vlrl.rewards.agents.gui import click_in_box
from vlrl.seeds import derive_seed

HERE = Click((320, 240))


def qwen(place: str) -> str:
    """computer_use at a place."""
    return '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": PLACE}}'.replace(
        "PLACE", place
    )


# (codec, text, least tolerance that reads it, repairs, what it means)
WRITTEN = [
    ("osworld_pyautogui", "```python\nimport time\npyautogui.click(320, 240)\ntime.sleep(0.5)\n```", "published", "sleeps", HERE),
    ("osworld_pyautogui", "time.sleep(1); pyautogui.write('time.sleep(1)')", "published", "sleeps", TypeText("time.sleep(1)")),
    ("osworld_pyautogui", 'pyautogui.click("320", "240")', "lenient", "numbers", HERE),
    ("osworld_pyautogui", "pyautogui.click((320, 240))\ntime.sleep(2)", "lenient", "sleeps numbers", HERE),
    ("osworld_pyautogui", "(320, 240)", "lenient", "place", HERE),
    ("qwen2_5_computer_use", f"I click it.\n<tool_call>\n{qwen('[323, 238]')}", "published", "closing", HERE),
    ("qwen2_5_computer_use", qwen("[323, 238]"), "lenient", "tags", HERE),
    ("qwen2_5_computer_use", '```json\n{"action": "left_click", "coordinate": [323, 238]}\n```', "lenient", "tags", HERE),
    ("qwen2_5_computer_use", "<tool_call>" + qwen('"(323, 238)"') + "</tool_call>", "lenient", "numbers", HERE),
    ("qwen2_5_computer_use", "<tool_call>" + qwen('["323", "238"]'), "lenient", "closing numbers", HERE),
    ("qwen3_computer_use", "<think>There.</think>\n(501, 501)", "lenient", "place", HERE),
    ("qwen2_5_mobile_use", '{"action": "click", "coordinate": "323, 238"}', "lenient", "tags numbers", HERE),
    ("uitars_1_5", "Thought: There.\nAction: click(start_box='(323,238)'", "published", "closing", HERE),
    ("uitars_1_5", "Action: click(start_box=(323,238))", "lenient", "numbers", HERE),
    ("uitars_1_5", "Action: click(323, 238)", "lenient", "numbers", HERE),
    ("uitars", "<|box_start|>(501,501)<|box_end|>", "lenient", "place", HERE),
    ("androidworld", "Reason: r\nAction: I do {'action_type': 'click', 'x': 320, 'y': 240}", "published", "object", HERE),
    ("androidworld", '{"action_type": "click", "x": "320", "y": "240"}', "lenient", "numbers", HERE),
    ("computer_13", '{"action_type": "CLICK", "x": "320", "y": "240"}', "lenient", "numbers", HERE),
    ("miniwob", '{"action_type": "CLICK_COORDS", "coords": "[320, 240]"}', "lenient", "numbers", HERE),
    ("gui_r1", "<answer>[{'action': 'click', 'point': '[323, 238]'}]", "lenient", "closing numbers", HERE),
    ("gui_r1", "[{'action': 'click', 'point': [323, 238]}]", "lenient", "tags", HERE),
    ("browsergym", "mouse_click('320', '240')", "lenient", "numbers", HERE),
    ("browsergym", "mouse_drag_and_drop('1', '2', '3', '4')", "lenient", "numbers", Drag(((1, 2), (3, 4)))),
    ("plain", "I see it. <action>click 323 238", "lenient", "closing", HERE),
    ("plain", "click (323, 238)", "lenient", "tags numbers", HERE),
    ("plain", "<action>click x=323, y=238</action>", "lenient", "numbers", HERE),
    ("plain", "<think>Where?</think>[323, 238]", "lenient", "place", HERE),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "least", "repairs", "action"), WRITTEN)
def test_a_text_is_read_from_its_tolerance_on(
    name: str, text: str, least: str, repairs: str, action: Action
) -> None:
    for tolerance in TOLERANCES:
        codec = open_codec(name, tolerance)
        if TOLERANCES.index(tolerance) < TOLERANCES.index(least):  # type: ignore[arg-type]
            with pytest.raises(ActionError):
                codec.parse(text, VIEW)
        else:
            reading = codec.read(text, VIEW)
            assert (reading.action, " ".join(reading.repairs)) == (action, repairs)


# What no tolerance makes an action of.
NEVER = [
    ("osworld_pyautogui", "pyautogui.click(1, 2)\ntime.sleep(1)\npyautogui.click(3, 4)"),
    ("osworld_pyautogui", "time.sleep(__import__('os').system('ls'))\npyautogui.click(1, 2)"),
    ("osworld_pyautogui", "pyautogui.click(int('1'), 2)"),
    ("qwen2_5_computer_use", f"<tool_call>{qwen('[1, 2]')}<tool_call>{qwen('[3, 4]')}"),
    ("qwen2_5_computer_use", f"{qwen('[1, 2]')}\n{qwen('[3, 4]')}"),
    (
        "qwen2_5_computer_use",
        '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [',
    ),
    ("qwen2_5_computer_use", "<tool_call>" + qwen('"here"') + "</tool_call>"),
    ("plain", "I would click 3 4"),
    ("plain", "click 1 2\nclick 3 4"),
    ("plain", "<action>click 1 2<action>click 3 4"),
    ("plain", "(9000, 1)"),
    ("uitars_1_5", "Action: click(1, 2)\n\nclick(3, 4)"),
    ("androidworld", "{'action_type': 'wait'} {'action_type': 'wait'}"),
]


@pytest.mark.parametrize(("name", "text"), NEVER)
def test_what_is_not_one_action_is_none_in_any_tolerance(name: str, text: str) -> None:
    for tolerance in TOLERANCES:
        with pytest.raises(ActionError) as caught:
            open_codec(name, tolerance).parse(text, VIEW)
        start, end = caught.value.span
        assert 0 <= start <= end <= len(text)


@pytest.mark.parametrize("name", CODECS)
def test_what_a_codec_writes_takes_no_repair(name: str) -> None:
    codec = open_codec(name, "lenient")
    for action in SAMPLES:
        try:
            text = codec.format(action, VIEW)
        except ActionError:
            continue
        assert codec.read(text, VIEW).repairs == ()


def test_spoilt_texts_in_the_most_lenient_way_are_actions_or_errors() -> None:
    """A few characters less, or others in their place; test_hostile.py has worse texts, for the default."""
    rng, repaired = random.Random(derive_seed(0, "tolerance")), 0
    for name in CODECS:
        codec = open_codec(name, "lenient")
        texts = [text for known, text, *_ in (*WRITTEN, *NEVER) if known == name] + [codec.format(HERE, VIEW)]
        for _ in range(600):
            text = rng.choice(texts)
            for _ in range(rng.randrange(4)):
                at = rng.randrange(len(text))
                piece = rng.choice(
                    ("", "", "(", "]", '"', "'", ",", "9" * 400, "1e999", "<action>", "\0", "}")
                )
                text = text[:at] + piece + text[at + rng.randrange(8) :] or "x"
            try:
                reading = codec.read(text, VIEW)
            except ActionError as error:
                assert 0 <= error.span[0] <= error.span[1] <= len(text)
                continue
            assert all(0 <= x < 640 and 0 <= y < 480 for x, y in points_of(reading.action))
            repaired += bool(reading.repairs)
    assert repaired > 100


def test_the_environment_counts_what_it_forgave() -> None:
    env = EmuEnv(tasks="basics/click_button", tolerance="lenient", reward="progress")
    env.reset({}, 3)
    first = env.step("<action>move 3 4</action>")
    assert first.info["lenient_actions"] == 0 and "repairs" not in first.info
    second = env.step("<action>move (3, 4)")
    assert second.info["lenient_actions"] == 1 and second.info["repairs"] == "closing numbers"
    kept = env.snapshot()
    env.step("move 5 6")
    env.restore(kept)
    assert env.step("<action>move 3 4</action>").info["lenient_actions"] == 1
    strict = EmuEnv(tasks="basics/click_button", tolerance="strict")
    strict.reset({}, 3)
    assert strict.step("move 5 6").info["invalid"]
    with pytest.raises(ConfigError, match="tolerance='loose'"):
        EmuEnv(tolerance="loose")


def test_rewards_forgive_what_they_are_told_to() -> None:
    answer, canvases = {"action": "click", "bbox": [300, 220, 340, 260]}, [Canvas((480, 640), (476, 644))]
    scores = [
        click_in_box("(323, 238)", answer, canvases=canvases, codec="plain", tolerance=tolerance)
        for tolerance in TOLERANCES
    ]
    assert scores == [0, 0, 1]
