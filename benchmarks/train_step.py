"""A step of vlrl beside TRL's and beside plain padded rows, the sides taking turns in one run.

    .venv/bin/python benchmarks/train_step.py --case b --json

a: quickstart's size. b: 12 M parameters, a prompt of 300 tokens with an image, n=8, 48 generated tokens.
c: 6 turns of a GUI episode with a screenshot a turn, n=8. d: 3B or 7B shapes in bfloat16; needs a GPU.

Whole steps (a, b): generation and training of vlrl, by vLLM and a ZeRO-3 rank, and of TRL's GRPOTrainer, on
the same model files, rows, number of completions and of generated tokens, optimizer, float32 and cores. The
trainer alone (all cases): vlrl's rank on packed trees and transformers' own forward pass of padded rows, on
the same episodes of random tokens, with equal losses.

Each side is a process of its own that stays up; they take turns, block by block, and the idle one must sleep.
Starting up and the first steps are not counted. OpenMP's barriers make a step many times slower while other
programs use the cores, on one side more than on the other, so rounds in which others did are measured again;
if there were too few quiet ones the result says so: `quiet` is false; then --threads 1, which has no
barriers, says more. Memory is the sum of the peaks of a side's processes, libraries included; pages they
share count in each, which is to vlrl's disadvantage. Private memory, of all processes and of the one that
trains, is sampled afterwards in a block of its own, since sampling disturbs a step (step_memory.py). The
floor is what the operations that cannot be avoided take at the rate of a matmul measured in the same run.

With --json the last line is one object: `speedup` and `memory_ratio` against `against` (TRL, or rows where
TRL cannot), `speedup_rows` and `memory_ratio_rows`, and both comparisons whole; in each, private memory as
`private_memory_ratio` (USS), `proportional_memory_ratio` (PSS) and `anonymous_memory_ratio` (without what
files back), and with `trainer_` before them those of the process that trains against the other side's.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from cases import AGAINST_TRL, CASES, Case
from step_floor import gpu_matmul_rate, read_model_config
from step_job import BenchmarkError, Job
from step_jobs import cpu_rate, trainer_job, whole_floor, whole_job
from step_memory import ratios
from step_report import Round, check_equal_losses, check_equal_work, report, summarize
from step_rounds import alternate, say
from step_side import Side

from vlrl.process.json_stdout import parse_with_json, print_json

ROOT = Path(__file__).resolve().parent.parent
WHOLE, TRAINER = ("vlrl", "trl"), ("packed", "rows")
SIZES = ("groups", "group_size", "turns", "images", "image_tokens", "completion_tokens")
"""Of a case that an option of the same name replaces."""


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with status 2 and a message for values that make no sense."""
    parser = argparse.ArgumentParser(description="Time a step of vlrl beside TRL's and beside plain rows.")
    parser.add_argument("--case", choices=sorted(CASES), required=True)
    parser.add_argument("--shape", choices=("tiny", "11m", "mid", "200m", "3b", "7b"), help="another model")
    for name in SIZES:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="instead of the case's")
    parser.add_argument("--alike", type=float, help="chance that a turn is the first episode's")
    parser.add_argument("--steps", type=int, default=2, help="steps of each side in a round")
    parser.add_argument("--rounds", type=int, default=3, help="quiet rounds wanted (default %(default)s)")
    parser.add_argument("--max-rounds", type=int, default=6, help="rounds at most, if others use the machine")
    parser.add_argument("--warmup", type=int, default=2, help="steps of each side not counted")
    parser.add_argument("--threads", type=int, default=2, help="cores all sides may use, in turns")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=("whole", "trainer"), help="one of the two comparisons")
    parser.add_argument("--micro-batch", type=int, help="completions TRL trains at a time; default: all")
    parser.add_argument("--keep", type=Path, help="a folder for models, rows and logs, kept afterwards")
    parser.add_argument("--trl-python", type=Path, default=ROOT / ".venv-trl" / "bin" / "python")
    options = parse_with_json(parser, argv)
    _check(parser, options)
    return options


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    least = dict.fromkeys(("steps", "rounds", "warmup", "threads", *SIZES), 1)
    for name, minimum in {**least, "group_size": 2, "completion_tokens": 2}.items():
        if (value := getattr(options, name)) is not None and value < minimum:
            parser.error(f"--{name.replace('_', '-')} must be at least {minimum}")
    if options.max_rounds < options.rounds:
        parser.error(f"--max-rounds {options.max_rounds} is below --rounds {options.rounds}")
    if options.only == "whole" and options.case not in AGAINST_TRL:
        parser.error(f"case {options.case} has no whole step; those of {', '.join(AGAINST_TRL)} have")
    whole = options.case in AGAINST_TRL and options.only != "trainer"
    if whole and not options.trl_python.exists():
        parser.error(f"{options.trl_python} is not there; `make trl-env` makes TRL's environment")
    if options.micro_batch is not None and case_of(options).completions % options.micro_batch:
        parser.error(f"--micro-batch {options.micro_batch} does not divide {case_of(options).completions}")


