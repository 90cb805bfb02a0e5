"""The episodes of one step: each has its seeds, its slot and its order; some branch off others."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

from vlrl.config.options import RolloutConfig
from vlrl.config.rollout import BranchingConfig
from vlrl.protocols import Policy
from vlrl.rollout.branch_points import BranchPoint, BranchPoints
from vlrl.rollout.context import RolloutContext
from vlrl.rollout.episode import play_episode
from vlrl.rollout.lockstep import Lockstep
from vlrl.seeds import derive_seed
from vlrl.types import Sample, Sampling, Trajectory

Episode = asyncio.Task[list[Trajectory]]
"""One that is being played: of several agents, each one's trajectory."""

SeedPath = Sequence[int | str]
"""(run seed, step or purpose, position of the row, …): two occurrences of a row differ by their position."""


def sampling_of(config: RolloutConfig, *seed_path: int | str, greedy: bool = False) -> Sampling:
    """The sampling of one action; the seed path ends in (…, sample id, group index, turn)."""
    return Sampling(
        temperature=0.0 if greedy else config.temperature,
        max_tokens=config.max_tokens,
        seed=derive_seed(*seed_path),
    )


class Episodes:
    """Plays every sample's episodes, as many at once as there are slots.

        trunk ──turn──turn──●──turn──turn      num_branches = 3: the trunk is played to its end, then the
                            ├──turn──turn      others from the point on its way that branching.at says
                            └──turn

    Attributes:
        counts: of failures, see `vlrl.rollout.groups.RolloutResult`.
    """

    def __init__(
        self,
        samples: Sequence[Sample],
        context: RolloutContext,
        *,
        seed_paths: Sequence[SeedPath],
        greedy: bool,
        num_episodes: int,
        greedy_beside: bool,
        branching: BranchingConfig,
        policies: Sequence[Policy],
    ) -> None:
        """Say what is to be played: num_episodes of every sample, under seeds that begin with its path.

        With greedy_beside also one more, the last of the sample, in which the likeliest token is taken.
        """
        self.counts: Counter[str] = Counter()
        self._samples, self._context = samples, context
        self._seed_paths, self._greedy = seed_paths, greedy
        self._num_episodes, self._greedy_beside = num_episodes, greedy_beside
        self._branching = branching
        self._policies = [context.timeline.watched(policy) for policy in policies]
        self._lockstep = Lockstep(waits=context.config.episodes.lockstep)
        self._slots = asyncio.Semaphore(context.host.num_slots // branching.num_branches)

    def start(self, running: asyncio.TaskGroup) -> list[list[Episode]]:
        """Start a task for each episode of every sample, or for each tree of them."""
        stride, found = self._branching.num_branches, []
        for number, sample in enumerate(self._samples):
            if sample.env and stride > 1:
                plays = [self._tree(number, i, running) for i in range(0, self._num_episodes, stride)]
            else:
                plays = [self._one(number, i) for i in range(self._num_episodes + self._greedy_beside)]
            found.append([running.create_task(play) for play in plays])
        return found

    async def _one(self, number: int, index: int) -> list[Trajectory]:
        """An episode, once there is a slot."""
        async with self._slots if self._samples[number].env else nullcontext():
            self._lockstep.start()
            return await self._play(number, index)

    async def _tree(self, number: int, index: int, running: asyncio.TaskGroup) -> list[Trajectory]:
        """A trunk, then its branches all at once; if the trunk is too short to branch, episodes again."""
        seed = derive_seed(*self._seed_paths[number], self._samples[number].id, index, "branch point")
        points = BranchPoints(self._branching, seed)
        async with self._slots:
            self._lockstep.start()
            [trunk] = await self._play(number, index, points=points)
            if trunk.failed:  # there is nothing to branch off
                return [trunk]
            origin = points.chosen(len(trunk.turns))
            others = range(index + 1, index + self._branching.num_branches)
            for _ in others:  # before the trunk's end is seen, so that nobody goes on without them
                self._lockstep.start()
            plays = [running.create_task(self._play(number, i, origin=origin)) for i in others]
            tree = [trunk]
            for play in plays:
                tree += await play
        if origin is not None:
            for trajectory in tree:
                trajectory.trunk, trajectory.num_shared = index, origin.session.num_turns
        return tree

    async def _play(
        self,
        number: int,
        index: int,
        *,
        origin: BranchPoint | None = None,
        points: BranchPoints | None = None,
    ) -> list[Trajectory]:
        """One episode, which the lockstep already counts."""
        sample, config = self._samples[number], self._context.config.rollout
        seed_path = self._seed_paths[number]
        greedy = self._greedy or index == self._num_episodes

        def sampling(turn: int | str) -> Sampling:
            return sampling_of(config, *seed_path, sample.id, index, turn, greedy=greedy)

        order = number * (self._num_episodes + self._greedy_beside) + index
        context = replace(self._context, policy=self._lockstep.at(order, self._policies[number]))
        batch = seed_path[1] if len(seed_path) > 1 else None
        try:
            with context.timeline.span("episode", "play", sample=sample.id, group_index=index, batch=batch):
                if sample.prepared is not None:
                    context.timeline.ended_part("prompt", "prepare", *sample.prepared)
                trajectories = await play_episode(
                    sample, index, sampling, context, self.counts, origin=origin, points=points
                )
                for trajectory in trajectories:
                    trajectory.trace = context.timeline.here()
                return trajectories
        finally:
            self._lockstep.end()
