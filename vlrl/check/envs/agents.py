"""Checks by whole episodes: the returns of the oracle and of random actions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from vlrl.check.envs.episodes import (
    Played,
    Policy,
    Request,
    Watched,
    junk_policy,
    oracle_policy,
    play,
    random_policy,
    usual_policy,
)
from vlrl.check.envs.verdict import EnvCheck
from vlrl.coordinates import Canvas
from vlrl.environment.observe import pixels_of
from vlrl.errors import NoOracle
from vlrl.protocols import Observation

SHOWN = "how it is shown"

EASY = 0.9
"""Share of episodes solved blindly from which on an environment teaches nothing."""


def oracle(env: Watched, request: Request) -> EnvCheck:
    """What its own right actions score."""
    if not env.has("oracle"):
        return EnvCheck("oracle", "info", "it has none: that it can be solved is not known")
    played: dict[int, Played] = {}
    for index in range(request.episodes):
        with suppress(NoOracle):
            played[index] = play(env, request, index, oracle_policy)
    if not played:
        return EnvCheck("oracle", "info", f"it knows none of the tasks of {request.episodes} episodes")
    missed = [f"seed {request.episode_seed(i)}: {_end(p)}" for i, p in played.items() if not p.solved]
    found = f"solves {len(played) - len(missed)} of {len(played)} episodes, {_returns([*played.values()])}"
    if unknown := request.episodes - len(played):
        found += f"; it knows no answer to {unknown} more"
    return EnvCheck("oracle", "fail" if missed else "ok", found, missed)


def heeds_how_it_is_shown(env: Watched, request: Request) -> EnvCheck:
    """Whether right actions stay right when its images are shown at another size: what `seen` is for."""
    if not env.has("seen"):
        return EnvCheck(
            SHOWN, "info", "it has no seen: places in actions are of its own images, or there are none"
        )
    for index in range(request.episodes if env.has("oracle") else 0):
        with suppress(NoOracle):
            if _solves_enlarged(env, request, index, oracle_policy):
                return EnvCheck(
                    SHOWN, "ok", "the oracle's actions are right on images shown larger, which `seen` reports"
                )
            return EnvCheck(
                SHOWN, "fail", "the oracle's actions miss where `seen` reports that images are shown larger"
            )
    _solves_enlarged(env, request, 0, usual_policy(env))
    return EnvCheck(
        SHOWN, "info", "it has the method seen; without an oracle it is not known whether it uses it"
    )


def _solves_enlarged(env: Watched, request: Request, index: int, policy: Policy) -> bool:
    """Whether a policy solves an episode, each action valid, whose images are shown at another size."""
    observation, rng = env.reset(request.task, request.episode_seed(index)), np.random.default_rng(0)
    for _ in range(request.max_turns):
        env.call("seen", _enlarged(observation))
        result = env.step(policy(env, rng))
        if result.info.get("invalid", False):
            return False
        if result.terminated or result.truncated:
            return bool(result.info.get("success", result.reward > 0))
        observation = result.observation
    return False


def _enlarged(observation: Observation) -> tuple[Canvas, ...]:
    """Its images as half as large again; a video is like its first frame."""
    images = [*observation.images, *(video.frames[0] for video in observation.videos)]
    sizes = [pixels_of(image).shape[:2] for image in images]
    return tuple(Canvas((h, w), (h * 3 // 2, w * 3 // 2)) for h, w in sizes)


def random_agent(env: Watched, request: Request) -> EnvCheck:
    """What blind actions score."""
    if not env.has("random_action"):
        return EnvCheck("random agent", "info", "it has no random_action: what chance scores is not known")
    played = [play(env, request, i, random_policy) for i in range(request.episodes)]
    solved = sum(p.solved for p in played)
    invalid = sum(p.invalid for p in played)
    found = f"solves {solved} of {len(played)} episodes, {_returns(played)}"
    if invalid:
        found += f"; {invalid} of its actions were invalid, so random_action is not well-formed"
        return EnvCheck("random agent", "warn", found)
    if solved >= EASY * len(played):
        return EnvCheck("random agent", "warn", f"{found}: there is nothing to learn")
    return EnvCheck("random agent", "ok", found)


def ends(env: Watched, request: Request) -> EnvCheck:
    """Whether it ends by itself."""
    title, turns = "episodes end", f"after {request.max_turns} turns"
    cut = "vlrl cuts an episode at episodes.max_turns"
    if not play(env, request, 0, usual_policy(env)).ended:
        return EnvCheck(title, "warn", f"random play has not ended {turns}; {cut}")
    if not play(env, request, 0, junk_policy).ended:
        return EnvCheck(title, "ok", f"by random play; nothing but nonsense does not end it {turns}: {cut}")
    return EnvCheck(title, "ok", "by random play, and by nothing but nonsense")


def _end(played: Played) -> str:
    how = "terminated" if played.terminated else "truncated" if played.truncated else "not ended"
    return f"{how} after {len(played.rewards)} turns, return {sum(played.rewards):g}"


def _returns(played: Sequence[Played]) -> str:
    rewards = [reward for each in played for reward in each.rewards] or [0.0]
    mean = sum(sum(each.rewards) for each in played) / len(played)
    turns = sum(len(each.rewards) for each in played) / len(played)
    return f"mean return {mean:.3g}, rewards {min(rewards):.3g} to {max(rewards):.3g}, {turns:.3g} turns"
