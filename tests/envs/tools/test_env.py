"""The environment of tools: episodes, errors as observations, images by number, limits."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vlrl.environment.open import open_env
from vlrl.envs.tools.env import ToolEnv
from vlrl.errors import ConfigError, ResourceError
from vlrl.parsing.tool_calls import parse_calls, write_call

OWN = '''
from PIL import Image

def roll(rng) -> int:
    """Roll a die of a million sides."""
    return int(rng.integers(10**6))

def both(images) -> tuple:
    """Show everything."""
    return ("all of it:", *images)

def broken() -> str:
    """Break."""
    from vlrl.errors import ResourceError
    raise ResourceError("no disk")
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "own.py").write_text(OWN)
    return str(tmp_path / "own.py")


def photo(width: int = 60, height: int = 40) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def call(name: str, **arguments: Any) -> str:
    return write_call(name, arguments)


def test_look_then_answer() -> None:
    env = open_env("tools", {"tools": ["crop", "calculator"]})
    first = env.reset({"text": "What is it?", "images": [photo()]}, seed=0)
    assert first.text == "What is it?" and first.role == "user" and len(first.images) == 1
    looked = env.step(f"<think>hm</think>I look.\n{call('crop', box=[10, 10, 30, 20])}")
    assert (looked.reward, looked.terminated, looked.truncated) == (0.0, False, False)
    assert looked.observation.role == "tool" and looked.observation.text == "[image 2: 20×10]"
    np.testing.assert_array_equal(looked.observation.images[0], np.asarray(photo())[10:20, 10:30])
    assert looked.info == {"num_tool_calls": 1, "num_tool_errors": 0, "invalid": False}
    done = env.step("<answer>a cat</answer>")
    assert done.terminated and not done.truncated and done.reward == 0.0
    assert done.observation.text == "The answer was given."
    assert done.info == {"num_tool_calls": 1, "num_tool_errors": 0, "invalid": False}
    with pytest.raises(RuntimeError, match="reset starts the next one"):
        env.step("again")
    env.close()
    env.close()


def test_several_calls_are_carried_out_in_order_and_may_build_on_each_other() -> None:
    env = ToolEnv(["crop", "calculator"])
    env.reset({"images": [photo()]}, 0)
    result = env.step(
        call("crop", box=[0, 0, 30, 20])
        + call("calculator", expression="6 * 7")
        + call("crop", box=[1, 1, 5, 9], image_number=2)
        + call("crop", box=[1, 1, 99, 9], image_number=2)
    )
    assert result.observation.text == (
        "crop: [image 2: 30×20]\n\ncalculator: 42\n\ncrop: [image 3: 4×8]\n\n"
        "Error: crop: [99, 9] lies outside the image: x is from 0 to 30 and y from 0 to 20"
    )
    assert [image.size for image in result.observation.images] == [(30, 20), (4, 8)]
    assert result.info == {"num_tool_calls": 4, "num_tool_errors": 1, "invalid": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (call("zoom"), "Error: there is no tool 'zoom'; the tools are: crop, calculator"),
        (call("crop"), 'Error: crop: argument "box" is missing; it must be a list, each a number, 4 of them'),
        (call("calculator", expression="__import__('os')"), "only these functions can be called"),
        ("<tool_call>{}</tool_call>", 'a call is one JSON object with the keys "name" and "arguments"'),
        (
            '<tool_call>{"name": "crop", ',
            "<tool_call> is not closed by </tool_call>. A call looks like this:",
        ),
    ],
)
def test_what_is_wrong_is_told(text: str, said: str) -> None:
    env = ToolEnv(["crop", "calculator"])
    env.reset({"images": [photo()]}, 0)
    result = env.step(text)
    assert said in result.observation.text and not result.terminated
    is_call = "crop: argument" in said or "functions" in said  # of a known tool: an action, if a useless one
    assert result.info == {"num_tool_calls": 1, "num_tool_errors": 1, "invalid": not is_call}


def test_after_the_last_call_only_an_answer_is_accepted() -> None:
    env = ToolEnv(["calculator"], max_calls=2)
    env.reset({"text": "?"}, 0)
    result = env.step("".join(call("calculator", expression=f"{n}") for n in range(3)))
    assert result.observation.text == (
        "calculator: 0\n\ncalculator: 1\n\nNo more than 2 tool calls are allowed. Give your answer now."
    )
    assert result.info == {"num_tool_calls": 2, "num_tool_errors": 0, "invalid": False}
    result = env.step(call("calculator", expression="3"))
    assert result.observation.text == "No more than 2 tool calls are allowed. Give your answer now."
    assert result.info == {"num_tool_calls": 2, "num_tool_errors": 0, "invalid": True}
    assert env.step("42").terminated


def test_images_are_shown_small_and_cut_from_the_original() -> None:
    env = ToolEnv(["crop"], max_side=100, multiple_of=28)
    shown = env.reset({"images": [photo(800, 600)]}, 0).images[0]
    assert shown.size == (84, 84)
    (cut,) = env.step(call("crop", box=[0, 0, 42, 21])).observation.images
    assert cut.size == (84, 28)  # 400×150 pixels of the original, shown small in their turn
    expected = photo(800, 600).crop((0, 0, 400, 150)).resize(cut.size, Image.Resampling.BICUBIC)
    np.testing.assert_array_equal(np.asarray(cut), np.asarray(expected))


@given(st.integers(1, 900), st.integers(1, 900), st.integers(1, 40), st.none() | st.integers(40, 500))
@settings(deadline=None)
def test_what_is_shown_keeps_to_the_grain_and_the_bound(
    width: int, height: int, multiple_of: int, max_side: int | None
) -> None:
    env = ToolEnv(["crop"], max_side=max_side, multiple_of=multiple_of)
    shown = env.reset({"images": [Image.new("RGB", (width, height))]}, 0).images[0]
    assert shown.width % multiple_of == 0 and shown.height % multiple_of == 0
    if max_side:
        assert max(shown.size) <= max_side
    if not max_side or max_side >= max(width, height) + multiple_of:
        assert abs(shown.width - width) <= multiple_of and abs(shown.height - height) <= multiple_of


def test_images_of_a_task_come_in_three_kinds(tmp_path: Path) -> None:
    photo().save(tmp_path / "a.png")
    env = ToolEnv(["crop"])
    images = env.reset({"images": [photo(), np.asarray(photo()), str(tmp_path / "a.png")]}, 0).images
    for image in images:
        np.testing.assert_array_equal(np.asarray(image), np.asarray(photo()))


def test_the_same_seed_draws_the_same_whatever_was_called_before(own: str) -> None:
    def rolled(seed: int, turns: int) -> list[str]:
        env = ToolEnv([f"{own}:roll"])
        env.reset({}, seed)
        return [env.step(call("roll")).observation.text for _ in range(turns)]

    assert rolled(3, 3) == rolled(3, 3) and rolled(3, 1) != rolled(4, 1)
    assert len(set(rolled(3, 3))) == 3


def test_a_snapshot_continues_as_if_nothing_had_happened(own: str) -> None:
    env = ToolEnv([f"{own}:roll", f"{own}:both", "crop"])
    env.reset({"images": [photo()]}, 5)
    env.step(call("crop", box=[0, 0, 9, 9]))
    state = env.snapshot()

    def play() -> list[Any]:
        results = [env.step(call("roll") + call("both")) for _ in range(2)]
        return [(r.observation.text, [i.size for i in r.observation.images], r.info) for r in results]

    first = play()
    assert first[0][0].endswith("both: all of it:\n[image 3: 60×40]\n[image 4: 9×9]")
    env.step("the end")
    env.restore(state)
    assert play() == first


def test_random_actions_are_well_formed() -> None:
    env = ToolEnv(["crop", "zoom", "rotate", "flip", "draw", "calculator"], max_calls=200)
    env.reset({"images": [photo()]}, 0)
    rng = np.random.default_rng(0)
    actions = [env.random_action(rng) for _ in range(200)]
    calls = [action for action in actions if parse_calls(action)]
    assert 60 < len(calls) < 140
    for action in calls:
        said = env.step(action).observation.text
        assert "missing" not in said and "there is no" not in said and "not JSON" not in said


def test_a_broken_machine_is_no_observation(own: str) -> None:
    env = ToolEnv([f"{own}:broken"])
    env.reset({}, 0)
    with pytest.raises(ResourceError, match="no disk"):
        env.step(call("broken"))


@settings(deadline=None)
@given(st.lists(st.sampled_from([call("crop"), "<tool_call>", "</tool_call>", "x", "\x00", "é"]) | st.text()))
def test_no_text_makes_it_raise(pieces: list[str]) -> None:
    env = ToolEnv(["crop", "calculator"])
    env.reset({"images": [photo()]}, 0)
    result = env.step("".join(pieces))
    assert result.terminated or result.observation.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": []}, "tools=.. must be a list of one or more names"),
        ({"tools": "crop"}, "tools='crop' must be a list"),
        ({"tools": ["crp"]}, "no tool is named 'crp'; did you mean 'crop'"),
        ({"tools": ["crop"], "max_calls": 0}, "max_calls=0 must be at least 1"),
        ({"tools": ["crop"], "max_side": 10, "multiple_of": 28}, "max_side=10 is less than multiple_of=28"),
        ({"tools": ["crop"], "options": {"crop": {"frames": 1}}}, "tool 'crop' does not take the options"),
        ({"tools": ["crop"], "told_by": "me"}, "told_by='me' is not one of template, system_prompt"),
        ({"tools": ["crop"], "max_steps": 3}, "env 'tools' does not take the options"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_env("tools", options)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"question": "?"}, "a task has the keys text and images, not 'question'"),
        ({"images": "a.png"}, r"task\['images'\] must be a list, not str"),
        ({"images": ["nowhere.png"]}, r"task\['images'\]\[0\]: nowhere.png cannot be read as an image"),
        (
            {"images": [np.zeros((2, 2))]},
            r"task\['images'\]\[0\] is ndarray; give a PIL image, a uint8 array",
        ),
    ],
)
def test_a_wrong_task_is_named(task: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ToolEnv(["crop"]).reset(task, 0)
