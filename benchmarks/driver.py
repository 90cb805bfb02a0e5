"""What a turn of an episode costs the driver, against an engine that answers at once.

    python benchmarks/driver.py --json

Episodes show a screenshot in every turn and keep the last two, in environments of processes of their own. The
driver is real: it takes the observation, resizes and hashes it, makes the message and the ledger, puts the
image into Ray's object store, asks the engine's actor and reads the answer. The engine generates nothing.

Given are milliseconds of processor time: of all the driver's threads, and of its event loop alone, which more
cores cannot share. The same without an image tells turns and images apart. The least of --rounds counts, as
processor time grows too on a machine that others use.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlrl import cluster
from vlrl.config import Config, parse_config
from vlrl.data.run_data import RunData, Sources
from vlrl.engine import policy as engine_policy
from vlrl.engine.requests import EngineRequest, GenerationResult, Load
from vlrl.environment.host.host import EnvHost
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.processors.auto import open_processor
from vlrl.protocols import Observation, StepResult
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.groups import rollout_groups
from vlrl.types import Generation, Sample, VersionSpan

THIS_FILE = Path(__file__).resolve()
WIDTH, HEIGHT = 1280, 800
TURNS = ("screenshot", "text")
NUM_TOKENS = 100
"""Of an answer; the last one is the stop token."""


class Screens:
    """Shows another screenshot after each of its steps, or only text."""

    system_prompt = ""
    tools: tuple[Mapping[str, Any], ...] = ()

    def __init__(self, num_steps: int, shows_images: bool) -> None:
        self._num_steps, self._shows_images = num_steps, shows_images

    def reset(self, task: Mapping[str, Any], seed: int) -> Observation:
        """Show the first one."""
        self._pixels = np.random.default_rng(os.getpid()).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
        self._num_done = 0
        return self._look()

    def step(self, action: str) -> StepResult:
        """Show the next one."""
        self._num_done += 1
        return StepResult(self._look(), 0.0, self._num_done == self._num_steps, False)

    def close(self) -> None:
        """Nothing to free."""

    def _look(self) -> Observation:
        self._pixels[:8, :8] = np.random.default_rng().integers(
            0, 256, (8, 8, 3), np.uint8
        )  # never seen before
        return Observation("What now?", [self._pixels.copy()] if self._shows_images else [])


class AnswersAtOnce:
    """The actor of an engine, without one."""

    def __init__(self, config: Config, banned: Sequence[int], stops: Sequence[int], *_: Any) -> None:
        token_ids = np.full(NUM_TOKENS, 65, np.int64)
        token_ids[-1] = stops[0]
        logprobs = np.full(NUM_TOKENS, -1.0, np.float32)
        self._answer = Generation(token_ids, logprobs, (VersionSpan(0, 0, NUM_TOKENS),), finished=True)

    async def start(self) -> float:
        """Nothing to build."""
        return 0.0

    async def generate(
        self, requests: Sequence[EngineRequest], references: Mapping[str, Any]
    ) -> AsyncIterator[tuple[int, GenerationResult, Load]]:
        """The same for everyone."""
        for index in range(len(requests)):
            yield index, self._answer, Load(0.0, 0)


def config_of(model: Path, args: argparse.Namespace, *, shows_images: bool) -> Config:
    """Like configs/gui_x11.yaml, with a tiny model and less of everything."""
    options = {"num_steps": args.turns, "shows_images": shows_images}
    return parse_config(
        {
            "run": {"dir": str(model.parent / "runs")},
            "model": {"path": str(model)},
            "processor": {"max_pixels": 1048576},
            "data": {
                "train": {"name": "env", "options": {"env": f"{THIS_FILE}:Screens", "options": options}}
            },
            "rewards": [{"name": "episode_return"}],
            "rollout": {"prompts_per_step": args.episodes // 4, "group_size": 4, "max_tokens": 128},
            "episodes": {
                "max_turns": args.turns,
                "max_episodes": args.episodes,
                "lockstep": False,
                "context": {"policy": "last_images", "num_images": 2},
            },
            "env": {"isolation": "process", "num_processes": 2},
            "generator": {"mode": "continuous", "max_model_len": 8192},
            "trainer": {"max_tokens_per_micro_batch": 8192},
        }
    )


def samples_of(config: Config, processor: Any) -> list[Sample]:
    """One step's."""
    data = RunData(config, Sources.open(config), processor, supervised=False)
    try:
        return list(data.stream.batch(0))
    finally:
        data.close()


def turn_ms(config: Config, rounds: int) -> dict[str, float]:
    """Milliseconds a turn; the first round, in which processes start, does not count."""
    processor = open_processor(config)
    samples, wanted = samples_of(config, processor), config.episodes.max_episodes * config.episodes.max_turns
    found: list[tuple[float, float]] = []

    async def play(context: RolloutContext, number: int) -> None:
        whole, loop = time.process_time(), time.thread_time()
        result = await rollout_groups(samples, context, seed_path=(0, number))
        turns = sum(len(t.turns) for group in result.groups for t in group.trajectories)
        if turns != wanted:
            raise SystemExit(f"{turns} turns of {wanted} were played: {dict(result.counts)}")
        if number:
            found.append(((time.process_time() - whole) / turns, (time.thread_time() - loop) / turns))

    policy = engine_policy.VllmPolicy(config, processor)
    try:
        policy.wait_ready()
        with EnvHost(config.env, max_open=config.episodes.max_episodes) as host, asyncio.Runner() as runner:
            context = RolloutContext(policy, processor, host, config, endpoint_of(config))
            for number in range(rounds + 1):
                runner.run(play(context, number))
    finally:
        policy.close()
    return {
        "driver_ms": min(whole for whole, _ in found) * 1e3,
        "loop_ms": min(loop for _, loop in found) * 1e3,
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Turns with a screenshot, with text alone, and the difference for a megapixel."""
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny_qwen2_5_vl(Path(folder) / "model", DigitSum().corpus())
        configs = {name: config_of(model, args, shows_images=name == "screenshot") for name in TURNS}
        with cluster.cluster(configs["text"]):
            found = {name: turn_ms(config, args.rounds) for name, config in configs.items()}
    screenshot, text = (found[name] for name in TURNS)
    megapixels = WIDTH * HEIGHT / 1e6
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        **{f"{name}_turn": figures for name, figures in found.items()},
        "megapixel": {name: (screenshot[name] - text[name]) / megapixels for name in text},
    }


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=16, help="a multiple of 4")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    args = parse_with_json(parser)
    engine_policy.GeneratorActor = AnswersAtOnce  # type: ignore[assignment, misc]
    result = measure(args)
    if args.json:
        print_json(result)
        return
    for name, value in result.items():
        print(f"{name:16} {value}")


if __name__ == "__main__":
    main()
