"""Questions answered by whole episodes: what knowing everything scores, and what chance scores."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.env_check.episodes import (
    Played,
    Request,
    Watched,
    junk_policy,
    oracle_policy,
    play,
    random_policy,
    usual_policy,
)
from vlrl.env_check.verdict import Check

EASY = 0.9
"""Share of episodes solved blindly from which on an environment teaches nothing."""


def oracle(env: Watched, request: Request) -> Check:
    """What its own right actions score."""
    if not env.has("oracle"):
        return Check("oracle", "info", "it has none: that it can be solved is not known")
    played = [play(env, request, i, oracle_policy) for i in range(request.episodes)]
    missed = [f"seed {request.episode_seed(i)}: {_end(p)}" for i, p in enumerate(played) if not p.solved]
    found = f"solves {len(played) - len(missed)} of {len(played)} episodes, {_returns(played)}"
    return Check("oracle", "fail" if missed else "ok", found, missed)


def random_agent(env: Watched, request: Request) -> Check:
    """What blind actions score."""
    if not env.has("random_action"):
        return Check("random agent", "info", "it has no random_action: what chance scores is not known")
    played = [play(env, request, i, random_policy) for i in range(request.episodes)]
    solved = sum(p.solved for p in played)
    invalid = sum(p.invalid for p in played)
    found = f"solves {solved} of {len(played)} episodes, {_returns(played)}"
    if invalid:
        found += f"; {invalid} of its actions were invalid, so random_action is not well-formed"
        return Check("random agent", "warn", found)
    if solved >= EASY * len(played):
        return Check("random agent", "warn", f"{found}: there is nothing to learn")
    return Check("random agent", "ok", found)


def ends(env: Watched, request: Request) -> Check:
    """Whether it ends by itself."""
    title, turns = "episodes end", f"after {request.max_turns} turns"
    cut = "vlrl cuts an episode at episodes.max_turns"
    if not play(env, request, 0, usual_policy(env)).ended:
        return Check(title, "warn", f"random play has not ended {turns}; {cut}")
    if not play(env, request, 0, junk_policy).ended:
        return Check(title, "ok", f"by random play; nothing but nonsense does not end it {turns}: {cut}")
    return Check(title, "ok", "by random play, and by nothing but nonsense")


def _end(played: Played) -> str:
    how = "terminated" if played.terminated else "truncated" if played.truncated else "not ended"
    return f"{how} after {len(played.rewards)} turns, return {sum(played.rewards):g}"


def _returns(played: Sequence[Played]) -> str:
    rewards = [reward for each in played for reward in each.rewards] or [0.0]
    mean = sum(sum(each.rewards) for each in played) / len(played)
    turns = sum(len(each.rewards) for each in played) / len(played)
    return f"mean return {mean:.3g}, rewards {min(rewards):.3g} to {max(rewards):.3g}, {turns:.3g} turns"
