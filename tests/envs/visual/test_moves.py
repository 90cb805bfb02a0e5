"""Games played by moves: the oracle solves every board, texts are read strictly, episodes are values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.environment.open import open_env
from vlrl.envs.visual.games.frozen_lake import FrozenLake
from vlrl.errors import ConfigError

GAMES: list[tuple[str, dict[str, Any]]] = [
    ("visual/frozen_lake", {}),
    ("visual/mazes", {}),
    ("visual/mazes", {"braid": 0.7}),
    ("visual/sokoban", {}),
    ("visual/sliding_puzzle", {}),
    ("visual/jigsaw", {}),
    ("visual/jigsaw", {"mode": "order"}),
]
EPISODES = [
    *GAMES,
    ("visual/frozen_lake", {"is_slippery": True, "size": 6}),
    ("visual/sliding_puzzle", {"style": "image"}),
    ("visual/search", {}),
    ("visual/read_digits", {"grid": 5}),
]


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_every_board_is_solved_within_its_steps(name: str, options: dict[str, Any]) -> None:
    env: Any = open_env(name, {"image_size": 96, **options})
    for level in range(1, env.num_levels + 1):
        for seed in range(200):
            game = env.make(*env.begin({"level": level}, seed))
            state, num_steps = game.start, 0
            assert game.status(state) == "open"
            while game.status(state) == "open":
                state, num_steps = game.move(state, game.best(state)), num_steps + 1
                assert num_steps <= game.max_steps, f"{name} level {level} seed {seed}"
            assert game.status(state) == "won"


CHANCE = {"frozen_lake": 0.085, "mazes": 0.07, "sokoban": 0.13, "sliding_puzzle": 0.07, "jigsaw": 0.16}
"""Share of boards of level 1 that random moves solve, from 1,000 boards; of mazes with braid 0.7."""


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_random_moves_solve_few_boards_of_level_1_and_hardly_any_above(
    name: str, options: dict[str, Any]
) -> None:
    env: Any = open_env(name, {"image_size": 96, **options})
    rng = np.random.default_rng(11)
    for level, chance in ((1, CHANCE[name.removeprefix("visual/")]), (2, 0.03), (4, 0.01)):
        won = 0
        for seed in range(150):
            game = env.make(*env.begin({"level": level}, seed))
            state, left = game.start, game.max_steps
            while left and game.status(state) == "open":
                state, left = game.move(state, game.random_move(rng)), left - 1
            won += game.status(state) == "won"
        spread = (chance * (1 - chance) / 150) ** 0.5
        assert won / 150 <= chance + 4 * spread, f"level {level}"


@pytest.mark.parametrize(("name", "options"), GAMES)
def test_the_oracle_finds_home_after_wrong_moves(name: str, options: dict[str, Any]) -> None:
    env: Any = open_env(name, {"image_size": 96, "max_steps": 300, **options})
    rng = np.random.default_rng(0)
    solved = 0
    for seed in range(10):
        env.reset({"level": 2}, seed)
        result = env.step(env.random_action(rng))
        while not (result.terminated or result.truncated):
            result = env.step(env.oracle())
        solved += result.info["success"]
    assert solved >= 7  # a wrong move may end in a hole, or push a box into a corner


@pytest.mark.parametrize(("name", "options"), EPISODES)
def test_a_restored_episode_goes_on_the_same(name: str, options: dict[str, Any]) -> None:
    def results(env: Any, actions: list[str]) -> list[Any]:
        found = []
        for action in actions:
            result = env.step(action)
            pixels = [np.asarray(image).tobytes() for image in result.observation.images]
            found.append((pixels, result.observation.text, result.reward, result.terminated, result.info))
            if result.terminated or result.truncated:
                break
        return found

    env: Any = open_env(name, {"image_size": 112, **options})
    other: Any = open_env(name, {"image_size": 112, **options})
    env.reset({"level": 3}, 5)
    rng = np.random.default_rng(3)
    if "order" not in options.values() and "read" not in name:
        env.step(env.oracle())
    snapshot = env.snapshot()
    actions = [env.oracle(), *(env.random_action(rng) for _ in range(12))]
    first = results(env, actions)
    other.restore(json.loads(json.dumps(snapshot)))  # plain values, to one that never saw the episode
    assert results(other, actions) == first
    env.restore(snapshot)  # in the same world, after its end
    assert results(env, actions) == first


def test_several_moves_are_played_up_to_the_end() -> None:
    env = FrozenLake(max_moves=3, step_penalty=0.01, invalid_penalty=0.1)
    env.reset({}, 0)
    before = env.state
    result = env.step("<action>Left,  UP , left</action>")
    assert result.info["num_steps"] == 3
    assert env.state == before  # along the edge
    assert result.observation.text == "Nothing moved."
    assert result.reward == pytest.approx(-0.03)
    for wrong in ("<action>up, up, up, up</action>", "<action>up,</action>", "<action>up up</action>", "up"):
        result = env.step(wrong)
        assert result.info["invalid"]
        assert result.reward == pytest.approx(-0.1)
    assert result.info["num_steps"] == 7
    assert "up to 3" in env.system_prompt.lower()


def test_an_episode_is_cut_at_its_steps_and_no_later() -> None:
    env = FrozenLake(max_steps=3, max_moves=5)
    env.reset({}, 0)
    assert not env.step("no move").truncated
    result = env.step("<action>up, up, up, up</action>")
    assert (result.terminated, result.truncated, result.info["num_steps"]) == (False, True, 3)
    with pytest.raises(RuntimeError, match="reset"):
        env.step("<action>up</action>")


@given(st.text(alphabet="<>/action,up downlefrigh\n", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    env = FrozenLake(image_size=96, max_moves=2)
    env.reset({}, 1)
    assert env.step(text).info["num_steps"] >= 1


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("visual/mazes", {"max_steps": 0}),
        ("visual/mazes", {"max_moves": 1.5}),
        ("visual/mazes", {"step_penalty": -1}),
        ("visual/mazes", {"invalid_penalty": float("nan")}),
        ("visual/mazes", {"braid": 2}),
        ("visual/frozen_lake", {"size": 1}),
        ("visual/frozen_lake", {"is_slippery": "yes"}),
        ("visual/sliding_puzzle", {"style": "words"}),
        ("visual/jigsaw", {"mode": "both"}),
        ("visual/search", {"grid": 1}),
        ("visual/search", {"grid": 16}),
        ("visual/search", {"frame": "resized_pixels"}),
        ("visual/search", {"scale": 1}),
        ("visual/read_digits", {"digit_height": 0}),
        ("visual/read_digits", {"level": 5, "grid": 16}),
    ],
)
def test_wrong_options_are_refused_by_name(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{name}.*{list(options)[-1]}"):
        open_env(name, options)
