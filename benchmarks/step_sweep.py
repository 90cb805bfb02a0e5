"""How the cost of a step grows: one quantity varied at a time, the others as in a base case.

    .venv/bin/python benchmarks/step_sweep.py --keep sweep --seconds 300 --image cost.png

Measured are the trainer alone (packed trees beside padded rows, see train_step.py, with equal losses), whole
steps beside TRL's for a few points of each quantity, and what 64 episodes of 1 to 20 turns cost in sessions
and in packing. Each trainer's process is started once for a model and told the sizes; a whole step's sides
are started for a point.

Every point is a line in --keep's points.jsonl, and points that are there are not measured again: so the sweep
can run in pieces, each of about --seconds. CPU seconds, of all processes of a side, are what counts, since
other programs may use the machine; with one thread no side waits at OpenMP's barriers. Each side takes two
steps, in turns, and the lower CPU seconds count; memory is private (USS) of the process that trains, sampled
in the first. Where one takes more than 15, none is repeated. A side that exceeds --gib or --limit has no
figure and is not tried with more. The floor is that of train_step.py. Exponents are slopes of log CPU seconds
against log size between the last two points.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from cases import Case
from step_floor import read_model_config
from step_job import BenchmarkError, Job
from step_jobs import cpu_rate, trainer_job, whole_floor, whole_job
from step_memory import Guard
from step_report import TOLERANCE
from step_rounds import say
from step_side import CpuTimes, Side
from sweep_host import host_cost
from sweep_points import CURVES, HOST, Point, Points
from train_step import ROOT, TRAINER, WHOLE

PARTS = ("trainer", "host", "whole")
WARMUP, STEPS = 1, 2
CLOCK = time.process_time
"""What the floor's rate is taken by, as the sides are."""
SLOW = 15.0
"""CPU seconds of a step after which it is not repeated."""


class Sweep:
    """One piece of it: what is missing, until the time is over."""

    def __init__(self, options: argparse.Namespace, points: Points) -> None:
        self._options, self._points = options, points
        self._curves = [curve for curve in CURVES if curve.name in options.quantities]
        self._end = time.monotonic() + options.seconds
        sizes = {"max_steps": WARMUP + STEPS, "threads": options.threads, "seed": 0}
        self._job_options: dict[str, Any] = {**sizes, "micro_batch": None}

    @property
    def is_over(self) -> bool:
        """Whether no further point is to be started."""
        return time.monotonic() > self._end

    def trainer(self) -> None:
        """Points of the trainer alone, each model's of a quantity in the same two processes."""
        for curve in self._curves:
            missing = self._points.missing("trainer", curve.points)
            for _, group in groupby(missing, key=lambda point: point.case.shape):
                if not self.is_over:
                    self._curve(curve.name, list(group))

    def host(self) -> None:
        """Sessions and packing of 64 episodes, by their number of turns."""
        for curve in HOST:
            for point in self._points.missing("host", curve.points):
                if not self.is_over:
                    self._keep("host", curve.name, point, host_cost(point.case))

    def whole(self) -> None:
        """Points of whole steps beside TRL's."""
        for curve in self._curves:
            for point in self._points.missing("whole", curve.whole):
                if not self.is_over:
                    self._keep("whole", curve.name, point, self._whole_step(point.case))

    def _keep(self, part: str, name: str, point: Point, record: Mapping[str, Any]) -> None:
        self._points.add(part, point.case, {"load": os.getloadavg()[0], **record})
        say(f"{part}, {name} {point.size:g}: {words(record)}")

    def _curve(self, name: str, points: Sequence[Point]) -> None:
        with tempfile.TemporaryDirectory(prefix="step_sweep-") as folder, Sides() as sides:
            job = trainer_job(points[0].case, Path(folder), **self._job_options)
            config = read_model_config(job.model)
            for side in TRAINER:
                sides.start(side, Path(sys.executable), job)
            for point in points:
                if self.is_over:
                    return
                record = self._two_steps(sides, point.case)
                if "over" not in record["packed"]:
                    rate = cpu_rate(config, record["packed"]["num_tokens"], self._options.threads, CLOCK)
                    record["floor_seconds"] = record["packed"]["flops"] / rate
                self._keep("trainer", name, point, record)

    def _whole_step(self, case: Case) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="step_sweep-") as folder, Sides() as sides:
            job = whole_job(case, Path(folder), **self._job_options)
            for name in WHOLE:
                python = self._options.trl_python if name == "trl" else Path(sys.executable)
                sides.start(name, python, job)
                self._within(sides, name, partial(sides[name].run, WARMUP))
            record = self._two_steps(sides, case)
            lengths = {length for name in WHOLE for length in record[name].pop("prompt_tokens", ())}
            if len(lengths) != 1:
                raise BenchmarkError(f"prompts differ in length: {lengths}")
            prompt_tokens = lengths.pop()
            return {
                **record,
                "prompt_tokens": prompt_tokens,
                "floor_seconds": whole_floor(job, prompt_tokens, CLOCK)["seconds"],
            }

    def _two_steps(self, sides: Sides, case: Case) -> dict[str, Any]:
        """Two steps of each side, a b, b a, or one if that is slow; memory is looked at in the first."""
        found: dict[str, dict[str, Any]] = {name: {"cpu": [], "seconds": [], "losses": []} for name in sides}
        for name, one in found.items():
            if name in TRAINER:
                self._within(sides, name, lambda name=name, one=one: one.update(sides[name].prepare(case)))
            step = partial(take_step, sides[name], one)
            self._within(sides, name, lambda n=name, o=one, s=step: o.update(sides[n].memory(s)))
        if max((seconds for one in found.values() for seconds in one["cpu"]), default=SLOW) < SLOW:
            # all or none: sides that took another number of steps have other weights, and other losses
            for name, one in reversed(found.items()):
                self._within(sides, name, partial(take_step, sides[name], one))
        for losses in zip(*(one["losses"] for one in found.values()), strict=False):
            if max(losses) - min(losses) > TOLERANCE:
                raise BenchmarkError(f"the sides computed different losses for {case}: {losses}")
        return {name: {"over": sides.over[name]} if name in sides.over else found[name] for name in found}

    def _within(self, sides: Sides, name: str, work: Any) -> None:
        """Let a side work, unless it exceeded a limit before; it is ended if it does now."""
        if name in sides.over:
            return
        with Guard(sides[name].family, self._options.gib * 2**30, self._options.limit) as guard:
            try:
                work()
            except (BenchmarkError, BrokenPipeError):
                if not guard.reason:
                    raise
                sides.over[name] = guard.reason


