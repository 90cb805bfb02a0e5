"""What a turn of an episode costs the driver and a rollout worker, against an engine that answers at once.

    python benchmarks/driver.py --json

Episodes show a screenshot in every turn and keep the last two, in environments of processes of their own.
All but the engine is real: whoever plays takes the observation, resizes and hashes it, makes the message and
the ledger, puts the image into Ray's object store, asks the engine's actor and reads the answer, scores and
packs. The engine generates nothing.

Given are milliseconds of processor time of a process and all its threads: of the driver while workers play,
of a worker, and of the driver where it plays itself, with a screenshot and with text alone, which tells turns
and images apart. Bytes through the driver are those of what it sends to workers and gets from them; megabytes
are those of the groups that a packing worker fetches, and of the frames that ranks fetch. The least of
--rounds counts, as processor time grows too on a machine that others use.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pickle
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray

from vlrl import cluster
from vlrl.config import Config, parse_config
from vlrl.engine import policy as engine_policy
from vlrl.engine.requests import EngineRequest, GenerationResult, Load
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.foreign.runner import result_of
from vlrl.grpo import generate_groups
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.packing.options import PackOptions
from vlrl.placement.layout import Slot, lay_out
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.processors.auto import open_processor
from vlrl.protocols import Observation, StepResult
from vlrl.rollout.buffer import State, Ticket
from vlrl.rollout.outcome import Round, TicketOutcome
from vlrl.run.players.player import open_player
from vlrl.run.players.rollouts import InProcess, Rollouts
from vlrl.run.players.workers import RolloutWorkers
from vlrl.tracking.timeline import Timeline
from vlrl.types import Generation, VersionSpan

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


def tickets_of(config: Config, number: int) -> list[Ticket[TicketOutcome]]:
    """Those of one round."""
    size = config.rollout.prompts_per_step
    return [Ticket(position, State.RUNNING, 0) for position in range(number * size, (number + 1) * size)]


def seconds_of_workers() -> float:
    """Processor time of all rollout workers, without the processes that they have started."""
    found = 0.0
    for process in psutil.process_iter():
        if process.name().startswith("ray::RolloutW"):
            times = process.cpu_times()
            found += times.user + times.system
    return found


def bytes_of(tickets: Sequence[Ticket[TicketOutcome]], round_: Round) -> int:
    """Bytes that the driver sends for a round and gets; groups too small for the object store come to it."""
    stored = [outcome.groups for outcome in round_.outcomes]
    references = [reference for each in stored for reference in (each.pickled, each.frames)]
    where = ray.experimental.get_object_locations(references)
    inline = [reference for reference, place in where.items() if not place["node_ids"]]
    small = sum(len(pickle.dumps(ray.get(reference))) for reference in inline)
    numbers = replace(round_, outcomes=[replace(outcome, groups=None) for outcome in round_.outcomes])
    return len(pickle.dumps(tickets)) + len(pickle.dumps(numbers)) + small


def megabytes_of(round_: Round) -> dict[str, float]:
    """Megabytes that a packing worker fetches, and those that ranks fetch from where the episodes were."""
    stored = [outcome.groups for outcome in round_.outcomes]
    frames = [array for each in stored for array in ray.get(each.frames).values()]
    return {
        "packed_mb": sum(len(ray.get(each.pickled)) for each in stored) / 1e6,
        "frames_mb": sum(array.nbytes for array in frames) / 1e6,
    }


def measured(rollouts: Rollouts, config: Config, rounds: int, runner: asyncio.Runner) -> dict[str, float]:
    """Figures of a turn; the first round, in which processes start, does not count."""
    turns = config.episodes.max_episodes * config.episodes.max_turns
    has_workers = isinstance(rollouts, RolloutWorkers)
    found: list[dict[str, float]] = []
    for number in range(rounds + 1):
        tickets = tickets_of(config, number)
        driver, of_workers, begin = time.process_time(), seconds_of_workers(), time.perf_counter()
        round_ = result_of(runner, rollouts.play(generate_groups, tickets))
        seconds, driver = time.perf_counter() - begin, time.process_time() - driver
        of_workers = seconds_of_workers() - of_workers
        played = [m.episode for outcome in round_.outcomes for g in outcome.kept for m in g.members]
        if sum(episode.num_turns for episode in played if episode) != turns:
            raise SystemExit(f"not all of {turns} turns were played: {dict(round_.counts)}")
        packing = seconds_of_workers() if has_workers else time.process_time()
        rollouts.pack(round_.outcomes, slice(None), PackOptions.of(config), 0)
        packing = (seconds_of_workers() if has_workers else time.process_time()) - packing
        figures = {"driver_ms": driver, "worker_ms": of_workers, "pack_ms": packing}
        of_turn = {name: value * 1e3 / turns for name, value in figures.items()}
        if has_workers:
            of_turn["driver_bytes"] = bytes_of(tickets, round_) / turns
            of_turn |= {name: size / turns for name, size in megabytes_of(round_).items()}
        found.append(of_turn | {"ms": seconds * 1e3 / turns})
    return {name: min(figures[name] for figures in found[1:]) for name in found[0]}


def play(config: Config, num_workers: int, rounds: int) -> dict[str, float]:
    """Figures of a turn that the driver plays, or workers."""
    processor = open_processor(config)
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        layout = lay_out(config, cluster.nodes(), train=False)
        layout = replace(layout, workers=tuple(Slot(0, (), 0.001) for _ in range(num_workers)))
        reservation = cluster.Reservation(layout, 60.0)
        stack.callback(reservation.close)
        policy = engine_policy.VllmPolicy(config, processor, reservation)
        stack.callback(policy.close)
        policy.wait_ready()
        rollouts: Rollouts
        if num_workers:
            rollouts = workers = RolloutWorkers(config, reservation, policy, print)
            stack.callback(lambda: runner.run(workers.close()))
            workers.wait_ready()
        else:
            own = AsyncExitStack()
            stack.callback(lambda: runner.run(own.aclose()))
            opened = partial(open_player, owns=lambda _: True, tell=print, policy_of=None)
            rollouts = InProcess(opened(config, policy, Timeline(), own))
        return measured(rollouts, config, rounds, runner)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Turns with a screenshot, with text alone, and the difference for a megapixel."""
    with tempfile.TemporaryDirectory() as folder:
        model = build_tiny_qwen2_5_vl(Path(folder) / "model", DigitSum().corpus())
        configs = {name: config_of(model, args, shows_images=name == "screenshot") for name in TURNS}
        with cluster.cluster(configs["text"]):
            found = {
                (name, number): play(config, number, args.rounds)
                for number in (0, *args.workers)
                for name, config in configs.items()
            }
    first = args.workers[0]
    screenshot, text = (found[name, first] for name in TURNS)
    megapixels = WIDTH * HEIGHT / 1e6
    return {
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        "driver_ms_per_turn": screenshot["driver_ms"],
        "worker_ms_per_turn": screenshot["worker_ms"],
        "pack_ms_per_turn": screenshot["pack_ms"],
        "driver_bytes_per_turn": screenshot["driver_bytes"],
        "packed_mb_per_turn": screenshot["packed_mb"],
        "frames_mb_per_turn": screenshot["frames_mb"],
        "text_turn": {"driver_ms": text["driver_ms"], "worker_ms": text["worker_ms"]},
        "megapixel": {"worker_ms": (screenshot["worker_ms"] - text["worker_ms"]) / megapixels},
        "driver_plays": {f"{name}_ms": found[name, 0]["driver_ms"] for name in TURNS},
        "turns_per_s": {str(number): 1e3 / found["screenshot", number]["ms"] for number in args.workers},
    }


def main() -> None:
    """Print them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=16, help="a multiple of 4")
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of rollout workers")
    args = parse_with_json(parser)
    engine_policy.GeneratorActor = AnswersAtOnce  # type: ignore[assignment, misc]
    result = measure(args)
    print_figures(result, args.json)


if __name__ == "__main__":
    main()
