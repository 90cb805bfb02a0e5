"""A training step of vlrl against plain padded rows, alternating in one run.

    .venv/bin/python benchmarks/train_step.py --case b --json

a: quickstart's size. b: 11 M parameters, a prompt with a picture of 300 tokens, n=8, 48 drawn tokens.
c: 6 turns of a GUI episode with a screenshot a turn, n=8. d: 3B or 7B shapes in bfloat16; needs a GPU.
Random weights, tokens and pictures. `speedup` is rows / vlrl of the medians, `memory_ratio` vlrl / rows of
the peaks (of the process, libraries included; on a GPU of its memory). The floor is what the step's
operations, each shared token once, take at the rate of a large matmul measured in the same run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from step_floor import matmul_rate
from train_case import CASES, TEXT, Case, write_model
from train_sides import serve

SIDES = ("vlrl", "rows")
TOLERANCE = 1e-3
"""Both sides' losses must agree to this, or they did not do the same; bfloat16 is allowed 50 times it."""


def measure(case: Case, steps: int, threads: int) -> dict[str, Any]:
    """Start both sides, let them take turns, sum up."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        write_model(case, Path(folder))
        pipes, processes, starts = {}, [], {}
        for kind in SIDES:
            pipes[kind], theirs = context.Pipe()
            arguments = (kind, case, folder, threads, theirs)
            processes.append(context.Process(target=serve, args=arguments, daemon=True))
            processes[-1].start()
            theirs.close()  # so that a side that dies is noticed
            starts[kind] = pipes[kind].recv()
        answers: dict[str, list[dict[str, float]]] = {kind: [] for kind in SIDES}
        for number in range(steps):
            for kind in SIDES if number % 2 == 0 else SIDES[::-1]:
                pipes[kind].send("step")
                answers[kind].append(pipes[kind].recv())
        for pipe in pipes.values():
            pipe.send(None)
        for process in processes:
            process.join()
    return summary(case, starts, answers, threads)


def summary(case: Case, starts: Any, answers: Any, threads: int) -> dict[str, Any]:
    """One result from what the sides answered."""
    losses = [answers[kind][0]["loss"] for kind in SIDES]
    allowed = TOLERANCE * (1 if case.dtype == "float32" else 50)
    if abs(losses[0] - losses[1]) > allowed:
        raise SystemExit(f"the sides computed different losses: {losses}; the comparison is void")
    result: dict[str, Any] = {}
    for kind in SIDES:
        result[kind] = {
            "median_s": statistics.median(a["seconds"] for a in answers[kind]),
            "median_cpu_s": statistics.median(a["cpu_seconds"] for a in answers[kind]),
            "all_s": [round(a["seconds"], 4) for a in answers[kind]],
            "peak_bytes": answers[kind][-1]["peak"],
            "num_tokens": starts[kind]["num_tokens"],
        }
    vlrl, rows = (result[kind] for kind in SIDES)
    text = TEXT[case.shape]
    torch.set_num_threads(threads)
    rate = matmul_rate(2048, text["hidden_size"], text["intermediate_size"])
    if torch.cuda.is_available():
        rate = gpu_rate()
    floor = starts["vlrl"]["flops"] / rate
    return {
        "speedup": rows["median_s"] / vlrl["median_s"],
        "cpu_speedup": rows["median_cpu_s"] / vlrl["median_cpu_s"],
        "memory_ratio": vlrl["peak_bytes"] / rows["peak_bytes"],
        **result,
        "floor_s": floor,
        "fraction_of_floor": floor / vlrl["median_s"],
        "matmul_gflop_per_s": rate / 1e9,
        "step_gflop": starts["vlrl"]["flops"] / 1e9,
        "tokens_per_s": vlrl["num_tokens"] / vlrl["median_s"],
        "loss_difference": losses[0] - losses[1],
        "load": os.getloadavg()[0],
        "threads": threads,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
    }


def gpu_rate(size: int = 8192, repeats: int = 20) -> float:
    """Operations per second of a large bfloat16 matmul; the floor's fraction is the MFU against it."""
    left, right = (torch.randn(size, size, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    torch.matmul(left, right)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()  # type: ignore[no-untyped-call]
    for _ in range(repeats):
        torch.matmul(left, right)
    end.record()  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    milliseconds = begin.elapsed_time(end)  # type: ignore[no-untyped-call]
    return 2 * size**3 * repeats / (milliseconds / 1e3)


def main() -> int:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--case", choices=sorted(CASES), required=True)
    parser.add_argument("--shape", choices=sorted(TEXT), help="another model; d takes 3b (default) and 7b")
    parser.add_argument("--groups", type=int, help="prompts of a step")
    parser.add_argument("--steps", type=int, default=5, help="of each side, after one that is not counted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one JSON object as the last line")
    args = parser.parse_args()
    given = {"shape": args.shape, "groups": args.groups}
    case = replace(CASES[args.case], **{k: v for k, v in given.items() if v is not None})
    if args.case == "d" and not torch.cuda.is_available():
        print(
            "case d needs an NVIDIA GPU with room for a 3B model in training; there is none", file=sys.stderr
        )
        return 2
    result = {"case": args.case, **measure(case, args.steps, args.threads)}
    vlrl, rows = result["vlrl"], result["rows"]
    print(
        f"case {args.case} on {result['device']}, load {result['load']:.1f}: vlrl {vlrl['median_s']:.3f} s, "
        f"rows {rows['median_s']:.3f} s, {result['speedup']:.2f} times; peak memory "
        f"{vlrl['peak_bytes'] / 1e9:.2f} and {rows['peak_bytes'] / 1e9:.2f} GB; the floor is "
        f"{result['floor_s']:.3f} s, {result['fraction_of_floor']:.0%} of vlrl's time"
    )
    if args.json:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