class Sides(dict[str, Side]):
    """Those of a point or curve by name, closed at the end, and which limit those exceeded that are gone."""

    def __init__(self) -> None:
        super().__init__()
        self.over: dict[str, str] = {}

    def start(self, name: str, python: Path, job: Job) -> None:
        """Start one."""
        self[name] = Side(name, python, job)

    def __enter__(self) -> Sides:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self.values():
            side.close()


def take_step(side: Side, found: dict[str, Any]) -> None:
    """One step; its seconds, CPU seconds of all its processes, and what it says of its work."""
    before = CpuTimes.now()
    block = side.run(1)
    after = CpuTimes.now()
    found["cpu"].append(after.of(side.pid) - before.of(side.pid))
    found["seconds"] += block["seconds"]
    if "losses" in block:
        found["losses"] += block["losses"]
    if lengths := block["tally"]["prompt_tokens"]:
        found["prompt_tokens"] = lengths


def words(record: Mapping[str, Any]) -> str:
    """A point's CPU seconds."""
    sides = {name: one for name, one in record.items() if isinstance(one, dict)}
    found = [
        f"{name} {one.get('over') or format(min(one['cpu']), '.3g') + ' s'}" for name, one in sides.items()
    ]
    return ", ".join(found)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is missing, then print the tables of what is there."""
    parser = argparse.ArgumentParser(description="How the cost of a step grows with its sizes.")
    parser.add_argument("--keep", type=Path, required=True, help="a folder for the points; some may be there")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS, help="none: only print")
    names = [curve.name for curve in CURVES]
    parser.add_argument("--quantities", nargs="+", choices=names, default=names, help="default: all")
    parser.add_argument("--seconds", type=float, default=600, help="after which no further point is started")
    parser.add_argument("--limit", type=float, default=300, help="seconds that a step may take")
    parser.add_argument("--gib", type=float, default=8, help="resident memory that a side may use")
    parser.add_argument("--threads", type=int, default=1, help="of each side")
    parser.add_argument("--image", type=Path, help="a PNG or SVG of all curves")
    parser.add_argument("--trl-python", type=Path, default=ROOT / ".venv-trl" / "bin" / "python")
    options = parser.parse_args(argv)
    if "whole" in options.parts and not options.trl_python.exists():
        parser.error(f"{options.trl_python} is not there; `make trl-env` makes TRL's environment")
    options.keep.mkdir(parents=True, exist_ok=True)
    points = Points(options.keep / "points.jsonl")
    sweep = Sweep(options, points)
    try:
        for part in options.parts:
            getattr(sweep, part)()
    except BenchmarkError as error:
        say(f"step_sweep: {error}")
        return 1
    from sweep_table import draw, tables

    print(tables(points))
    if options.image:
        draw(points, options.image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
