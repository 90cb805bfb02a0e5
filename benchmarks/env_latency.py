"""How much of an environment's latency the episode loop hides, against a policy that answers at once.

    python benchmarks/env_latency.py --json

64 episodes of 10 steps at 200 ms each: one after the other they take 128 s; the ideal is the latency of one
episode, 2 s. The share of the ideal that the loop reaches is ideal / measured.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.config import parse_config
from vlrl.environment.host.host import EnvHost
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.protocols import Observation, StepResult
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import MediaMessage, Session
from vlrl.types import EnvTask, Generation, Prompt, Sample, Sampling, VersionSpan

THIS_FILE = Path(__file__).resolve()
GROUP_SIZE = 8


class Slow:
    """An environment whose every step takes a while and shows an image."""

    system_prompt = ""
    tools: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, latency_s: float, num_steps: int, asynchronous: bool) -> None:
        self.latency_s, self.num_steps, self.done = latency_s, num_steps, 0
        if asynchronous:
            self.step = self.step_async  # type: ignore[method-assign, assignment]

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Return at once."""
        self.done = 0
        return Observation("go")

    def step(self, action: str) -> StepResult:
        """Step in a thread or process."""
        time.sleep(self.latency_s)
        return self._result()

    async def step_async(self, action: str) -> StepResult:
        """Step in the event loop."""
        await asyncio.sleep(self.latency_s)
        return self._result()

    def close(self) -> None:
        """Nothing to free."""

    def _result(self) -> StepResult:
        self.done += 1
        return StepResult(Observation("next"), 0.0, self.done == self.num_steps, False)


class AtOnce:
    """A policy that answers one token without delay."""

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """The same for everyone."""
        one = np.ones(1, np.int64)
        return Generation(one, -np.ones(1, np.float32), (VersionSpan(0, 0, 1),), finished=True)


class Tokens:
    """A processor of one token a message."""

    def message(self, role: str, parts: Any, where: str) -> MediaMessage:
        """Return the message as it is."""
        return MediaMessage({"role": role, "content": list(parts)})

    def act(self, session: Session, generation: Generation) -> str:
        """Append."""
        session.append_action(generation, "a")
        return "a"

    def show(self, session: Session, seen: Any) -> None:
        """What is new."""
        new = len(seen) - len(session.shown)
        if new:
            session.append_observation(prompt_of(new, session.next_position), (), seen)


def prompt_of(count: int, start: int = 0) -> Prompt:
    """So many tokens."""
    positions = np.tile(np.arange(start, start + count), (3, 1))
    return Prompt(np.ones(count, np.int64), np.ones(count, np.int64), positions, start + count)


def measure(args: argparse.Namespace, isolation: str) -> float:
    """Seconds of one step's episodes, without the time in which processes start."""
    config = parse_config(
        {
            "model": {"path": "none"},
            "data": {"train": {"name": "digit_sum"}},
            "rollout": {"group_size": GROUP_SIZE, "prompts_per_step": args.episodes // GROUP_SIZE},
            "episodes": {"lockstep": args.lockstep, "max_turns": args.steps},
            "env": {"isolation": "thread" if isolation == "async" else isolation},
        }
    )
    options = {"latency_s": args.latency_s, "num_steps": args.steps, "asynchronous": isolation == "async"}
    message = {"role": "user", "content": [{"type": "text", "text": "go"}]}
    samples = [
        Sample(str(i), (message,), (), prompt_of(1), env=EnvTask(f"{THIS_FILE}:Slow", options))
        for i in range(args.episodes // GROUP_SIZE)
    ]

    async def run() -> float:
        with EnvHost(config.env, max_open=args.episodes) as host:
            context = RolloutContext(AtOnce(), Tokens(), host, config, endpoint_of(config))  # type: ignore[arg-type]
            for warm in (True, False):
                begin = time.perf_counter()
                generated = await rollout_groups(samples, context, seed_path=(0, int(warm)))
                seconds = time.perf_counter() - begin
            assert not generated.counts, generated.counts
            assert all(len(t.turns) == args.steps for g in generated.groups for t in g.trajectories)
            return seconds

    return asyncio.run(run())


def main() -> None:
    """Print the share of the ideal for each way of running environments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--latency-s", type=float, default=0.2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lockstep", action="store_true", help="generate when all wait")
    args = parse_with_json(parser)
    ideal_s = args.steps * args.latency_s
    seconds: dict[str, list[float]] = {"async": [], "thread": [], "process": []}
    for _ in range(args.rounds):  # in turn, so that a busy moment falls on all alike
        for isolation, found in seconds.items():
            found.append(measure(args, isolation))
    result = {
        "num_episodes": args.episodes,
        "ideal_s": ideal_s,
        "one_by_one_s": ideal_s * args.episodes,
        **{f"{name}_s": round(statistics.median(found), 3) for name, found in seconds.items()},
        **{f"{n}_share_of_ideal": round(ideal_s / statistics.median(f), 3) for n, f in seconds.items()},
    }
    print_figures(result, args.json)


if __name__ == "__main__":
    main()
