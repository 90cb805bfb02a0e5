"""Codecs by name, and what they tell a model."""

from __future__ import annotations

import json

import pytest
from codec_samples import SAMPLES, VIEW

from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import ActionError
from vlrl.envs.gui.codecs.open import CODECS, codec_list, open_codec
from vlrl.errors import ConfigError


def test_an_unknown_name_lists_those_there_are() -> None:
    with pytest.raises(ConfigError, match="did you mean 'qwen3_computer_use'") as caught:
        open_codec("qwen3_computeruse")
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines[-len(CODECS) :]] == list(CODECS)
    assert codec_list() in str(caught.value)


@pytest.mark.parametrize("name", ["plain@", "plain@nowhere", "uitars@original"])
def test_an_unknown_frame(name: str) -> None:
    with pytest.raises(ConfigError, match=r"there is no frame .* per_1000"):
        open_codec(name)


def test_another_frame() -> None:
    codec = open_codec("osworld_pyautogui@per_1000")
    assert codec.name == "osworld_pyautogui@per_1000"
    assert codec.parse("pyautogui.click(500, 1000)", VIEW) == Click((320, 479))
    assert "(1000, 1000)" in codec.instructions((640, 480), "desktop")
    assert "1000x1000" in open_codec("qwen2_5_computer_use@per_1000").instructions((640, 480), "desktop")


@pytest.mark.parametrize("form", ["desktop", "mobile"])
@pytest.mark.parametrize("name", CODECS)
def test_instructions_are_no_action_and_end_nowhere_in_the_middle(name: str, form: str) -> None:
    codec = open_codec(name)
    text = codec.instructions((644, 476), form)  # type: ignore[arg-type]
    assert 200 < len(text) < 6000 and "{" + "place" not in text
    assert text == codec.instructions((644, 476), form)  # type: ignore[arg-type]
    if CODECS[name].frame in ("resized_pixels", "original_pixels") and name not in ("gui_r1", "uitars_1_5"):
        assert "644" in text and "476" in text


def test_uitars_tells_of_a_phone_on_a_phone() -> None:
    for name in ("uitars", "uitars_1_5"):
        desktop, mobile = (open_codec(name).instructions((9, 9), form) for form in ("desktop", "mobile"))
        assert "hotkey(" in desktop and "hotkey(" not in mobile
        assert "press_home()" in mobile and "press_home()" not in desktop
    assert "<|box_start|>(x1,y1)<|box_end|>" in open_codec("uitars").instructions((9, 9), "desktop")
    assert "<point>x1 y1</point>" in open_codec("uitars_1_5").instructions((9, 9), "desktop")


# Of cookbooks/utils/agent_function_call.py; for Qwen3-VL's phone, cookbooks/mobile_agent.ipynb.
COMPUTER = """key type mouse_move left_click left_click_drag right_click middle_click double_click
triple_click scroll hscroll wait terminate answer"""
ENUMS = {
    "qwen2_5_computer_use": COMPUTER,
    "qwen3_computer_use": COMPUTER,
    "qwen2_5_mobile_use": "key click long_press swipe type system_button open wait terminate",
    "qwen3_mobile_use": "click long_press swipe type answer system_button wait terminate",
}
ARGUMENTS = {
    "computer_use": ["action", "keys", "text", "coordinate", "pixels", "time", "status"],
    "mobile_use": ["action", "coordinate", "coordinate2", "text", "time", "button", "status"],
}
RESOLUTIONS = {"qwen3_computer_use": "1000x1000", "qwen3_mobile_use": "999x999"}


@pytest.mark.parametrize("name", ENUMS)
def test_qwens_schemas_are_the_published_ones(name: str) -> None:
    text = open_codec(name).instructions((644, 476), "desktop")
    schema = json.loads(text.split("<tools>\n")[1].split("\n</tools>")[0])
    function = schema["function"]
    properties = function["parameters"]["properties"]
    assert schema["type"] == "function" and name.endswith(function["name"])
    assert list(properties) == ARGUMENTS[function["name"]]
    assert properties["action"]["enum"] == ENUMS[name].split()
    assert properties["status"]["enum"] == ["success", "failure"]
    assert function["parameters"]["required"] == ["action"]
    assert f"resolution is {RESOLUTIONS.get(name, '644x476')}." in function["description"]
    assert '<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>' in text


@pytest.mark.parametrize("name", ENUMS)
def test_qwens_codecs_write_nothing_but_what_the_schema_offers(name: str) -> None:
    codec, written = open_codec(name), set()
    for action in SAMPLES:
        try:
            call = json.loads(codec.format(action, VIEW).split("\n")[1])
        except ActionError:
            continue
        assert set(call["arguments"]) <= set(ARGUMENTS[call["name"]])
        written.add(call["arguments"]["action"])
    assert written == set(ENUMS[name].split())
