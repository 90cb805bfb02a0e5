"""The same work synchronous and asynchronous, with environments that make it wait: speed-up and its limit.

    python benchmarks/async.py --json --image async.png

A tiny Qwen2.5-VL plays episodes of a few turns, an image each, whose environment answers after a time sampled
from a log-normal distribution by the sample's seed: nothing else differs between rounds but
asynchronous.mode. Both modes have a continuous engine and no lockstep, the same samples, seeds and number of
steps; rounds take turns in one run. `limit` is the synchronous time over the least time possible:
benchmarks/async_limit.py says what that is and why nothing can be below it; `fraction_of_limit` is what the
asynchronous run reached of it. The image has both runs on one scale of time. On a machine that others use
figures mean little: the load is printed.
"""

from __future__ import annotations

import argparse
import io
import os
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from async_limit import least_seconds, path_seconds
from rich.console import Console

from vlrl import cluster
from vlrl.config import Config, parse_config
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.grpo import generate_groups, grpo_step
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.rollout.buffer import Ticket
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.outcome import Round, TicketOutcome
from vlrl.run.players.player import Player
from vlrl.run.run import Run
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.timeline import TIMELINE_FILE, Span, overlap_s, read_timeline
from vlrl.types import EnvTask, Sample
from vlrl.viewer.gantt import Panel, draw_gantt

HERE = Path(__file__).resolve().parent
ENV = f"{HERE / 'async_env.py'}:Waiting"
GROUP_SIZE = 4
NUM_TOKENS = 12


@dataclass(slots=True)
class Played:
    """A round.

    Attributes:
        seconds: from the first ticket to the last update.
        cpu_s: of driver, engine and trainer.
        num_tokens: generated for the batches that were trained.
        slowest_s: of each batch, the longest that an episode of it waited for its environment.
        spans: its part of the timeline.
        staleness: mean staleness of the trained tokens, in updates.
    """

    seconds: float
    cpu_s: dict[str, float]
    num_tokens: int
    slowest_s: list[float]
    spans: list[Span]
    staleness: float

    def busy(self, lane: str, whats: Sequence[str]) -> float:
        """Share of the round in which a lane did one of these things."""
        chosen = [span for span in self.spans if span.lane == lane and span.what in whats]
        return overlap_s(chosen, self.start_s, self.start_s + self.seconds) / self.seconds

    @property
    def start_s(self) -> float:
        """Start of the first span in seconds."""
        return min(span.start_s for span in self.spans)

    @property
    def generator_busy(self) -> float:
        """Share of the round in which requests were being generated or weights taken."""
        chosen = [span for span in self.spans if span.lane in ("request", "generator")]
        return overlap_s(chosen, self.start_s, self.start_s + self.seconds) / self.seconds


