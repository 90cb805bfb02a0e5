"""The state is a value and the pixels a function of it: replays, snapshots, and any actions whatever."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from gallery import Bench, desktop_of, known
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.envs.gui.actions import (
    KEY_NAMES,
    Action,
    ButtonDown,
    ButtonUp,
    Click,
    Drag,
    Key,
    KeyDown,
    KeyUp,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    SystemButton,
    TypeText,
    Wait,
)
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.opening import opening
from vlrl.envs.gui.emu.task import TEMPLATES

SIZES = {"desktop": (640, 480), "mobile": (480, 704)}
POINTS = st.tuples(st.integers(-5, 645), st.integers(-5, 709))
MAYBE = st.none() | POINTS
BUTTONS = st.sampled_from(["left", "middle", "right"])
MODIFIERS = st.lists(st.sampled_from(["ctrl", "shift", "alt", "super"]), max_size=2).map(tuple)
KEYS = st.sampled_from(sorted(KEY_NAMES))
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Move, POINTS),
    st.builds(Click, MAYBE, BUTTONS, st.integers(1, 3), MODIFIERS),
    st.builds(Click, POINTS),
    st.builds(ButtonDown, BUTTONS, MAYBE),
    st.builds(ButtonUp, BUTTONS, MAYBE),
    st.builds(Drag, st.lists(POINTS, min_size=2, max_size=4).map(tuple), BUTTONS, MODIFIERS),
    st.builds(Scroll, st.integers(-300, 300), st.integers(-900, 900), MAYBE),
    st.builds(TypeText, st.text(max_size=12)),
    st.builds(Key, st.lists(KEYS, min_size=1, max_size=3).map(tuple)),
    st.builds(KeyDown, KEYS),
    st.builds(KeyUp, KEYS),
    st.builds(Wait, st.integers(0, 100_000)),
    st.builds(LongPress, POINTS),
    st.builds(Swipe, POINTS, POINTS),
    st.builds(SystemButton, st.sampled_from(["back", "home", "menu", "enter"])),
    st.builds(OpenApp, st.sampled_from(["editor", "Settings", "gallery", "no such app"])),
)


@pytest.fixture(scope="module")
def patch() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        known(patch)
        yield


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    form=st.sampled_from(["desktop", "mobile"]),
    page=st.sampled_from(["first", "second", "third"]),
    theme=st.sampled_from(["daylight", "dusk"]),
    bar_side=st.sampled_from(["bottom", "top", "left"]),
    actions=st.lists(ACTIONS, min_size=1, max_size=25),
    cut=st.integers(0, 25),
)
def test_any_actions_are_taken_and_give_the_same_again(
    patch: None, form: str, page: str, theme: str, bar_side: str, actions: list[Action], cut: int
) -> None:
    """Played through, from a snapshot in the middle, and shown by a desktop that has painted nothing."""

    looks: dict[str, Any] = {"form": form, "size": SIZES[form], "theme": theme, "bar_side": bar_side}
    first = Bench(page, **looks).desktop
    cut = min(cut, len(actions) - 1)
    for action in actions[:cut]:
        first.perform(action)
    middle = pickle.loads(pickle.dumps(first.snapshot()))
    for action in actions[cut:]:
        last = first.perform(action)
    end, elements = first.snapshot(), first.elements()

    first.restore(middle)
    for action in actions[cut:]:
        again = first.perform(action)
    assert first.snapshot() == end
    assert np.array_equal(again.pixels, last.pixels)

    other = desktop_of(**looks)  # every pixel painted at once, not where something changed
    other.reset({"name": "test/gallery"}, 0)
    other.restore(end)
    shown = other.perform(Wait(0))
    assert np.array_equal(shown.pixels, last.pixels) and shown.pointer == last.pointer
    assert other.elements() == elements


@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_the_same_seed_gives_the_same_episode_bit_by_bit(form: str) -> None:
    def episode(env: EmuEnv, seed: int) -> list[bytes]:
        env.reset({}, seed)
        pixels = [env._shown().pixels.tobytes()]
        rng = np.random.default_rng(seed)
        for _ in range(8):
            result = env.step(env.random_action(rng))
            if result.terminated or result.truncated:
                break
            pixels.append(env._shown().pixels.tobytes())
        return pixels

    one, other = EmuEnv(form=form), EmuEnv(form=form)  # type: ignore[arg-type]
    for seed in range(6):
        assert episode(one, seed) == episode(other, seed)
    assert episode(one, 3) == episode(one, 3)


def test_a_snapshot_is_not_touched_by_what_comes_after(patch: None) -> None:
    desk = Bench()
    before = desk.desktop.snapshot()
    kept = pickle.dumps(before)
    desk.click("agreed").click("story").do(TypeText("more"), OpenApp("editor"), TypeText("text"))
    assert pickle.dumps(before) == kept and before.world is not desk.desktop.world


def test_a_screenshot_stays_as_it_was_given(patch: None) -> None:
    desk = Bench()
    screen = desk.desktop.perform(Move((10, 10)))
    kept = screen.pixels.copy()
    desk.do(OpenApp("settings"), Move((300, 200)))
    assert np.array_equal(screen.pixels, kept)


def test_time_passes_by_the_action_alone(patch: None) -> None:
    desk = Bench()
    start = desk.desktop.world.time_ms
    desk.do(Wait(90_000), Move((1, 1)))
    assert desk.desktop.world.time_ms == start + 91_000
    hours, minutes = divmod((start + 91_000) // 60_000 % 1440, 60)
    assert f"{hours:02d}:{minutes:02d}" in [e.name for e in desk.desktop.elements() if e.role == "timer"]


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_an_episode_leaves_the_opening_that_it_shares_with_others_as_it_was(name: str) -> None:
    opening.cache_clear()
    env, level, rng = EmuEnv(tasks=name), TEMPLATES[name].levels[0], np.random.default_rng(0)
    task = {"name": name, "difficulty": level}
    env.reset(task, 3)
    desktop: Any = env.backend
    before = pickle.dumps((desktop.world, desktop.goal, desktop.setup.files, desktop.setup.data))
    for number in range(12):
        text = env.oracle() if number < 6 else env.random_action(rng)
        if (result := env.step(text)).terminated or result.truncated:
            break
    EmuEnv(tasks=name).reset(task, 3)
    assert opening.cache_info().hits == 1
    env.reset(task, 3)
    assert pickle.dumps((desktop.world, desktop.goal, desktop.setup.files, desktop.setup.data)) == before


def test_desktops_of_other_looks_sizes_or_forms_do_not_share_an_opening() -> None:
    opening.cache_clear()
    for options in (
        {},
        {"theme": "midnight"},
        {"size": [800, 600]},
        {"form": "mobile"},
        {"theme": ["midnight"]},
    ):
        EmuEnv(tasks="basics/click_button", **options).reset({}, 3)  # type: ignore[arg-type]
    assert (opening.cache_info().misses, opening.cache_info().hits) == (4, 1)


def test_a_screen_on_which_nothing_changes_is_the_same_one_and_cannot_be_written_to() -> None:
    desktop = EmuEnv().backend
    first = desktop.reset({"name": "basics/click_button"}, 1)
    moved = desktop.perform(Move((5, 5)))
    assert desktop.perform(Move((5, 5))) is moved and moved is not first
    assert not np.array_equal(first.pixels, moved.pixels)
    with pytest.raises(ValueError, match="read-only"):
        moved.pixels[0, 0] = 7
