"""Groups of episodes: generated and scored. Knows policy, processor and environments, not Ray or vLLM."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from vlrl.config.rollout import BranchingConfig, StragglerConfig
from vlrl.errors import DataError, EnvError, ScoringError
from vlrl.protocols import Policy
from vlrl.rollout.context import RolloutContext
from vlrl.rollout.episodes import Episode, Episodes, SeedPath
from vlrl.scoring.compose import RewardFailure
from vlrl.types import SMALLEST_GROUP, Group, Sample, Score, Trajectory

ScoreFn = Callable[[Sequence[Trajectory], int, Sequence[int]], Awaitable[Sequence[Score | RewardFailure]]]
"""(trajectories, step, number of each one's group) → their scores or why there is none, in order:
`ComposedReward.score_all`."""

SHOWN_FAILURES = 3
"""Tracebacks in the message that ends a run."""


def require_room(sample_id: str, num_prompt_tokens: int, max_tokens: int, max_model_len: int) -> None:
    """Raise DataError if a prompt leaves too little room for an action; nothing is ever cut (law 4)."""
    if num_prompt_tokens + max_tokens > max_model_len:
        raise DataError(
            f"sample {sample_id!r} needs {num_prompt_tokens + max_tokens} tokens ({num_prompt_tokens} of "
            f"prompt, rollout.max_tokens={max_tokens}), generator.max_model_len={max_model_len}; raise it, "
            "or lower processor.max_pixels"
        )


@dataclass(slots=True)
class RolloutResult:
    """What a step generated.

    Attributes:
        of_samples: for each sample its group, one for each of its agents, or none if too few episodes were in
            time.
        counts: failures of environments by kind (`env_raised`, `env_hung`, `env_died`, `agent_raised`,
            `episode_hung`), every attempt's; `replayed_episodes` that did well after a failure;
            `failed_episodes` that did not; `cut_off_episodes` and `surplus_episodes`, which stragglers.policy
            left out.
    """

    of_samples: list[list[Group]]
    counts: Counter[str]

    @property
    def groups(self) -> list[Group]:
        """All of them, in the order of the samples."""
        return [group for groups in self.of_samples for group in groups]


async def rollout_groups(
    samples: Sequence[Sample],
    context: RolloutContext,
    *,
    seed_path: SeedPath = (),
    seed_paths: Sequence[SeedPath] | None = None,
    group_size: int | None = None,
    greedy: bool = False,
    greedy_beside: bool = False,
    stragglers: StragglerConfig | None = None,
    branching: BranchingConfig | None = None,
    policies: Sequence[Policy] | None = None,
) -> RolloutResult:
    """Generate a group for every sample: all episodes in one event loop, so many at once.

    Args:
        samples: what is asked.
        context: policy, processor, environments and the options.
        seed_path: (run seed, step); the sample's number here, sample id, group index and turn are added, so
            that a row that appears twice is not given the same completions twice.
        seed_paths: of each sample, instead, with its position in the run's sequence of samples; no two alike.
        group_size: episodes per sample; the config's if None.
        greedy: take the likeliest token.
        greedy_beside: play one more episode of every sample, in which the likeliest token is taken, for
            `Group.greedy`.
        stragglers: what is done about slow episodes; None waits for all.
        branching: how episodes branch; None is not at all.
        policies: of each sample the one that plays it, instead of the context's.

    Returns:
        The groups, unscored.
    """
    config = context.config
    size = group_size or config.rollout.group_size
    stragglers = stragglers or StragglerConfig()
    redundant = stragglers.policy == "redundancy"
    num_episodes = size + (stragglers.num_extra if redundant else 0)
    episodes = Episodes(
        samples,
        context,
        seed_paths=seed_paths or [(*seed_path, number) for number in range(len(samples))],
        greedy=greedy,
        num_episodes=num_episodes,
        greedy_beside=greedy_beside,
        branching=branching or BranchingConfig(),
        policies=policies or [context.policy] * len(samples),
    )
    try:
        async with asyncio.TaskGroup() as running:
            tasks = episodes.start(running)
            if redundant:
                await asyncio.gather(*(first_done(of_group[:num_episodes], size) for of_group in tasks))
            elif stragglers.policy == "cut_off":
                flat = [task for of_group in tasks for task in of_group]
                await cut_off(flat, share=stragglers.cut_off_share, grace_s=stragglers.cut_off_s)
    except BaseExceptionGroup as errors:  # the first says what to fix; the others follow from it
        raise errors.exceptions[0] from None
    smallest = 1 if config.algorithm.critic is not None else SMALLEST_GROUP
    left_out = "surplus_episodes" if redundant else "cut_off_episodes"
    counts, of_samples = episodes.counts, []
    for of_group in tasks:
        done = [task.result() for task in of_group[:num_episodes] if not task.cancelled()]
        if redundant:
            done = sorted(done, key=has_failed)[:size]
            done.sort(key=lambda episode: episode[0].group_index)
        beside = [task.result() for task in of_group[num_episodes:] if not task.cancelled()]
        counts[left_out] += len(of_group) - len(done) - len(beside)
        counts["failed_episodes"] += sum(t.failed for episode in (*done, *beside) for t in episode)
        if greedy_beside:
            of_samples.append(groups_of(done, greedy=beside[0]) if done and beside else [])
        else:
            of_samples.append(groups_of(done, smallest) if len(done) >= min(size, smallest) else [])
    return RolloutResult(of_samples, +counts)


def groups_of(
    episodes: Sequence[list[Trajectory]],
    smallest: int = SMALLEST_GROUP,
    greedy: Sequence[Trajectory] | None = None,
) -> list[Group]:
    """The episodes (or trees of them) of a sample as one group, or as one for each of their agents.

    A failed episode, which may not know its agents, is in every group, unscored. An agent that acted in one
    episode alone, or not in the greedy one that is to be its baseline, has a group without a baseline
    (`Group.failed`); one that acted in none has no group.
    """
    failed = [trajectory for episode in episodes if has_failed(episode) for trajectory in episode]
    by_agent: dict[str, list[Trajectory]] = {}
    for episode in episodes:
        for trajectory in () if has_failed(episode) else episode:
            by_agent.setdefault(trajectory.sample.id, []).append(trajectory)
    groups = []
    for agent, members in (by_agent or {"": list[Trajectory]()}).items():
        own = None if greedy is None else tuple(t for t in greedy if t.failed or t.sample.id == agent)
        ordered = sorted([*members, *failed], key=lambda t: t.group_index)
        groups.append(Group(ordered, greedy=own, smallest=smallest))
    return groups


async def score_groups(groups: Sequence[Group], score: ScoreFn, step: int = 0) -> list[RewardFailure]:
    """Score every trajectory under the weights of a step; returns the failures, whose scores stay None.

    An episode that failed is not scored. A greedy one is scored by itself, not as one of its group.
    """
    numbered = [(t, number) for number, g in enumerate(groups) for t in g.trajectories if not t.failed]
    beside = [t for group in groups for t in group.greedy or () if not t.failed]
    numbered += zip(beside, range(len(groups), len(groups) + len(beside)), strict=True)
    trajectories, numbers = [t for t, _ in numbered], [number for _, number in numbered]
    failures = []
    for trajectory, result in zip(trajectories, await score(trajectories, step, numbers), strict=True):
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
        f"scoring.max_failed_share={max_failed_share:g}; fix the reward or the rows. The first:\n"
        + "\n".join(shown[:SHOWN_FAILURES])
    )


def require_played(failures: Sequence[str], num_played: int, max_failed_share: float) -> None:
    """Raise EnvError, with the first reasons, if more than that share of a step's episodes failed.

    Args:
        failures: what went wrong in each that failed.
        num_played: episodes in all.
        max_failed_share: episodes.max_failed_share.
    """
    if len(failures) <= max_failed_share * num_played:
        return
    raise EnvError(
        f"{len(failures)} of {num_played} episodes failed, more than "
        f"episodes.max_failed_share={max_failed_share:g}; fix the environment, or see env.step_timeout_s "
        "and env.isolation. The first:\n" + "\n".join(failures[:SHOWN_FAILURES])
    )


def has_failed(episode: Sequence[Trajectory]) -> bool:
    """Whether any agent's trajectory has."""
    return any(trajectory.failed for trajectory in episode)


async def first_done(episodes: Sequence[Episode], num_wanted: int) -> None:
    """Wait until so many episodes of a group have ended well, then cancel the others."""
    running = set(episodes)
    num_good = 0
    while running and num_good < num_wanted:
        done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        num_good += sum(not has_failed(episode.result()) for episode in done)
    for episode in running:
        episode.cancel()


async def cut_off(episodes: Sequence[Episode], *, share: float, grace_s: float) -> None:
    """Wait until that share of a step's episodes has ended, then so many seconds more; cancel the others."""
    running, num_awaited = set(episodes), math.ceil(share * len(episodes))
    while running and len(episodes) - len(running) < num_awaited:
        _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
    if running:
        _, running = await asyncio.wait(running, timeout=grace_s)
    for episode in running:
        episode.cancel()
