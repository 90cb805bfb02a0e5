"""Which rollout worker plays a position, and what part of the run's limits each worker has."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from vlrl.config import Config
from vlrl.engine.client.router import engine_of_position
from vlrl.engine.requests import JointBatch
from vlrl.placement.layout import Layout

ELSEWHERE = -1
"""The node of an engine that is on none of the cluster's."""


@dataclass(frozen=True, slots=True)
class Division:
    """A function of positions and places alone, so that a run that is resumed divides its work alike.

    Attributes:
        engine_nodes: of each engine the number of its node; ELSEWHERE of a server.
        worker_nodes: of each worker.
    """

    engine_nodes: tuple[int, ...]
    worker_nodes: tuple[int, ...]

    @classmethod
    def of(cls, layout: Layout) -> Division:
        """A layout's."""
        engines = [slot.node for slot in layout.engines] or [ELSEWHERE] * layout.num_servers
        return cls(tuple(engines), tuple(slot.node for slot in layout.workers))

    def engine_of(self, position: int) -> int:
        """The engine that generates a position's episodes while batches are kept apart."""
        return engine_of_position(position, len(self.engine_nodes))

    def worker_of(self, position: int) -> int:
        """The worker that plays a position: one on the node of its engine, if there is any."""
        number, node = position // len(self.engine_nodes), self.engine_nodes[self.engine_of(position)]
        near = self._workers_on(node) or range(len(self.worker_nodes))
        return near[number % len(near)]

    def engines_of(self, worker: int) -> list[int]:
        """The engines that a worker asks: those on its node, else all."""
        node = self.worker_nodes[worker]
        return [e for e, other in enumerate(self.engine_nodes) if other == node] or list(
            range(len(self.engine_nodes))
        )

    def num_sharing(self, worker: int) -> int:
        """Workers that ask the engine of this worker's that most of them ask."""
        asked = [self.engines_of(other) for other in range(len(self.worker_nodes))]
        return max(sum(engine in of_worker for of_worker in asked) for engine in asked[worker])

    def joint_batches(self, name: str, positions: Sequence[int]) -> dict[int, dict[int, JointBatch]]:
        """Batches that a round of these positions makes together with others, by worker and engine."""
        asking: dict[int, set[int]] = {}
        for position in positions:
            asking.setdefault(self.engine_of(position), set()).add(self.worker_of(position))
        found: dict[int, dict[int, JointBatch]] = {}
        for engine, workers in asking.items():
            for worker in workers if len(workers) > 1 else ():
                found.setdefault(worker, {})[engine] = JointBatch(name, worker, tuple(sorted(workers)))
        return found

    def share_of(self, config: Config, worker: int) -> Config:
        """The config with a worker's part of what the whole run may have at once."""
        count = len(self.worker_nodes)
        beside = self.worker_nodes.count(self.worker_nodes[worker])
        episodes, env, scoring = config.episodes, config.env, config.scoring
        num_open = max(episodes.branching.num_branches, episodes.max_episodes // count)
        num_processes = env.num_processes and max(1, env.num_processes // count)
        num_scoring = scoring.num_workers or len(os.sched_getaffinity(0))
        num_threads = max(1, config.data.num_workers // count)
        return config.model_copy(
            update={
                "episodes": episodes.model_copy(update={"max_episodes": num_open}),
                "env": env.model_copy(update={"num_processes": num_processes}),
                "scoring": scoring.model_copy(update={"num_workers": max(1, num_scoring // beside)}),
                "data": config.data.model_copy(update={"num_workers": num_threads}),
            }
        )

    def _workers_on(self, node: int) -> Sequence[int]:
        return [worker for worker, other in enumerate(self.worker_nodes) if other == node]
