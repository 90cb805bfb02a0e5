"""Episodes: draw, decode, score. Knows a Policy and a Processor, not Ray, vLLM or a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from vlrl.errors import DataError
from vlrl.options import RolloutConfig
from vlrl.protocols import Policy, Processor
from vlrl.rewards.compose import RewardFailure
from vlrl.seeds import derive_seed
from vlrl.session import Session
from vlrl.types import Group, Sample, Sampling, Score, Trajectory

ScoreFn = Callable[[Trajectory], Awaitable[Score]]

REWARD_ATTEMPTS = 2
"""A failed reward is tried once more before its group is masked (law 7)."""


def sampling_of(config: RolloutConfig, *seed_path: int | str, greedy: bool = False) -> Sampling:
    """The sampling of one action; the seed path is (run seed, step, sample id, group index, turn)."""
    return Sampling(
        temperature=0.0 if greedy else config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        max_tokens=config.max_tokens,
        seed=derive_seed(*seed_path),
    )


def require_room(sample_id: str, num_prompt_tokens: int, max_tokens: int, max_model_len: int) -> None:
    """Raise DataError if a prompt leaves too little room for an action; nothing is ever cut (law 4)."""
    if num_prompt_tokens + max_tokens > max_model_len:
        raise DataError(
            f"sample {sample_id!r} needs {num_prompt_tokens + max_tokens} tokens ({num_prompt_tokens} of "
            f"prompt, rollout.max_tokens={max_tokens}), generator.max_model_len={max_model_len}; raise it, "
            "or lower processor.max_pixels"
        )


async def rollout_single_turn(
    sample: Sample, group_index: int, sampling: Sampling, policy: Policy, processor: Processor
) -> Trajectory:
    """One question, one answer."""
    start = time.perf_counter()
    session = Session(sample, group_index)
    generation = await policy.generate(session, sampling)
    session.append_action(generation)
    return session.trajectory(
        completion=processor.decode(generation.token_ids),
        outcome="ok" if generation.finished else "truncated",
        duration_s=time.perf_counter() - start,
    )


async def score_trajectory(trajectory: Trajectory, score: ScoreFn) -> str | None:
    """Fill in the score; on failure leave it None and return the reason."""
    for attempt in range(1, REWARD_ATTEMPTS + 1):
        try:
            trajectory.score = await score(trajectory)
            return None
        except RewardFailure as failure:
            if attempt == REWARD_ATTEMPTS:
                return str(failure)
    return None


async def rollout_groups(
    samples: Sequence[Sample],
    policy: Policy,
    processor: Processor,
    config: RolloutConfig,
    *,
    seed_path: Sequence[int | str],
    group_size: int | None = None,
    greedy: bool = False,
) -> list[Group]:
    """Draw a group for every sample, all at once.

    Args:
        samples: what is asked.
        policy: draws the actions.
        processor: decodes them.
        config: sampling and default group size.
        seed_path: (run seed, step); sample id, group index and turn are added here.
        group_size: completions per sample; the config's if None.
        greedy: take the likeliest token.

    Returns:
        Groups in the order of the samples, unscored.
    """
    size = group_size or config.group_size

    async def one(sample: Sample, index: int) -> Trajectory:
        sampling = sampling_of(config, *seed_path, sample.id, index, 0, greedy=greedy)
        return await rollout_single_turn(sample, index, sampling, policy, processor)

    drawn = await asyncio.gather(*(one(s, i) for s in samples for i in range(size)))
    return [Group(list(drawn[k * size : (k + 1) * size])) for k in range(len(samples))]


async def score_groups(groups: Sequence[Group], score: ScoreFn) -> list[str]:
    """Score every trajectory; returns the reasons of those that could not be scored."""
    trajectories = [t for g in groups for t in g.trajectories]
    failures = await asyncio.gather(*(score_trajectory(t, score) for t in trajectories))
    return [failure for failure in failures if failure]
