"""FrozenLake plays as Gymnasium's does, step by step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from vlrl.envs.visual.games.frozen_lake import MOVES, FrozenLake, Lake, has_path


def described(lake: Lake) -> list[str]:
    letters = np.where(lake.holes, "H", "F")
    letters[0], letters[-1] = "S", "G"
    return ["".join(row) for row in letters.reshape(lake.size, lake.size)]


def gymnasiums(lake: Lake) -> Any:
    made = gymnasium.make(
        "FrozenLake-v1", desc=described(lake), is_slippery=lake.slip_seed is not None, max_episode_steps=10**6
    )
    made.reset(seed=0)
    return made


@pytest.mark.parametrize("level", [1, 3, 5])
def test_moves_are_gymnasiums(level: int) -> None:
    rng = np.random.default_rng(level)
    for seed in range(15):
        env = FrozenLake(level=level, image_size=96, max_steps=10**6)
        env.reset({}, seed)
        real = gymnasiums(env.world)
        for _ in range(200):
            direction = int(rng.integers(4))
            result = env.step(f"<action>{MOVES[direction]}</action>")
            field, reward, terminated, truncated, _ = real.step(direction)
            assert int(result.info["state"]) == field
            assert (result.reward, result.terminated, result.truncated) == (reward, terminated, truncated)
            assert result.info["success"] == (reward == 1)
            if terminated:
                break


def test_slips_are_gymnasiums() -> None:
    rng = np.random.default_rng(0)
    turned = np.zeros(3)
    for seed in range(10):
        env = FrozenLake(level=2, is_slippery=True, image_size=96, max_steps=10**6)
        env.reset({}, seed)
        outcomes = gymnasiums(env.world).unwrapped.P
        for number in range(100):
            direction = int(rng.integers(4))
            turn = env.world.slip(number) + 1
            _, field, reward, terminated = outcomes[env.state[0]][direction][turn]
            turned[turn] += 1
            result = env.step(f"<action>{MOVES[direction]}</action>")
            assert (env.state[0], result.reward, result.terminated) == (field, reward, terminated)
            if terminated:
                break
    assert np.abs(turned / turned.sum() - 1 / 3).max() < 0.12


def test_maps_have_a_path_and_holes() -> None:
    env = FrozenLake(size=8)
    shares = []
    for seed in range(100):
        env.reset({}, seed)
        holes = env.world.holes.reshape(8, 8)
        assert has_path(holes)
        shares.append(holes.mean())
    assert 0.1 < np.mean(shares) < 0.2  # fewer than a fifth: maps without a path are drawn again
    assert not has_path(np.array([[0, 1], [1, 0]], bool))


def test_the_best_play_on_slippery_ice_wins_more_often_than_the_shortest_way() -> None:
    env = FrozenLake(level=1, is_slippery=True, image_size=96)
    dry = FrozenLake(level=1, image_size=96)
    wins = {"best": 0, "shortest": 0}
    for seed in range(60):
        for player in wins:
            env.reset({}, seed)
            plan = Lake(env.world.holes.reshape(4, 4))
            result = None
            while result is None or not (result.terminated or result.truncated):
                move = env.oracle() if player == "best" else f"<action>{plan.best(env.state)}</action>"
                result = env.step(move)
            wins[player] += result.info["success"]
    assert wins["best"] > 1.5 * wins["shortest"]
    assert dry.system_prompt != env.system_prompt
