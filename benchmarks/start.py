"""Where the time of a run's start goes: `vlrl train` from its first instruction to its first step.

    python benchmarks/start.py configs/quickstart.yaml model.path=runs/quickstart-sft/model
    python benchmarks/start.py --tree ../before --tree . --rounds 4 CONFIG KEY=VALUE …   # two versions

Each round starts the command in a process of its own, as a user does, notes when each line of the console
comes, and reads the processor seconds of all the run's processes when the first step is done; then it asks
the run to stop. Given is, of each tree, the least and the median of the rounds: seconds from the start of the
process to the beginning of each phase, to the first line and to the first step; processor seconds by process;
and the load of the machine when each round began. Held-out rows are not asked: what they take is no start.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import psutil

from vlrl.process.json_stdout import parse_with_json, print_figures

STEP_LINE = re.compile(r"\s*1/\d+ ")
FIRST_STEP = "first step"
FIRST_LINE = "first line"
OVERRIDES = ("data.eval=null", "num_steps=1000", "checkpoint.every=0", "run.name=start")
"""Nothing is evaluated or saved: only the start counts."""


def measure(tree: Path, arguments: Sequence[str], run_dir: Path) -> dict[str, Any]:
    """One start of the version in `tree`: seconds to each phase, and processor seconds by process."""
    load = os.getloadavg()[0]
    program = [sys.executable, "-c", "from vlrl.cli.main import main; main()"]
    env = os.environ | {"PYTHONPATH": str(tree), "PYTHONUNBUFFERED": "1"}
    begin = time.monotonic()
    run = subprocess.Popen(
        [*program, "train", *arguments, *OVERRIDES, f"run.dir={run_dir}"],
        env=env,
        cwd=tree,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert run.stdout is not None
        seconds, lines = follow(run.stdout, begin)
        if FIRST_STEP not in seconds:
            raise SystemExit(f"{tree}: the run ended before its first step:\n" + "".join(lines[-10:]))
        cpu = processor_seconds(run.pid)
    finally:
        run.send_signal(signal.SIGTERM)
        run.communicate()
    return {"seconds": seconds, "cpu_seconds": cpu | {"all": sum(cpu.values())}, "load": load}


def follow(output: IO[str], begin: float) -> tuple[dict[str, float], list[str]]:
    """Seconds since `begin` to each phase and to the first step, and the lines up to there."""
    seconds: dict[str, float] = {}
    lines = []
    for line in output:
        now = time.monotonic() - begin
        lines.append(line)
        seconds.setdefault(FIRST_LINE, now)
        if line.endswith(" …\n"):
            seconds.setdefault(line.removesuffix(" …\n"), now)
        if STEP_LINE.match(line):
            seconds[FIRST_STEP] = now
            break
    return seconds, lines


def processor_seconds(pid: int) -> dict[str, float]:
    """Processor seconds of a process and all below it, by what they are; those of ended children included."""
    found: dict[str, float] = defaultdict(float)
    driver = psutil.Process(pid)
    for process in [driver, *driver.children(recursive=True)]:
        try:
            name = "driver" if process == driver else role_of(process.cmdline())
            found[name] += sum(process.cpu_times()[:4])  # user, system, and both of ended children
        except psutil.NoSuchProcess:
            continue
    return dict(found)


def role_of(command: Sequence[str]) -> str:
    """engine, rank, or Ray's own."""
    title = command[0] if command else ""
    roles = {"ray::GeneratorActor": "engine", "ray::TrainerRank": "rank"}
    return next((role for start, role in roles.items() if title.startswith(start)), "Ray")


def summary(rounds: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The least and the median of each figure, in the order in which the phases came."""
    found: dict[str, Any] = {}
    rounds = list(rounds)
    for part in ("seconds", "cpu_seconds"):
        for name in rounds[-1][part]:
            values = [each[part][name] for each in rounds if name in each[part]]
            found[f"{part}: {name}"] = [round(min(values), 1), round(statistics.median(values), 1)]
    return found | {"loads": [round(each["load"], 1) for each in rounds]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arguments", nargs="+", help="of vlrl train: the config and overrides")
    parser.add_argument("--tree", type=Path, action="append", help="folder with a vlrl; may be given again")
    parser.add_argument("--rounds", type=int, default=4, help="starts of each tree, which take turns")
    options = parse_with_json(parser)
    trees = [tree.resolve() for tree in options.tree or [Path(__file__).parents[1]]]
    rounds = defaultdict(list)
    for number in range(options.rounds):
        for tree in trees:
            with tempfile.TemporaryDirectory() as run_dir:
                rounds[tree].append(measure(tree, options.arguments, Path(run_dir)))
            print(f"round {number + 1}, {tree}: {summary(rounds[tree][-1:])}", file=sys.stderr)
    print_figures({str(tree): summary(of_tree) for tree, of_tree in rounds.items()}, options.json)


if __name__ == "__main__":
    main()
