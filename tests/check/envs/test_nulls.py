"""Null agents: found where an environment can be won without looking, and no built-in one can."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from vlrl.check.envs.episodes import Request, Watched
from vlrl.check.envs.nulls import MARGIN, NullAgent, null_agents, null_check
from vlrl.registry import BUILT_IN

WON = '''
import numpy as np

from vlrl.protocols import Observation, StepResult


class Game:
    """Right or left, as the words or the seed say; right in `right` of the episodes."""

    reward_range = (0.0, 1.0)

    def __init__(self, right=0.5, told=False):
        self.share, self.told = right, told

    def reset(self, task, seed):
        self.right = np.random.default_rng(seed).random() < self.share
        words = ("the green one" if self.right else "the red one") if self.told else "which one"
        return Observation(f"Take {words}.", [np.full((8, 8, 3), 255 * self.right, np.uint8)])

    def step(self, action):
        won = action == self.oracle()
        return StepResult(Observation("."), float(won), True, False, {"success": won})

    def oracle(self):
        return "right" if self.right else "left"

    def random_action(self, rng):
        return ("left", "right")[rng.integers(2)]

    def close(self):
        pass
'''


@pytest.fixture
def game(tmp_path: Path) -> str:
    path = tmp_path / "game.py"
    path.write_text(WON)
    return f"{path}:Game"


def agents(name: str, options: Mapping[str, Any] | None = None, **fields: Any) -> dict[str, NullAgent]:
    request = Request(name, options or {}, **{"episodes": 200, "timeout_s": 600.0, **fields})
    with Watched(request) as env:
        return {agent.name: agent for agent in null_agents(env, request, chance_plays=4)}


def test_a_game_that_is_won_by_one_action_is_found(game: str) -> None:
    found = agents(game, {"right": 0.8})
    for name in ("usual action", "best action", "no image"):
        assert found[name].solved == pytest.approx(0.8, abs=0.05) and found[name].is_marked
        assert found[name].example == "right" and found[name].chance == pytest.approx(0.5, abs=0.05)
    request = Request(game, {"right": 0.8}, episodes=200)
    with Watched(request) as env:
        check = null_check(env, request)
    assert check.status == "warn" and "right" in check.findings[0]


def test_a_game_whose_words_tell_the_action_is_found(game: str) -> None:
    found = agents(game, {"told": True})
    assert found["no image"].solved == 1 and found["no image"].is_marked
    assert not found["best action"].is_marked


def test_a_fair_game_is_not_marked(game: str) -> None:
    assert not any(agent.is_marked for agent in agents(game).values())


def test_few_episodes_mark_nothing_by_luck(game: str) -> None:
    assert not any(agent.is_marked for agent in agents(game, {"right": 0.6}, episodes=20).values())


# Turns of one episode are drawn at a megapixel: 20 of them take as long as 400 questions.
SLOW_TO_SHOW = ("visual/search", "visual/read_digits")
SETS = [name for name in BUILT_IN["envs"] if name.startswith("visual/")]


# Sums of two angles, and perimeters, are not equally frequent: docs/environments.md has the figure.
ALLOWED = {"visual/geometry": 0.06}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SETS, "gui/emu"])
def test_no_built_in_environment_is_won_without_looking(name: str) -> None:
    found = agents(name, episodes=40 if name in SLOW_TO_SHOW or name == "gui/emu" else 400)
    assert found
    for agent in found.values():
        assert agent.excess <= max(ALLOWED.get(name, MARGIN), 2 * agent.error), (name, agent)