def job_options(options: argparse.Namespace) -> dict[str, Any]:
    """What a job needs to know besides its case."""
    max_steps = options.warmup + options.steps * (options.max_rounds + 1)  # the last ones: memory's
    names = ("threads", "seed", "micro_batch")
    return {"max_steps": max_steps, **{name: getattr(options, name) for name in names}}


def case_of(options: argparse.Namespace) -> Case:
    """The case with what the command line changes."""
    given = {name: getattr(options, name) for name in ("shape", "alike", *SIZES)}
    return replace(CASES[options.case], **{k: v for k, v in given.items() if v is not None})


def compare(
    names: Sequence[str], job: Job, options: argparse.Namespace
) -> tuple[dict[str, Any], list[Round]]:
    """Start the sides, let them take turns, sum up; the first is measured against the second."""
    sides: list[Side] = []
    try:
        for name in names:
            say(f"starting {name}")
            python = options.trl_python if name == "trl" else Path(sys.executable)
            sides.append(Side(name, python, job))
            sides[-1].run(options.warmup)
            sides[-1].reset_peaks()
        say(f"rounds of {options.steps} steps on each side, until {options.rounds} were quiet")
        wanted = {"rounds": options.rounds, "max_rounds": options.max_rounds}
        rounds = alternate(sides, steps=options.steps, **wanted)
        result = summarize(rounds, {side.name: side.peaks() for side in sides})
        for side in sides:
            result[side.name] |= {"start_up": side.start_up, **side.memory(partial(side.run, options.steps))}
        result |= ratios(*(result[side.name] for side in sides))
    finally:
        for side in sides:
            side.close()
    return result, rounds


def whole_steps(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """vlrl's step against TRL's."""
    folder.mkdir()
    job = whole_job(case_of(options), folder, **job_options(options))
    result, rounds = compare(WHOLE, job, options)
    prompt_tokens = check_equal_work(job, options.steps, rounds)
    return {**result, "prompt_tokens": prompt_tokens, "floor": whole_floor(job, prompt_tokens)}


def trainers(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """vlrl's trainer against padded rows."""
    import torch

    folder.mkdir()
    job = trainer_job(case_of(options), folder, **job_options(options))
    result, rounds = compare(TRAINER, job, options)
    result["loss_difference"] = check_equal_losses(job, rounds)
    ours, theirs = (rounds[0].blocks[name] for name in TRAINER)
    num_tokens, flops = ours["num_tokens"], ours["flops"]
    config = read_model_config(job.model)
    on_gpu = torch.cuda.is_available()
    rate = gpu_matmul_rate() if on_gpu else cpu_rate(config, num_tokens, job.threads)
    result["floor"] = {"gflop": flops / 1e9, "matmul_gflop_per_s": rate / 1e9, "seconds": flops / rate}
    seconds = result["packed"]["median"]
    result |= {"num_tokens": num_tokens, "num_slots_of_rows": theirs["num_tokens"]}
    return result | {
        "tokens_per_s": num_tokens / seconds,
        "fraction_of_floor": flops / rate / seconds,
    }


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Both comparisons of a case, and what they come to."""
    import torch

    case = case_of(options)
    on_gpu = torch.cuda.is_available()
    result: dict[str, Any] = {"case": options.case, "sizes": vars(case), "threads": options.threads}
    if options.case in AGAINST_TRL and options.only != "trainer":
        whole = whole_steps(options, folder / "whole")
        print(f"case {options.case}, whole steps:\n{report(whole, WHOLE)}\n", flush=True)
        result |= {"against": "trl", "whole": whole}
        result |= {key: whole[key] for key in ("speedup", "memory_ratio", "quiet")}
    if options.only != "whole":
        alone = trainers(options, folder / "trainer")
        print(f"case {options.case}, the trainer alone:\n{report(alone, TRAINER)}\n", flush=True)
        result |= {"trainer": alone, "speedup_rows": alone["speedup"]}
        result |= {"memory_ratio_rows": alone["memory_ratio"]}
        keys = ("speedup", "memory_ratio", "quiet")
        result = {"against": "rows", **{key: alone[key] for key in keys}, **result}
    device = torch.cuda.get_device_name() if on_gpu else f"CPU, {os.cpu_count()} cores"
    return {**result, "load": os.getloadavg()[0], "device": device}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, measure, print."""
    options = parse_arguments(argv)
    if options.case == "d":
        import torch

        if not torch.cuda.is_available():
            say("case d needs an NVIDIA GPU with room for a 3B model in training; there is none")
            return 2
    cores = sorted(os.sched_getaffinity(0))[: options.threads]
    if len(cores) < options.threads:
        say(
            f"only {len(cores)} cores are to be had; --threads {options.threads} would be unfair to all sides"
        )
        return 2
    os.sched_setaffinity(0, cores)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all sides are stopped
    try:
        with tempfile.TemporaryDirectory(prefix="train_step-") as temporary:
            folder = (options.keep or Path(temporary)).resolve()
            folder.mkdir(parents=True, exist_ok=True)
            result = measure(options, folder)
    except BenchmarkError as error:
        say(f"train_step: {error}")
        return 1
    if options.json:
        print_json(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
