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
share count in each, which is to vlrl's disadvantage. The floor is what the operations that cannot be avoided
take at the rate of a matmul measured in the same run.

With --json the last line is one object: `speedup` and `memory_ratio` against `against` (TRL, or rows where
TRL cannot), `speedup_rows` and `memory_ratio_rows`, and both comparisons whole.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import AGAINST_TRL, CASES, Case
from step_floor import Work, floor, gpu_matmul_rate, matmul_rate, read_model_config
from step_job import BenchmarkError, Job
from step_report import Round, check_equal_losses, check_equal_work, report, summarize
from step_rounds import alternate, say
from step_side import Side

from vlrl.process.json_stdout import parse_with_json, print_json

ROOT = Path(__file__).resolve().parent.parent
WHOLE, TRAINER = ("vlrl", "trl"), ("packed", "rows")
PATCHES_PER_TOKEN = 4


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line; exits with status 2 and a message for values that make no sense."""
    parser = argparse.ArgumentParser(description="Time a step of vlrl beside TRL's and beside plain rows.")
    parser.add_argument("--case", choices=sorted(CASES), required=True)
    parser.add_argument("--shape", choices=("tiny", "11m", "mid", "3b", "7b"), help="another model")
    for name in ("groups", "group_size", "turns", "completion_tokens"):
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
    least = {"steps": 1, "rounds": 1, "warmup": 1, "groups": 1, "group_size": 2, "completion_tokens": 2}
    for name, minimum in {**least, "threads": 1}.items():
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


def case_of(options: argparse.Namespace) -> Case:
    """The case with what the command line changes."""
    names = ("shape", "groups", "group_size", "turns", "completion_tokens", "alike")
    given = {name: getattr(options, name) for name in names}
    return replace(CASES[options.case], **{k: v for k, v in given.items() if v is not None})


def whole_job(options: argparse.Namespace, folder: Path) -> Job:
    """Write the model, with tokenizer and processor, and the rows that both sides of a whole step read."""
    import numpy as np
    from train_shapes import TEXT
    from transformers.utils import logging

    from vlrl.envs.visual.questions.digit_sum import INSTRUCTION, DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    logging.disable_progress_bar()
    case, max_steps = case_of(options), options.warmup + options.steps * options.max_rounds
    rows = DigitSum(num_rows=max_steps * case.groups, num_digits=case.images, image_size=case.image_pixels)
    contents = [rows[i]["messages"][0]["content"] for i in range(len(rows))]
    images = [[part["image"] for part in content if part["type"] == "image"] for content in contents]
    np.savez(folder / "rows.npz", images=np.asarray(images))
    corpus = [INSTRUCTION, *(str(rows[i]["target"]) for i in range(min(256, len(rows))))]
    text = TEXT[case.shape]
    model = build_tiny_qwen2_5_vl(
        folder / "model",
        corpus,
        seed=options.seed,
        hidden_size=text["hidden_size"],
        num_layers=text["num_hidden_layers"],
        num_heads=text["num_attention_heads"],
    )
    job = _job(options, folder, model, rows=str(folder / "rows.npz"), text=INSTRUCTION, num_rows=len(rows))
    job.write()
    return job


def trainer_job(options: argparse.Namespace, folder: Path) -> Job:
    """Write random weights of the case's shape for the sides that only train."""
    import torch
    from train_shapes import build_model

    case = case_of(options)
    build_model(case.shape, folder / "model", getattr(torch, case.dtype))
    job = _job(options, folder, folder / "model", rows="", text="", num_rows=0)
    job.write()
    return job


def _job(
    options: argparse.Namespace, folder: Path, model: Path, *, rows: str, text: str, num_rows: int
) -> Job:
    case = case_of(options)
    return Job(
        folder=str(folder),
        model=str(model),
        rows=rows,
        text=text,
        case=case,
        lr=2e-4,
        betas=(0.9, 0.95),
        max_grad_norm=1.0,
        num_rows=num_rows,
        max_steps=options.warmup + options.steps * options.max_rounds,
        micro_batch=options.micro_batch or case.completions,
        threads=options.threads,
        seed=options.seed,
    )


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
            result[side.name]["start_up"] = side.start_up
    finally:
        for side in sides:
            side.close()
    return result, rounds


def whole_steps(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """vlrl's step against TRL's."""
    folder.mkdir()
    job = whole_job(options, folder)
    result, rounds = compare(WHOLE, job, options)
    prompt_tokens = check_equal_work(job, options.steps, rounds)
    case, config = job.case, read_model_config(job.model)
    work = Work(
        prompts=case.groups,
        group_size=case.group_size,
        prompt_tokens=prompt_tokens,
        completion_tokens=case.completion_tokens,
        images_per_prompt=case.images,
        patches=PATCHES_PER_TOKEN * case.image_tokens,
        image_tokens=case.image_tokens,
    )
    rate = _cpu_rate(config, work.tree_tokens, job.threads)
    return {**result, "prompt_tokens": prompt_tokens, "floor": floor(config, work, rate)}


def trainers(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """vlrl's trainer against padded rows."""
    import torch

    folder.mkdir()
    job = trainer_job(options, folder)
    result, rounds = compare(TRAINER, job, options)
    result["loss_difference"] = check_equal_losses(job, rounds)
    ours, theirs = (rounds[0].blocks[name] for name in TRAINER)
    num_tokens, flops = ours["num_tokens"], ours["flops"]
    config = read_model_config(job.model)
    on_gpu = torch.cuda.is_available()
    rate = gpu_matmul_rate() if on_gpu else _cpu_rate(config, num_tokens, job.threads)
    result["floor"] = {"gflop": flops / 1e9, "matmul_gflop_per_s": rate / 1e9, "seconds": flops / rate}
    seconds = result["packed"]["median"]
    result |= {"num_tokens": num_tokens, "num_slots_of_rows": theirs["num_tokens"]}
    return result | {
        "tokens_per_s": num_tokens / seconds,
        "fraction_of_floor": flops / rate / seconds,
    }


def _cpu_rate(config: dict[str, Any], num_tokens: int, threads: int) -> float:
    """Operations per second of a matmul as large as a step's widest, with the sides' threads."""
    import torch

    from vlrl.model.cpu_matmul import choose_products

    torch.set_num_threads(threads)
    choose_products()  # as vlrl's side does; the floor is for the better of torch's libraries
    text = config["text_config"]
    return matmul_rate(min(num_tokens, 4096), text["hidden_size"], text["intermediate_size"])


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
