"""Where a whole step's time goes, phase by phase and process by process, as numbers that add up and a chart.

    .venv/bin/python benchmarks/step_profile.py --case b --image docs/images/step_profile.png --json

The step is train_step.py's side of vlrl: the same model, rows and sizes. While it runs, processor seconds and
page faults of every process are read from /proc, twenty times a second, and counted for the phase that the
driver was in by its timeline; what no process used of the cores is idle, or was others'. Then a last step's
update is profiled by `profile.steps`, which says how the trainer's seconds divide. The floor of a phase is
what the operations that it cannot do without take at the rate of a matmul measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases import AGAINST_TRL, CASES
from step_floor import FORWARD_PASSES
from step_job import BenchmarkError, Job
from step_jobs import whole_floor, whole_job
from step_side import Side

from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.timeline import TIMELINE_FILE, Span, read_timeline

EVERY_S = 0.05
PHASES = ("generate", "train", "sync", "rest")
"""Of the driver: waiting for a batch; the trainer's turn, packing included; the new weights; all else."""
PROCESSES = {"trainer": ("TrainerRank",), "engine": ("GeneratorActor", "VLLM"), "driver": ("vlrl_step.py",)}
"""Whose a process is, by what its command line holds; those of none are Ray's own and its workers."""
RAY = "Ray"
IDLE = "idle or others"
COLORS = {
    **{"generate": "#c46a1b", "train": "#3b6fd4", "sync": "#4f9d69", "rest": "#7a7a7a"},
    **{"engine": "#c46a1b", "trainer": "#3b6fd4", "driver": "#4f9d69", RAY: "#7a5cc4", IDLE: "#b5b5b5"},
    **{"tower": "#2a9d8f", "language model": "#3b6fd4", "head and loss": "#c94f7c", "optimizer": "#7a5cc4"},
}


class Sampler(threading.Thread):
    """Reads the processes of a side again and again, until it is stopped.

    Attributes:
        used: (seconds since the epoch, processor seconds, page faults) by process name, as counted up so far.
    """

    def __init__(self, side: Side) -> None:
        super().__init__(daemon=True)
        self._side, self._done = side, threading.Event()
        self.used: list[tuple[float, dict[str, tuple[float, int]]]] = []

    def run(self) -> None:
        """Sample until the end of the block."""
        names: dict[int, str] = {}
        while not self._done.is_set():
            self.used.append((time.time(), read_processes(self._side, names)))
            self._done.wait(EVERY_S)

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()


