"""The rollout loop's side of generation.py: episodes by vlrl's policy and engine actor. Not run by hand.

.venv/bin/python benchmarks/loop_step.py JOB.json
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections.abc import Sequence

from generation_requests import Requests, serve
from step_job import Job, Pipe

from vlrl.cluster import cluster
from vlrl.engine.policy import VllmPolicy
from vlrl.environment.host.host import EnvHost
from vlrl.foreign.runner import result_of
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.groups import rollout_groups
from vlrl.types import Sample


def main() -> None:
    """Start Ray and an engine, then do what the pipe asks for."""
    begin, requests, pipe = time.perf_counter(), Requests(Job.read(sys.argv[1])), Pipe()
    config, processor = requests.config, requests.processor
    with cluster(config), EnvHost(config.env, max_open=1) as host, asyncio.Runner() as runner:
        policy = VllmPolicy(config, processor)
        try:
            policy.wait_ready()
            context = RolloutContext(policy, processor, host, config, endpoint_of(config))

            def generate(samples: Sequence[Sample], paths: Sequence[tuple[int, ...]]) -> list[Sequence[int]]:
                result = result_of(runner, rollout_groups(samples, context, seed_paths=paths))
                return [t.action_ids for group in result.groups for t in group.trajectories]

            gc.freeze()  # as a run does, see vlrl/run/run.py
            pipe.send(start_up={"total": time.perf_counter() - begin})
            serve(pipe, requests, generate)
        finally:
            policy.close()


if __name__ == "__main__":
    main()
