"""MiniWoB++: all tasks are there, replays are the same to the pixel, oracles win, others do not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, Answer, Click, Drag, Finish, Key, Scroll, TypeText, Wait
from vlrl.envs.gui.web.env import MiniWobEnv
from vlrl.envs.gui.web.miniwob.pages import MiniWob, task_names
from vlrl.errors import ConfigError, NoOracle
from vlrl.types import ByteArray

SOLVED = (
    *("choose-list", "click-button", "click-button-sequence", "click-checkboxes", "click-checkboxes-large"),
    *(
        "click-checkboxes-transfer",
        "click-dialog",
        "click-dialog-2",
        "click-link",
        "click-option",
        "click-tab",
    ),
    *("click-test", "click-test-2", "click-test-transfer", "enter-date", "enter-password", "enter-text"),
    *("enter-text-2", "enter-text-dynamic", "enter-time", "find-word", "focus-text", "focus-text-2"),
    *("login-user", "read-table", "simple-arithmetic", "unicode-test"),
)
"""The tasks that the oracle solves, whatever the seed."""

# Plain pages, jQuery UI, d3 and SVG, a date picker, things that move, text that selecting scrolls.
SOME = (
    *("click-button", "click-tab-2", "use-slider", "drag-cube", "choose-date", "click-pie", "social-media"),
    *("scroll-text-2", "text-editor", "book-flight"),
)


@pytest.fixture(scope="module")
def world() -> Iterator[MiniWob]:
    backend = MiniWob()
    yield backend
    backend.close()


def acts(seed: int) -> Sequence[Action]:
    rng = np.random.default_rng(seed)
    first, second, third, fourth = ((int(rng.integers(480)), int(rng.integers(150, 630))) for _ in range(4))
    return (
        Click(first),
        TypeText("ab c"),
        Drag((second, third)),
        Key(("tab",)),
        Scroll(0, 90, fourth),
        Wait(700),
    )


def played(world: MiniWob, name: str, seed: int) -> tuple[list[ByteArray], list[object]]:
    images, told = [world.reset({"name": name}, seed).pixels], [world.goal, world.verdict()]
    for action in acts(seed):
        images.append(world.perform(action).pixels)
        told.append(world.verdict())
        if world.verdict().ended:
            break
    return images, told


def check_replay(world: MiniWob, name: str, seed: int) -> None:
    images, told = played(world, name, seed)
    again, told_again = played(world, name, seed)
    assert told == told_again, name
    for number, (first, second) in enumerate(zip(images, again, strict=True)):
        assert np.array_equal(first, second), f"{name}: image {number}"
    assert images[0].shape == (630, 480, 3)
    assert len(np.unique(images[0])) > 5, f"{name} is blank"


@pytest.mark.parametrize("name", SOME)
def test_replays_are_the_same_to_the_pixel(name: str, world: MiniWob) -> None:
    check_replay(world, name, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_replays_of_all_tasks_are(seed: int, world: MiniWob) -> None:
    for name in task_names():
        check_replay(world, name, seed)


def test_the_goal_is_the_sentence_that_the_page_shows(world: MiniWob) -> None:
    for name in ("email-inbox-nl-turk", "email-inbox-forward-nl", "email-inbox-forward-nl-turk", "click-tab"):
        world.reset({"name": name}, 3)
        shown = world.page.evaluate("document.getElementById('query').textContent")
        assert world.goal == " ".join(shown.split()), name


def test_two_seeds_differ(world: MiniWob) -> None:
    goals = set()
    for seed in range(4):
        world.reset({"name": "click-button"}, seed)
        goals.add(world.goal)
    assert len(goals) > 1
    world.reset({}, 1)
    drawn = world.goal
    world.reset({}, 1)
    assert world.goal == drawn


def solve(world: MiniWob, name: str, seed: int) -> float | None:
    world.reset({"name": name}, seed)
    for _ in range(world.max_steps):
        world.perform(world.oracle())
        if world.verdict().ended:
            break
    return world.verdict().reward


@pytest.mark.parametrize(
    "name", ["click-button", "choose-list", "click-checkboxes", "enter-date", "login-user"]
)
def test_oracles_win(name: str, world: MiniWob) -> None:
    assert solve(world, name, 0) == 1.0
    assert world.verdict().success


@pytest.mark.slow
def test_oracles_of_all_solved_tasks_win(world: MiniWob) -> None:
    lost = [(name, seed) for name in SOLVED for seed in range(10) if solve(world, name, seed) != 1.0]
    assert lost == []
    assert len(SOLVED) >= 27


def test_who_does_nothing_wins_nothing(world: MiniWob) -> None:
    for name in SOLVED[::9]:
        for act in (Wait(1000), Finish(True), Finish(False), Answer("yes")):
            world.reset({"name": name}, 3)
            world.perform(act)
            verdict = world.verdict()
            assert (verdict.success, verdict.progress, verdict.reward) == (False, 0.0, 0.0)


def test_a_wrong_click_pays_less_than_nothing() -> None:
    env = MiniWobEnv(tasks="click-test-2")
    env.reset({}, 0)
    env.backend.reset({"name": "click-test-2"}, 0)
    wrong = next(e.box for e in env.backend.elements() if e.name == "TWO")  # type: ignore[attr-defined]
    result = env.step(env.codec.format(Click((wrong[0] + 9, wrong[1] + 9)), env.view))
    assert (result.reward, result.terminated, result.info["success"]) == (-1.0, True, False)
    assert result.info["raw_reward"] == -1.0
    env.close()


def test_time_takes_nothing(world: MiniWob) -> None:
    world.reset({"name": "click-test"}, 0)
    for _ in range(3):
        world.perform(Wait(60_000))
    assert not world.verdict().ended
    world.perform(world.oracle())
    assert world.verdict().reward == 1.0


@pytest.mark.parametrize("reward", ["raw", "success", "progress"])
def test_every_reward_rule(reward: str) -> None:
    env = MiniWobEnv(tasks=["click-test"], reward=reward)
    env.reset({}, 0)
    result = env.step(env.oracle())
    assert (result.reward, result.terminated, result.info["success"]) == (1.0, True, True)
    env.close()


def test_tasks_are_chosen_by_patterns() -> None:
    assert len(task_names()) == 125
    assert set(SOLVED) <= set(task_names())
    chosen = MiniWob(tasks=["click-tab*", "use-slider"]).tasks
    assert "use-slider" in chosen
    assert all(name == "use-slider" or name.startswith("click-tab") for name in chosen)


def test_what_is_wrong_is_named(world: MiniWob) -> None:
    with pytest.raises(ConfigError, match="did you mean 'click-button'"):
        MiniWob(tasks="clik-button")
    with pytest.raises(ConfigError, match="'click-foo' is none of the 125"):
        world.reset({"name": "click-foo"}, 0)
    with pytest.raises(ConfigError, match="unknown keys"):
        world.reset({"level": 1}, 0)
    with pytest.raises(ConfigError, match="step_ms=0"):
        MiniWob(step_ms=0)
    with pytest.raises(ConfigError, match="sandbox='no'"):
        MiniWob(sandbox="no")  # type: ignore[arg-type]
    world.reset({"name": "bisect-angle"}, 0)
    with pytest.raises(NoOracle):
        world.oracle()