@dataclass(slots=True)
class NotedGeneration:
    """`generate_groups`, how long each batch's slowest episode waited, and how many tokens it generated."""

    slowest_s: dict[int, float] = field(default_factory=dict)
    num_tokens: Counter[int] = field(default_factory=Counter)

    async def __call__(self, player: Player, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        """Generate, and note."""
        generated = await generate_groups(player, tickets)
        for ticket, outcome in zip(tickets, generated.outcomes, strict=True):
            batch = ticket.position // player.config.rollout.prompts_per_step
            episodes = [t for group in outcome.groups for t in group.trajectories]
            self.num_tokens[batch] += sum(t.num_action_tokens for t in episodes)
            waited = [t.info["waited_s"] for t in episodes]
            self.slowest_s[batch] = max(self.slowest_s.get(batch, 0.0), *waited)
        return generated


def play(run: Run, mode: str) -> Played:
    """All steps from the first one on, in a mode."""
    config = run.config
    run.config = config.model_copy(
        update={"asynchronous": config.asynchronous.model_copy(update={"mode": mode})}
    )
    run.policy.load_weights(run.trainer.manifest, 0)  # the versions begin again
    generating = NotedGeneration()
    run.collect(generating)
    before, cpu, begin = time.time(), cpu_seconds(run), time.perf_counter()
    steps = [grpo_step(run, step) for step in range(config.num_steps)]
    seconds = time.perf_counter() - begin
    after, spent = time.time(), {name: s - cpu[name] for name, s in cpu_seconds(run).items()}
    run.runner.run(run.collector.close())
    run.config = config
    spans = [s for s in read_timeline(config.run_dir / TIMELINE_FILE) if before <= s.start_s <= after]
    slowest_s = [generating.slowest_s[batch] for batch in range(config.num_steps)]
    num_tokens = sum(generating.num_tokens[batch] for batch in range(config.num_steps))
    staleness = [m["off_policy/staleness_mean"] for m in steps if "off_policy/staleness_mean" in m]
    return Played(seconds, spent, num_tokens, slowest_s, spans, statistics.fmean(staleness))


def cpu_seconds(run: Run) -> dict[str, float]:
    """CPU seconds so far of the processes that work."""
    engine = run.policy._replicas[0].actor
    [trainer] = run.trainer._ranks
    used = [a.__ray_call__.remote(lambda _: time.process_time()) for a in (engine, trainer)]
    engine_s, trainer_s = cluster.fetch_all(used)
    return {"driver": time.process_time(), "engine": engine_s, "trainer": trainer_s}


def generate_without_waiting(run: Run, num_batches: int) -> tuple[float, float]:
    """Engine and driver CPU seconds of one batch when so many are generated at once and nobody waits."""
    samples: list[Sample] = []
    for batch in range(num_batches):
        samples += run.stream.batch(batch)
    at_once = [
        replace(s, env=replace(s.env, options={**s.env.options, "median_s": 0.0}))
        for s in samples
        if isinstance(s.env, EnvTask)
    ]
    before = cpu_seconds(run)
    run.runner.run(rollout_groups(at_once, run.context, seed_path=(0, 0)))
    after = cpu_seconds(run)
    return tuple((after[name] - before[name]) / num_batches for name in ("engine", "driver"))  # type: ignore


def config_of(args: argparse.Namespace, folder: Path) -> Config:
    """Configuration that both modes share."""
    model = build_tiny_qwen2_5_vl(folder / "model", DigitSum().corpus())
    options = {"num_steps": args.turns, "median_s": args.median_s, "sigma": args.sigma, "most_s": args.most_s}
    return parse_config(
        {
            "run": {"dir": str(folder)},
            "model": {"path": str(model)},
            "processor": {"min_pixels": 28 * 28, "max_pixels": 56 * 56},
            "data": {"train": {"name": "env", "options": {"env": ENV, "options": options, "num_rows": 1024}}},
            "rewards": [{"name": f"{HERE / 'async_env.py'}:parity"}],
            "scoring": {"num_workers": 1},
            "num_steps": args.steps,
            "rollout": {
                "prompts_per_step": args.prompts,
                "group_size": GROUP_SIZE,
                "max_tokens": NUM_TOKENS,
            },
            "episodes": {"lockstep": False, "max_turns": args.turns},
            "asynchronous": {"pipeline_depth": args.pipeline_depth, "max_staleness": args.max_staleness},
            "algorithm": {"correction": {"kind": "truncated"}},
            "optim": {"lr": 1e-9},
            "generator": {"mode": "continuous", "max_model_len": 512},
            "logging": {"tensorboard": False, "timeline": True},
        }
    )


def measure(args: argparse.Namespace) -> tuple[dict[str, list[Played]], list[tuple[float, float]]]:
    """Rounds of both modes in turn, and CPU seconds of generating without waiting."""
    rounds: dict[str, list[Played]] = {"sync": [], "async": []}
    generating = []
    with tempfile.TemporaryDirectory() as folder:
        config = config_of(args, Path(folder))
        console = TrainConsole("async", args.steps, console=Console(file=io.StringIO()))
        with Run(config, console, train=True, generate=True) as run:
            play(run, "sync")  # everything has been used once
            for _ in range(args.rounds):
                generating.append(generate_without_waiting(run, args.pipeline_depth))
                for mode, played in rounds.items():
                    played.append(play(run, mode))
    return rounds, generating


def figures(args: argparse.Namespace, rounds: dict[str, list[Played]], generating: Any) -> dict[str, Any]:
    """What is printed."""
    num_cores = len(os.sched_getaffinity(0))
    sync, asynchronous = rounds["sync"], rounds["async"]
    step_s = statistics.median(
        span.end_s - span.start_s for p in sync for span in p.spans if span.what == "train"
    ) + statistics.median(span.end_s - span.start_s for p in sync for span in p.spans if span.what == "sync")
    everywhere = [span for p in (*sync, *asynchronous) for span in p.spans]
    generate_s = min(span.end_s - span.start_s for span in everywhere if span.lane == "request")
    slowest_s = [waited + args.turns * generate_s for waited in sync[0].slowest_s]
    path_s = path_seconds(
        slowest_s, step_s, pipeline_depth=args.pipeline_depth, max_staleness=args.max_staleness
    )
    engine_s, driver_s = (min(values) for values in zip(*generating, strict=True))
    trainer_s = min(p.cpu_s["trainer"] for p in sync) / args.steps
    cpu_s = args.steps * (engine_s + driver_s + trainer_s)
    least_s = least_seconds(path_s, cpu_s, num_cores)
    sync_s, async_s = (statistics.median(p.seconds for p in rounds[mode]) for mode in ("sync", "async"))

    def median(values: Any) -> float:
        return round(statistics.median(values), 3)

    return {
        "speedup": round(sync_s / async_s, 3),
        "limit": round(sync_s / least_s, 3),
        "fraction_of_limit": round(least_s / async_s, 3),
        "bound_by": "path" if least_s == path_s else "cpu",
        "sync_s": [round(p.seconds, 2) for p in sync],
        "async_s": [round(p.seconds, 2) for p in asynchronous],
        "least_s": round(least_s, 2),
        "path_s": round(path_s, 2),
        "cpu_bound_s": round(cpu_s / num_cores, 2),
        "sync_path_s": round(path_seconds(slowest_s, step_s, pipeline_depth=1, max_staleness=0), 2),
        "trainer_step_s": round(step_s, 3),
        "fastest_request_s": round(generate_s, 3),
        **{
            f"{mode}_{who}_idle": median(1 - share(p) for p in played)
            for mode, played in rounds.items()
            for who, share in (
                ("generator", lambda p: p.generator_busy),
                ("trainer", lambda p: p.busy("trainer", ("train", "sync"))),
            )
        },
        **{
            f"{mode}_cpu_s": {
                name: median(p.cpu_s[name] for p in played) for name in ("driver", "engine", "trainer")
            }
            for mode, played in rounds.items()
        },
        "num_tokens": {mode: [p.num_tokens for p in played] for mode, played in rounds.items()},
        "async_staleness_mean": median(p.staleness for p in asynchronous),
        "pipeline_depth": args.pipeline_depth,
        "max_staleness": args.max_staleness,
        "num_cores": num_cores,
        "load": [round(load, 1) for load in os.getloadavg()],
    }


def main() -> None:
    """Print speed-up, limit and their ratio."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--prompts", type=int, default=8, help=f"groups of {GROUP_SIZE} episodes a step")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--median-s", type=float, default=1.0, help="of an environment's step")
    parser.add_argument("--sigma", type=float, default=1.0, help="of its logarithm")
    parser.add_argument("--most-s", type=float, default=6.0)
    parser.add_argument("--pipeline-depth", type=int, default=2)
    parser.add_argument("--max-staleness", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--image", type=Path, help="PNG of the last round of both modes")
    args = parse_with_json(parser)
    rounds, generating = measure(args)
    result = figures(args, rounds, generating)
    if args.image:
        panels = [Panel(f"{m}: {p[-1].seconds:.1f} s", p[-1].spans) for m, p in rounds.items()]
        draw_gantt(args.image, panels)
    print_figures(result, args.json)


if __name__ == "__main__":
    main()
