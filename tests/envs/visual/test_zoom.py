"""The zoom tool: it shows the part that was asked for, and what is asked cannot be read without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlrl.envs.tools.images import zoomed
from vlrl.envs.visual.drawing.badges import SHAPES
from vlrl.envs.visual.zoom.read_digits import ReadDigits
from vlrl.envs.visual.zoom.search import LETTERS, SIDE, Search, badge
from vlrl.parsing.tool_calls import write_call

ENVS: list[tuple[type[Any], dict[str, Any]]] = [
    (Search, {}),
    (Search, {"grid": 4}),
    (Search, {"frame": "per_1000"}),
    (ReadDigits, {}),
    (ReadDigits, {"grid": 5}),
    (ReadDigits, {"frame": "unit", "scale": 9}),
]


@pytest.mark.parametrize(("make", "options"), ENVS)
def test_one_zoom_and_the_answer_are_right_on_every_seed(make: type[Any], options: dict[str, Any]) -> None:
    env = make(image_size=128, **options)
    for level in range(1, 6):
        for seed in range(200 if not options else 20):
            env.reset({"level": level}, seed)
            env.step(env.oracle())
            result = env.step(env.oracle())
            place = f"{env.name} {options} level {level} seed {seed}"
            assert (result.reward, result.terminated, result.info["num_steps"]) == (1.0, True, 2), place


@pytest.mark.parametrize(
    ("frame", "box"), [("original_pixels", [28, 56, 84, 112]), ("per_1000", [125, 250, 375, 500])]
)
def test_a_box_is_cut_out_of_the_large_image(frame: Any, box: list[int]) -> None:
    env = Search(frame=frame)
    env.reset({}, 0)
    result = env.step(f"I look there.\n{write_call('zoom', {'box': box})}")
    wanted = zoomed(env.world.image, (168, 336, 504, 672), 224)
    assert np.array_equal(np.asarray(result.observation.images[0]), np.asarray(wanted))
    assert result.observation.role == "tool"
    assert result.info["state"] == "(168, 336, 504, 672)"


def test_a_cell_is_cut_out_of_the_large_image() -> None:
    env = ReadDigits(grid=4)
    env.reset({}, 0)
    result = env.step(write_call("zoom", {"row": 2, "column": 4}))
    wanted = zoomed(env.world.image, (1008, 336, 1344, 672), 224)
    assert np.array_equal(np.asarray(result.observation.images[0]), np.asarray(wanted))


def test_the_first_image_is_the_large_one_shrunken() -> None:
    env = Search(image_size=160, scale=5)
    shown = np.asarray(env.reset({}, 0).images[0])
    large = np.asarray(env.world.image)
    assert large.shape == (800, 800, 3)
    mean = large.reshape(160, 5, 160, 5, 3).mean((1, 3))
    assert np.abs(shown - mean).max() <= 0.6  # Pillow rounds in fixed point


def test_several_calls_in_one_text_are_all_answered() -> None:
    env = Search()
    env.reset({}, 0)
    one, other = write_call("zoom", {"box": [0, 0, 50, 50]}), write_call("zoom", {"box": [50, 0, 99, 50]})
    result = env.step(f"{one}\n{other}")
    assert len(result.observation.images) == 2
    assert result.info["num_steps"] == 1
    result = env.step(f"{one}\n{write_call('zoom', {'box': [0, 0, 500, 50]})}")
    assert len(result.observation.images) == 1
    assert result.info["invalid"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (write_call("zoom", {"box": [0, 0, 300, 10]}), "outside"),
        (write_call("zoom", {"box": [10, 10, 10, 50]}), "empty"),
        (write_call("zoom", {"box": [1, 2, 3]}), "4"),
        (write_call("zoom", {"part": [0, 0, 9, 9]}), "box"),
        (write_call("zoom", {}), "box"),
        (write_call("crop", {"box": [0, 0, 9, 9]}), "zoom"),
        ("<tool_call>zoom</tool_call>", "JSON"),
        ("I see nothing.", "<answer>"),
        ("<answer>blue</answer>", "form"),
    ],
)
def test_wrong_calls_are_told_what_is_wrong(text: str, said: str) -> None:
    env = Search(invalid_penalty=0.25)
    env.reset({}, 0)
    result = env.step(text)
    assert said in result.observation.text
    assert (result.reward, result.info["invalid"]) == (-0.25, True)


def test_an_episode_without_an_answer_is_cut_and_says_so_before() -> None:
    env = Search(max_steps=3, step_penalty=0.1)
    env.reset({}, 0)
    look = write_call("zoom", {"box": [0, 0, 50, 50]})
    results = [env.step(look) for _ in range(3)]
    assert ["Answer now" in result.observation.text for result in results] == [False, True, False]
    assert [result.truncated for result in results] == [False, False, True]
    assert sum(result.reward for result in results) == pytest.approx(-0.3)


def test_the_tool_is_offered_in_the_template_or_only_in_the_prompt() -> None:
    offered, plain = ReadDigits(grid=4), ReadDigits(grid=4, offer_tools=False)
    assert offered.tools[0]["function"]["parameters"]["required"] == ["row", "column"]
    assert plain.tools == []
    assert plain.system_prompt == offered.system_prompt
    assert '{"name": "zoom", "arguments": {"row": 2, "column": 2}}' in plain.system_prompt


def test_the_badge_that_is_asked_for_is_the_only_one_of_its_kind() -> None:
    """Told from the pixels: no other place of the image holds that badge, whatever its letter."""
    env = Search(level=5, image_size=96)
    for seed in range(5):
        env.reset({}, seed)
        colour, shape = env.world.question.split(" on the ")[1].split("?")[0].split(" ")
        large, side = np.asarray(env.world.image), SIDE * env.scale
        x0, y0, x1, y1 = env.world.target
        assert np.array_equal(large[y0:y1, x0:x1], badge(shape, colour, env.world.answer.text, side))
        stamps = [badge(shape, colour, letter, side) for letter in LETTERS]
        last = len(large) - side + 1
        candidates = np.ones((last, last), bool)
        for y in range(0, side, 6):  # places where badges of this kind are the same, whatever their letter
            for x in range(0, side, 6):
                if all((stamp[y, x] == stamps[0][y, x]).all() for stamp in stamps):
                    candidates &= (large[y : y + last, x : x + last] == stamps[0][y, x]).all(2)
        found = sum(
            any(np.array_equal(large[y : y + side, x : x + side], stamp) for stamp in stamps)
            for y, x in np.argwhere(candidates)
        )
        assert found == 1


def test_letters_and_digits_are_too_small_to_read_where_they_are_shown_first() -> None:
    side, scale = SIDE * 6, 6
    for shape in SHAPES:
        bare = badge(shape, "blue", " ", side)
        for letter in LETTERS:
            rows = np.flatnonzero((badge(shape, "blue", letter, side) != bare).any((1, 2)))
            assert 1.5 * scale < rows[-1] - rows[0] + 1 <= 3.5 * scale
    env = ReadDigits(level=2)
    env.reset({}, 0)
    x0, y0, x1, y1 = env.world.target
    plate = np.asarray(env.world.image.crop((x0 + 4, y0 + 4, x1 - 4, y1 - 4)).convert("L"))
    rows = np.flatnonzero((plate < 128).any(1))
    assert 2.5 * env.scale < rows[-1] - rows[0] + 1 <= 3.5 * env.scale


def test_images_shown_are_pil() -> None:
    env = ReadDigits()
    assert isinstance(env.reset({}, 0).images[0], Image.Image)
