"""The environment gui/emu: its options, its words, the contract."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.task import TEMPLATES, Template
from vlrl.envs.gui.emu.tasks.basics import CHOICES
from vlrl.envs.gui.emu.variation import LEAST
from vlrl.errors import ConfigError
from vlrl.registry import resolve


def test_it_is_registered_and_its_oracle_earns_the_reward() -> None:
    env = resolve("envs", "gui/emu")(language="en")
    observation = env.reset({"name": "basics/click_button"}, 7)
    assert observation.text.startswith("Task: Press the button")
    assert observation.images[0].shape == (480, 640, 3) and observation.images[0].dtype == np.uint8
    result = env.step(env.oracle())
    assert result.reward == 1 and result.terminated and result.info["success"]
    env.close()
    env.close()


def test_the_instructions_may_be_one_s_own() -> None:
    assert "double_click X Y" in EmuEnv().system_prompt
    env = EmuEnv(tasks="basics/click_button", instructions="Act by <action>click X Y</action>.")
    assert env.system_prompt == "Act by <action>click X Y</action>."
    env.reset({}, 3)
    assert env.step(env.oracle()).info["success"]


def test_the_oracle_goes_on_where_places_are_written_coarsely() -> None:
    env = EmuEnv(tasks="buttons/lights", difficulty=1, shown_size=[112, 84])
    for seed in range(5):
        env.reset({}, seed)
        assert not env.step(env.oracle()).terminated
        assert env.step(env.oracle()).info["success"]


def won(env: EmuEnv, seed: int, task: Mapping[str, Any] = MappingProxyType({})) -> bool:
    env.reset(task, seed)
    while not (result := env.step(env.oracle())).terminated and not result.truncated:
        pass
    return bool(result.info["success"])


@pytest.mark.parametrize("task", ["paint/frame", "paint/erase", "files/drag"])
def test_the_oracle_goes_on_after_a_drag_that_is_written_coarsely(task: str) -> None:
    env = EmuEnv(tasks=task, size=[1280, 800], shown_size=[644, 392], codec="qwen2_5_computer_use")
    assert all(won(env, seed) for seed in range(3))


@pytest.mark.parametrize("codec", ["qwen3_mobile_use", "uitars_1_5"])
@pytest.mark.parametrize("task", ["browser/open_page", "forms/checkout", "paint/connect", "sheet/total"])
def test_the_oracle_of_a_phone_speaks_its_grammars(codec: str, task: str) -> None:
    """They have no chords; UI-TARS' drag is the finger that scrolls, Qwen's swipe the one that draws."""
    env = EmuEnv(form="mobile", tasks=task, difficulty=2, codec=codec)
    assert all(won(env, seed) for seed in range(2))


@pytest.mark.parametrize("form", ["desktop", "mobile"])
@pytest.mark.parametrize(
    "task", ["calendar/when", "clock/add_alarm", "files/drag", "forms/flight", "paint/fill"]
)
def test_the_least_screen_is_enough_for_the_largest_letters(form: Any, task: str) -> None:
    if form in TEMPLATES[task].forms:
        env = EmuEnv(size=LEAST[form][125], form=form, tasks=task, scale=125, font_size=14)
        assert all(won(env, seed) for seed in range(3))


def test_a_grammar_without_a_word_for_answers_is_asked_nothing() -> None:
    env = EmuEnv(tasks="*", codec="gui_r1")
    names = {template.name for template in env.backend.templates}  # type: ignore[attr-defined]
    assert {"mail/secret", "sheet/question"}.isdisjoint(names)
    assert len(names) > 80
    assert {template.name for template in EmuEnv().backend.templates} > names  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="'gui_r1' has no word for"):
        EmuEnv(tasks="mail/secret", codec="gui_r1")


@pytest.mark.slow
def test_no_task_is_offered_that_a_grammar_cannot_say() -> None:
    """AndroidWorld's has no drag from place to place, GUI-R1's neither; the rest they play."""
    offered = {}
    for codec in ("androidworld", "gui_r1"):
        env = EmuEnv(form="mobile", codec=codec)
        templates: list[Template] = env.backend.templates  # type: ignore[attr-defined]
        offered[codec] = {template.name for template in templates}
        for template in templates:
            level = template.levels[-1]
            assert won(env, level, {"name": template.name, "difficulty": level}), template.name
    phone = {name for name, template in TEMPLATES.items() if "mobile" in template.forms}
    drags = {"paint/connect", "paint/erase", "paint/frame"}
    pulls = {"notices/dismiss", "notices/quick_setting", "notices/read"}
    assert phone - offered["androidworld"] == drags | pulls and len(offered["androidworld"]) == 127
    assert len(offered["gui_r1"]) == 99  # without questions and drags
    desktop = {template.name for template in EmuEnv(codec="gui_r1").backend.templates}  # type: ignore[attr-defined]
    assert len(desktop) == 113 and desktop.isdisjoint(drags | {"calendar/drag", "files/drag"})
    with pytest.raises(ConfigError, match="'androidworld' has no word for, such as Drag"):
        EmuEnv(form="mobile", tasks="paint/frame", codec="androidworld")


@pytest.mark.parametrize("task", ["forms/cart", "mail/to_calendar"])
@pytest.mark.parametrize("codec", ["uitars_1_5", "gui_r1"])
def test_a_scroll_of_which_only_the_direction_is_said_skips_nothing(codec: str, task: str) -> None:
    """Half of this screen is six times what the letter shows: it went from the first line to the last."""
    env = EmuEnv(size=[2560, 1440], codec=codec)
    assert won(env, 0, {"name": task, "difficulty": 3})


@pytest.mark.slow  # all of them, and at the largest size
@pytest.mark.parametrize("size", [[2560, 1440], [3840, 2160]])
def test_every_oracle_plays_by_directions_on_a_large_screen(size: list[int]) -> None:
    env = EmuEnv(size=size, codec="uitars_1_5")
    for name, template in TEMPLATES.items():
        if "desktop" in template.forms:
            for level in template.levels:
                assert won(env, level, {"name": name, "difficulty": level}), name


def test_a_wrong_button_ends_it_without_reward() -> None:
    env = EmuEnv(tasks="basics/click_button", language="en")
    env.reset({}, 3)
    buttons = [e for e in env.backend.elements() if e.role == "button"]  # type: ignore[attr-defined]
    named = [e for e in buttons if e.name in CHOICES.values()]
    wrong = next(e for e in named if f"“{e.name}”" not in env.backend.goal)
    x, y = (wrong.box[0] + wrong.box[2]) // 2, (wrong.box[1] + wrong.box[3]) // 2
    result = env.step(f"<action>click {x} {y}</action>")
    assert result.reward == 0 and result.terminated and not result.info["success"]


def test_an_episode_goes_on_from_a_snapshot() -> None:
    env = EmuEnv(tasks="editor/*", difficulty=2)
    env.reset({}, 5)
    for _ in range(4):
        env.step(env.oracle())
    middle, rewards, shown = env.snapshot(), [], []
    for _ in range(2):
        env.restore(middle)
        for _ in range(12):
            result = env.step(env.oracle())
            if result.terminated:
                break
        rewards.append(result.reward)
        shown.append(result.observation.images[0].tobytes())
    assert rewards == [1, 1] and shown[0] == shown[1]


def test_the_task_and_the_looks_come_from_the_seed_or_are_pinned() -> None:
    env = EmuEnv(language="en", theme=["paper", "slate"])
    themes, goals = set(), set()
    for seed in range(12):
        goals.add(env.reset({}, seed).text)
        themes.add(env.backend.world.settings["theme"])  # type: ignore[attr-defined]
    assert themes == {"paper", "slate"} and len(goals) > 6
    hard = EmuEnv(difficulty=[2, 3])
    for seed in range(8):
        hard.reset({}, seed)
        assert hard.backend.snapshot().episode.level >= 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "watch"}, "form='watch'"),
        ({"size": [10, 10]}, "size="),
        ({"size": [560, 420]}, "desktop from .640, 480."),
        ({"size": [320, 568], "form": "mobile"}, "mobile from .384, 704."),
        ({"tasks": "editr/*"}, "names none of"),
        ({"tasks": []}, "no task"),
        ({"difficulty": 4}, "difficulty=4"),
        ({"theme": "neon"}, "theme='neon'"),
        ({"font_size": []}, "font_size="),
        ({"codec": "no such"}, "no such"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        EmuEnv(**options)


def test_a_wrong_task_is_named() -> None:
    env = EmuEnv()
    with pytest.raises(ConfigError, match="unknown keys"):
        env.reset({"nam": "x"}, 0)
    with pytest.raises(ConfigError, match="no task 'x'"):
        env.reset({"name": "x"}, 0)
    with pytest.raises(ConfigError, match="no difficulty 3"):
        env.reset({"name": "editor/replace_text", "difficulty": 3}, 0)
    with pytest.raises(RuntimeError, match="reset"):
        env.backend.verdict()


def test_what_the_agent_sees_names_no_ids_and_no_answer() -> None:
    """The accessibility tree says what is on the screen: nothing of the task behind it."""
    env = EmuEnv()
    for name in TEMPLATES:
        env.reset({"name": name}, 1)
        for element in env.backend.elements():  # type: ignore[attr-defined]
            x0, y0, x1, y1 = element.box
            assert x0 <= x1 and y0 <= y1 and element.role == element.role.lower()
            assert "\x1f" not in element.name