def read_processes(side: Side, names: dict[int, str]) -> dict[str, tuple[float, int]]:
    """(processor seconds, page faults) of a side's processes so far, summed by name; keeps names found."""
    found: dict[str, tuple[float, int]] = {}
    ticks_per_second = os.sysconf("SC_CLK_TCK")
    for pid in side.family():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            if pid not in names:
                names[pid] = name_of(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:  # it ended meanwhile
            continue
        seconds, faults = found.get(names[pid], (0.0, 0))
        used = (int(fields[11]) + int(fields[12])) / ticks_per_second
        found[names[pid]] = (seconds + used, faults + int(fields[7]))
    return found


def name_of(command: str) -> str:
    """Whose a process is, by its command line."""
    owners = (name for name, parts in PROCESSES.items() if any(part in command for part in parts))
    return next(owners, RAY)


def shares(spans: Sequence[Span], begin: float, end: float) -> dict[str, float]:
    """What share of an interval the driver was in each phase, by the spans of its own lane."""
    found = dict.fromkeys(PHASES, 0.0)
    for span in spans:
        if span.what in found:
            found[span.what] += max(0.0, min(end, span.end_s) - max(begin, span.start_s)) / (end - begin)
    return {**found, "rest": max(0.0, 1 - sum(found.values()))}


def by_phase(
    samples: Sequence[tuple[float, Mapping[str, tuple[float, int]]]], spans: Sequence[Span], num_steps: int
) -> dict[str, dict[str, dict[str, float]]]:
    """Processor seconds and page faults of a step: phase → process → both."""
    found: dict[str, dict[str, dict[str, float]]] = {phase: {} for phase in PHASES}
    for (begin, before), (end, after) in pairwise(samples):
        for phase, share in shares(spans, begin, end).items():
            for name, counted in after.items():
                seconds, faults = (b - a for a, b in zip(before.get(name, counted), counted, strict=True))
                of_process = found[phase].setdefault(name, {"cpu_s": 0.0, "page_faults": 0.0})
                of_process["cpu_s"] += share * max(0.0, seconds) / num_steps
                of_process["page_faults"] += share * max(0, faults) / num_steps
    return found


def wall_by_phase(block: Mapping[str, Any]) -> dict[str, float]:
    """Mean seconds of a step by phase; they add up to the step."""
    parts = {name: statistics.fmean(seconds) for name, seconds in block["parts"].items()}
    wall = {name: parts.get(name, 0.0) for name in ("generate", "train", "sync")}
    wall["rest"] = statistics.fmean(block["seconds"]) - sum(wall.values())
    return wall


def floors(job: Job, block: Mapping[str, Any]) -> dict[str, float]:
    """The least seconds of the phases that compute, and the rate that this is at."""
    found = whole_floor(job, block["tally"]["prompt_tokens"][0])
    rate = found["matmul_gflop_per_s"]
    return {phase: found[f"{phase}_gflop"] / rate for phase in FORWARD_PASSES} | {"gflop_per_s": rate}


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run the steps; what they took."""
    last = options.warmup + options.steps
    sizes: dict[str, Any] = {"max_steps": last + 1, "threads": options.threads, "seed": 0}
    job = replace(whole_job(CASES[options.case], folder, micro_batch=None, **sizes), profiled_step=last)
    job.write()
    side = Side("vlrl", Path(sys.executable), job)
    try:
        side.run(options.warmup)
        with Sampler(side) as sampler:
            block = side.run(options.steps)
        side.run(1)
    finally:
        side.close()
    run_dir = folder / "vlrl"
    spans = [span for span in read_timeline(run_dir / TIMELINE_FILE) if span.lane == "trainer"]
    [profile] = (run_dir / "profile").glob("*_rank_0.json")
    wall = wall_by_phase(block)
    used = by_phase(sampler.used, spans, options.steps)
    cores = options.threads
    idle = {
        phase: cores * wall[phase] - sum(one["cpu_s"] for one in used[phase].values()) for phase in PHASES
    }
    return {
        "step_s": statistics.fmean(block["seconds"]),
        "wall_s": wall,
        "processes": used,
        "idle_or_others_s": idle,
        "floor_s": floors(job, block),
        "overheads": (wall["sync"] + wall["rest"]) / sum(wall.values()),
        "trainer": json.loads(profile.read_text()),
        "load": os.getloadavg()[0],
    }


def report(found: Mapping[str, Any]) -> list[str]:
    """Two tables of markdown: of the step, and of the trainer's profiled step."""
    names = ["trainer", "engine", "driver", RAY]
    lines = [
        "| phase | seconds | floor | "
        + " | ".join(f"CPU s: {name}" for name in names)
        + " | idle or others | "
        "page faults |",
        "|---" * (len(names) + 5) + "|",
    ]
    for phase in PHASES:
        used = found["processes"][phase]
        cpu = [f"{used.get(name, {}).get('cpu_s', 0.0):.2f}" for name in names]
        faults = sum(one["page_faults"] for one in used.values())
        least = found["floor_s"].get(phase)
        lines.append(
            f"| {phase} | {found['wall_s'][phase]:.3f} | {'' if least is None else f'{least:.3f}'} | "
            f"{' | '.join(cpu)} | {found['idle_or_others_s'][phase]:.2f} | {faults:,.0f} |"
        )
    trainer = found["trainer"]
    lines += ["", "| the trainer's profiled step | seconds |", "|---|---|"]
    lines += [f"| {name} | {seconds:.3f} |" for name, seconds in trainer["phases_s"].items()]
    lines.append(f"| of it Python, and waiting | {trainer['python_s']:.3f} |")
    lines += [f"| `{one['name']}` ({one['calls']}) | {one['seconds']:.3f} |" for one in trainer["operators"]]
    return lines


def draw(found: Mapping[str, Any], path: Path) -> None:
    """The step as bars: seconds beside floors, processor seconds by process, and the trainer's phases."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    cores = {
        phase: {name: one["cpu_s"] for name, one in sorted(found["processes"][phase].items())}
        | {IDLE: max(0.0, found["idle_or_others_s"][phase])}
        for phase in PHASES
    }
    rows: list[tuple[str, dict[str, float]]] = [
        ("a step, seconds", found["wall_s"]),
        ("its floor", {phase: found["floor_s"].get(phase, 0.0) for phase in PHASES}),
        *((f"{phase}: CPU seconds", cores[phase]) for phase in ("generate", "train")),
        ("the trainer, profiled", found["trainer"]["phases_s"]),
    ]
    for place, (_, parts) in enumerate(reversed(rows)):
        left, labels, narrow = 0.0, {"ha": "center", "va": "center", "fontsize": 7, "color": "white"}, []
        for name, seconds in parts.items():
            axes.barh(place, seconds, left=left, color=COLORS[name], edgecolor="white", linewidth=0.5)
            if seconds > 0.08 * found["step_s"]:
                axes.text(left + seconds / 2, place, f"{name}\n{seconds:.2f}", **labels)
            elif seconds > 0.005:
                narrow.append(f"{name} {seconds:.2f}")
            left += seconds
        axes.text(left, place, f"  {', '.join(narrow)}", va="center", fontsize=7)
    axes.set_yticks(range(len(rows)), [name for name, _ in reversed(rows)], fontsize=8)
    axes.set_xlabel("seconds", fontsize=8)
    axes.margins(x=0.25)  # for the names of what is narrow
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", choices=AGAINST_TRL, default="b")
    parser.add_argument("--steps", type=int, default=6, help="steps whose time is counted")
    parser.add_argument("--warmup", type=int, default=2, help="steps before them")
    parser.add_argument("--threads", type=int, default=2, help="cores of all processes")
    parser.add_argument("--image", type=Path, help="a PNG to draw")
    parser.add_argument("--keep", type=Path, help="a folder for the run, kept afterwards")
    options = parse_with_json(parser, argv)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.threads])
    try:
        with tempfile.TemporaryDirectory(prefix="step_profile-") as temporary:
            folder = (options.keep or Path(temporary)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            found = measure(options, folder)
    except BenchmarkError as error:
        print(f"step_profile: {error}", file=sys.stderr)
        return 1
    print("\n".join(report(found)))
    if options.image is not None:
        draw(found, options.image)
    if options.json:
        print_json(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
