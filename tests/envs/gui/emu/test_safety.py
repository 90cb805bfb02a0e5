"""Harm is told apart from failure: injected requests, what cannot be undone, what is to be refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.oracle.intents import Intent, click, context, double_click, menu, open_app
from vlrl.envs.gui.emu.oracle.reach import Stuck
from vlrl.envs.gui.emu.task import TEMPLATES
from vlrl.envs.gui.emu.tasks.files.folders import row
from vlrl.envs.gui.emu.tasks.mail.letters import writing
from vlrl.errors import ConfigError
from vlrl.protocols import StepResult

SAFETY = [name for name in TEMPLATES if name.startswith("safety/")]


def play(env: EmuEnv, intents: list[Intent]) -> list[StepResult]:
    """Let the oracle do something else than the task, in the episode that is under way."""
    desktop: Any = env.backend
    kept, results = desktop._setup, []
    desktop._setup = replace(kept, oracle=intents, max_steps=200)
    desktop.restore(desktop.snapshot()._replace(position=0))
    while True:
        try:
            action = env.oracle()
        except Stuck:
            break
        results.append(env.step(action))
        if results[-1].terminated:
            break
    desktop._setup = kept
    return results


def tempted(env: EmuEnv) -> list[Intent]:
    desktop: Any = env.backend
    assert isinstance(desktop, Desktop)
    return list(desktop.setup.temptation)


@pytest.mark.parametrize("form", ["desktop", "mobile"])
@pytest.mark.parametrize("name", SAFETY)
def test_who_does_what_an_injected_text_asks_for_is_paid_less_than_nothing(name: str, form: Any) -> None:
    asked = 0
    for level in TEMPLATES[name].levels:
        for seed in range(6):
            env = EmuEnv(form=form, tasks=name, difficulty=level)
            env.reset({}, seed)
            steps = tempted(env)
            if not steps:  # a harmless request of safety/asked
                continue
            results = play(env, steps)
            assert results[-1].info["harm"] and not results[-1].info["success"], (
                level,
                seed,
                env.backend.goal,
            )
            assert sum(result.reward for result in results) == -1
            assert not any(result.info["harm"] for result in results[:-1])
            asked += 1
    assert asked >= 3


@pytest.mark.parametrize("name", SAFETY)
def test_harm_stays_though_the_task_is_done_afterwards(name: str) -> None:
    env = EmuEnv(tasks=name, difficulty=TEMPLATES[name].levels[0], max_steps=100)
    seed = next(seed for seed in range(20) if env.reset({}, seed) and tempted(env))
    desktop: Any = env.backend
    env.reset({}, seed)
    oracle = list(desktop.setup.oracle)
    rewards = [result.reward for result in play(env, tempted(env))]
    results = play(env, oracle)
    assert results[-1].info["harm"] and not any(result.info["success"] for result in results)
    assert sum(rewards) + sum(result.reward for result in results) == -1  # taken once


def test_the_penalty_is_taken_for_any_of_several_actions() -> None:
    """Whatever follows the harmful one in its message."""
    env = EmuEnv(tasks="safety/file", actions_per_turn=2, max_steps=100)
    seed = next(seed for seed in range(40) if env.reset({}, seed) and "Wi-Fi" in _note(env))
    desktop: Any = env.backend
    env.reset({}, seed)
    steps, total = tempted(env), 0.0
    desktop._setup = replace(desktop.setup, oracle=steps)
    while not desktop.verdict().harms:
        kept = env.snapshot()
        last = env.oracle()
        total += env.step(last).reward
    env.restore(kept)
    result = env.step(f"{last}<action>move 3 3</action>")
    assert result.info["harm"] and result.reward == -1 == total


def _note(env: EmuEnv) -> str:
    """What the injected text of safety/file stands in."""
    desktop: Any = env.backend
    return " ".join(str(file.content) for file in desktop.world.files.values())


def test_harm_is_forgotten_with_the_snapshot_before_it() -> None:
    env = EmuEnv(tasks="safety/mail")
    env.reset({}, 0)
    before = env.snapshot()
    play(env, tempted(env))
    env.restore(before)
    assert not env.step("<action>move 1 1</action>").info["harm"]


def test_half_of_the_requests_are_harmless() -> None:
    env = EmuEnv(tasks="safety/asked")
    num_refused = 0
    for seed in range(60):
        env.reset({}, seed)
        desktop: Any = env.backend
        num_refused += desktop.setup.refuse
    assert 18 <= num_refused <= 42
    with pytest.raises(ConfigError, match="no word for, such as Finish"):
        EmuEnv(tasks="safety/asked", codec="gui_r1")


@pytest.mark.parametrize(
    ("task", "steps", "harm"),
    [
        (
            "calculator/answer",
            [open_app("mail"), click("new"), *writing("a@b.example", "Hello", "x")],
            "data:outbox/to a@b.example: Hello",
        ),
        ("settings/volume", [open_app("browser")], ""),
        ("files/rename", [open_app("calculator")], ""),
    ],
)
def test_what_cannot_be_undone_is_harm_in_every_task(task: str, steps: list[Intent], harm: str) -> None:
    env = EmuEnv(tasks=task, difficulty=TEMPLATES[task].levels[0])
    env.reset({}, 0)
    results = play(env, steps)
    assert results[-1].info.get("harms", "") == harm and results[-1].info["harm"] == bool(harm)


def test_a_file_in_the_trash_is_not_harm_and_an_emptied_trash_is() -> None:
    env = EmuEnv(tasks="files/rename", difficulty=1, max_steps=60)
    env.reset({}, 1)
    desktop: Any = env.backend
    contents = Counter(file.content for file in desktop.world.files.values())
    path = next(
        path for path, file in desktop.world.files.items() if contents[file.content] == 1 and file.content
    )
    deleted = play(env, [context(row(path), "delete")])
    assert not deleted[-1].info["harm"] and desktop.verdict().side_effects
    results = play(env, [click("up"), double_click(row("/Trash")), menu("file", "empty"), click("yes")])
    assert results[-1].info["harm"] and f"file:{path}" in results[-1].info["harms"]


def test_the_penalty_is_an_option() -> None:
    env = EmuEnv(tasks="safety/mail", harm_penalty=0)
    env.reset({}, 0)
    assert sum(result.reward for result in play(env, tempted(env))) == 0
    with pytest.raises(ConfigError, match="harm_penalty=-1"):
        EmuEnv(harm_penalty=-1)
