"""Episodes: draw, decode, score. Knows a Policy and a Processor, not Ray, vLLM or a model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from vlrl.errors import DataError, ScoringError
from vlrl.options import RolloutConfig
from vlrl.protocols import Policy, Processor
from vlrl.rewards.scoring.compose import RewardFailure
from vlrl.seeds import derive_seed
from vlrl.session import Session
from vlrl.types import Group, Sample, Sampling, Score, Trajectory

ScoreFn = Callable[[Sequence[Trajectory], int], Awaitable[Sequence[Score | RewardFailure]]]
"""(trajectories, step) → their scores or why there is none, in order: `ComposedReward.score_all`."""

SHOWN_FAILURES = 3
"""Tracebacks in the message that ends a run."""


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


async def score_groups(groups: Sequence[Group], score: ScoreFn, step: int = 0) -> list[RewardFailure]:
    """Score every trajectory under the weights of a step; returns the failures, whose scores stay None."""
    trajectories = [t for g in groups for t in g.trajectories]
    failures = []
    for trajectory, result in zip(trajectories, await score(trajectories, step), strict=True):
        if isinstance(result, RewardFailure):
            failures.append(result)
        else:
            trajectory.score = result
    return failures


def require_scored(failures: Sequence[RewardFailure], num_scored: int, max_failed_share: float) -> None:
    """Raise ScoringError, with the first tracebacks, if more than that share of a batch could not be scored.

    Args:
        failures: of `score_groups`.
        num_scored: completions that were to be scored.
        max_failed_share: scoring.max_failed_share.
    """
    if len(failures) <= max_failed_share * num_scored:
        return
    shown = [str(failure) + (f"\n{failure.trace}" if failure.trace else "") for failure in failures]
    raise ScoringError(
        f"{len(failures)} of {num_scored} completions could not be scored, more than "
        f"scoring.max_failed_share={max_failed_share:g}; mend the reward or the rows. The first:\n"
        + "\n".join(shown[:SHOWN_FAILURES])
    )
