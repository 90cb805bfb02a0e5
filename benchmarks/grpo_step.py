"""Seconds of a GRPO step on vlrl and on TRL's GRPOTrainer, in one run: `make bench`.

    .venv/bin/python benchmarks/grpo_step.py [--steps N] [--rounds R] [--json]

Both sides get the same model files, rows, number of completions and of drawn tokens, optimizer, float32 and
cores. Each is a process of its own that stays up; they take turns, block by block, and the idle one must
sleep. Starting up and the first steps are not in the medians. OpenMP's barriers make a step many times slower
while other programs use the cores, on one side more than on the other, so rounds in which others did are
measured again, and if there were too few quiet ones the result says so: `quiet` is false.
With --json the last line is one object: `ratio` (TRL seconds / vlrl seconds), both medians, and the details.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from step_floor import Work, floor, matmul_rate, read_model_config
from step_job import BenchmarkError, Job
from step_report import SIDES, Round, check_equal_work, describe, report, summarize
from step_side import CpuTimes, Side

ROOT = Path(__file__).resolve().parent.parent
IMAGE_SIZE = 56
TOKEN_PIXELS, PATCH_PIXELS = 28, 14


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with status 2 and a message for values that make no sense."""
    parser = argparse.ArgumentParser(description="Time a GRPO step on vlrl and on TRL, side by side.")
    parser.add_argument(
        "--steps", type=int, default=10, help="steps of each side in a round (default %(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=6, help="quiet rounds wanted (default %(default)s)")
    parser.add_argument(
        "--max-rounds", type=int, default=18, help="rounds at most, if others use the machine"
    )
    parser.add_argument("--warmup", type=int, default=5, help="steps of each side not counted")
    parser.add_argument("--prompts", type=int, default=8, help="prompts of a step (default %(default)s)")
    parser.add_argument("--group-size", type=int, default=8, help="completions of a prompt, n")
    parser.add_argument("--completion-tokens", type=int, default=16, help="tokens of every completion")
    parser.add_argument("--threads", type=int, default=2, help="cores both sides may use, in turns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="last line of stdout: one JSON object")
    parser.add_argument("--keep", type=Path, help="a folder for model, rows and logs, kept afterwards")
    parser.add_argument("--only", choices=SIDES, help="run one side alone: no ratio")
    parser.add_argument("--trl-python", type=Path, default=ROOT / ".venv-trl" / "bin" / "python")
    options = parser.parse_args(argv)
    least = {"steps": 1, "rounds": 1, "warmup": 1, "prompts": 1, "group_size": 2, "completion_tokens": 2}
    for name, minimum in {**least, "threads": 1}.items():
        if getattr(options, name) < minimum:
            parser.error(f"--{name.replace('_', '-')} must be at least {minimum}")
    if options.max_rounds < options.rounds:
        parser.error(f"--max-rounds {options.max_rounds} is below --rounds {options.rounds}")
    if options.only != "vlrl" and not options.trl_python.exists():
        parser.error(f"{options.trl_python} is not there; `make trl-env` makes TRL's environment")
    return options


def prepare(options: argparse.Namespace, folder: Path) -> Job:
    """Write the model and the rows that both sides read."""
    import numpy as np
    from transformers.utils import logging

    from vlrl.envs.visual.digit_sum import INSTRUCTION, DigitSum
    from vlrl.tiny import build_tiny_qwen2_5_vl

    logging.disable_progress_bar()
    max_steps = options.warmup + options.steps * options.max_rounds
    rows = DigitSum(num_rows=max_steps * options.prompts, image_size=IMAGE_SIZE)
    contents = [rows[i]["messages"][0]["content"] for i in range(len(rows))]
    images = [[part["image"] for part in content if part["type"] == "image"] for content in contents]
    np.savez(folder / "rows.npz", images=np.asarray(images))
    corpus = [INSTRUCTION, *(str(rows[i]["target"]) for i in range(min(256, len(rows))))]
    model = build_tiny_qwen2_5_vl(folder / "model", corpus, seed=options.seed)
    job = Job(
        folder=str(folder),
        model=str(model),
        rows=str(folder / "rows.npz"),
        text=INSTRUCTION,
        prompts=options.prompts,
        group_size=options.group_size,
        completion_tokens=options.completion_tokens,
        lr=2e-4,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        num_rows=len(rows),
        max_steps=max_steps,
        threads=options.threads,
        seed=options.seed,
    )
    job.write()
    return job


def alternate(sides: Sequence[Side], options: argparse.Namespace) -> list[Round]:
    """Run rounds, in each a block of every side, until enough were quiet or the limit is reached."""
    rounds: list[Round] = []
    while len(rounds) < options.max_rounds:
        # a b, b a, a b, …: a drift of the machine's speed hits both alike
        order = sides if len(rounds) % 2 == 0 else list(reversed(sides))
        rounds.append(run_round(order, options.steps))
        say(f"round {len(rounds)}: {describe(rounds[-1])}")
        if sum(r.quiet for r in rounds) == options.rounds:
            break
    return rounds


def run_round(sides: Sequence[Side], steps: int) -> Round:
    """One block of each side, and what else the machine did meanwhile."""
    blocks: dict[str, dict[str, Any]] = {}
    idle, others, seconds = dict.fromkeys((side.name for side in sides), 0.0), 0.0, 0.0
    for side in sides:
        begin, before = time.perf_counter(), CpuTimes.now()
        blocks[side.name] = side.run(steps)
        after = CpuTimes.now()
        seconds += time.perf_counter() - begin
        own = os.getpid()  # both sides are its children
        others += after.of_others(own) - before.of_others(own)
        for other in sides:
            if other is not side:
                idle[other.name] += after.of(other.pid) - before.of(other.pid)
    return Round(blocks, idle={name: s / seconds for name, s in idle.items()}, others=others / seconds)


def work_of(job: Job, prompt_tokens: int) -> Work:
    """The step's sizes, for its floor."""
    return Work(
        prompts=job.prompts,
        group_size=job.group_size,
        prompt_tokens=prompt_tokens,
        completion_tokens=job.completion_tokens,
        pictures_per_prompt=2,
        patches=(IMAGE_SIZE // PATCH_PIXELS) ** 2,
        image_tokens=(IMAGE_SIZE // TOKEN_PIXELS) ** 2,
    )


def measure_floor(job: Job, prompt_tokens: int) -> dict[str, float]:
    """The floor at the rate of a matmul as large as a step's widest, with the job's threads."""
    import torch

    torch.set_num_threads(job.threads)
    config, work = read_model_config(job.model), work_of(job, prompt_tokens)
    text = config["text_config"]
    rate = matmul_rate(work.tree_tokens, text["hidden_size"], text["intermediate_size"])
    return floor(config, work, rate)


def compare(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run everything and return the result."""
    job = prepare(options, folder)
    pythons = {"vlrl": Path(sys.executable), "trl": options.trl_python}
    sides: list[Side] = []
    try:
        for name in [options.only] if options.only else SIDES:
            say(f"starting {name}")
            sides.append(Side(name, pythons[name], job))
            sides[-1].run(options.warmup)
        say(f"rounds of {options.steps} steps on each side, until {options.rounds} were quiet")
        rounds = alternate(sides, options)
    finally:
        for side in sides:
            side.close()
    prompt_tokens = check_equal_work(job, options.steps, rounds)
    result = summarize(rounds)
    for side in sides:
        result[side.name]["start_up"] = side.start_up
    result["floor"] = measure_floor(job, prompt_tokens)
    sizes = ("prompts", "group_size", "completion_tokens", "threads", "lr", "seed")
    result["job"] = {**{name: getattr(job, name) for name in sizes}, "prompt_tokens": prompt_tokens}
    return result


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    cores = sorted(os.sched_getaffinity(0))[: options.threads]
    if len(cores) < options.threads:
        say(f"only {len(cores)} cores are to be had; --threads {options.threads} would be unfair to both")
        return 2
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that both sides are stopped
    try:
        with tempfile.TemporaryDirectory(prefix="grpo_step-") as temporary:
            folder = (options.keep or Path(temporary)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            result = compare(options, folder)
    except BenchmarkError as error:
        say(f"grpo_step: {error}")
        return 1
    print(report(result))
    if options.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
