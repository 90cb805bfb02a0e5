"""`vlrl plan` against the truth: a rank's peak memory and a step's time, predicted and measured.

    python benchmarks/plan_accuracy.py --json

A rank runs in a process of its own, without Ray: ZeRO-3, its weight segment, synthetic groups of the planned
size. On a CPU its peak is the process's largest resident memory, the mapped weight segment included; on a GPU
what torch has reserved, with the CUDA context left out of both sides. Settings differ by what is to be told
apart: recomputed activations, a frozen tower, adapters, a larger micro-batch.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from cases import Case
from train_groups import make_groups, random_pixels
from train_shapes import IMAGE_PAD, PATCH, build_model

from vlrl.config import Config, parse_config
from vlrl.plan.duration import matmul_rate
from vlrl.plan.predict import PlannedMachine, predict
from vlrl.plan.workload import Prompts
from vlrl.process.json_stdout import parse_with_json, print_json

GIB = 2**30
FROZEN = {"freeze": ["vision_tower", "projector"]}
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "checkpointing": {"trainer": {"gradient_checkpointing": True}},
    "frozen tower": {"model": FROZEN},
    "half the tokens": {"trainer": {"max_tokens_per_micro_batch": 1024}},
    "lora": {"lora": {"rank": 16}},
}


def config_of(folder: Path, setting: dict[str, Any], args: argparse.Namespace) -> Config:
    return parse_config(
        {
            "model": {"path": str(folder), "dtype": args.dtype, **setting.get("model", {})},
            "data": {"train": {"name": "digit_sum"}},
            "rollout": {"prompts_per_step": args.groups, "group_size": args.group_size},
            "trainer": {"max_tokens_per_micro_batch": args.max_tokens, **setting.get("trainer", {})},
            "generator": {"max_model_len": 512},
            "lora": setting.get("lora"),
        }
    )


def run_rank(config: Config, args: argparse.Namespace, results: Any) -> None:
    """One rank's (peak bytes, median seconds of a step)."""
    import torch

    from vlrl.packing.options import PackOptions
    from vlrl.packing.pack import pack
    from vlrl.process.network import rendezvous_port
    from vlrl.trainer.rank import TrainerRank
    from vlrl.weights.manifest import create_segment, plan_segment

    on_gpu = torch.cuda.is_available()
    if not on_gpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
    rank = TrainerRank(config, (IMAGE_PAD,), 0, ("127.0.0.1", rendezvous_port(None)))
    rank.start()
    segment = Path("/dev/shm") / f"vlrl-plan-{os.getpid()}"
    try:
        manifest = plan_segment(segment, rank.parameters())
        create_segment(manifest)
        rank.write_weights(manifest)
        case = Case(
            args.shape, args.groups, args.group_size, turns=1, images=1, image_tokens=args.image_tokens,
            text_tokens=args.prompt_tokens, completion_tokens=args.completion_tokens, shortest=1.0,
        )  # fmt: skip
        [batch] = pack(
            make_groups(case),
            random_pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=config.trainer.max_tokens_per_micro_batch,
                aggregation="token",
                max_completion_tokens=args.completion_tokens,
                keep_zero_advantage=True,
            ),
        )
        seconds = []
        for _ in range(args.steps + 1):
            begin = time.perf_counter()
            rank.step(batch, "grpo", 1e-6)
            rank.write_weights(manifest)
            seconds.append(time.perf_counter() - begin)
    finally:
        segment.unlink(missing_ok=True)
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    results.put((torch.cuda.max_memory_reserved() if on_gpu else resident, statistics.median(seconds[1:])))


def compare(folder: Path, name: str, args: argparse.Namespace) -> dict[str, Any]:
    """One setting: both sides and their ratio."""
    import torch

    config = config_of(folder, SETTINGS[name], args)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    prompts = Prompts(args.prompt_tokens, 1, args.image_tokens * 4 * PATCH**2, args.completion_tokens)
    plan = predict(config, prompts, PlannedMachine(device, 0, matmul_rate(device, args.dtype)))
    expected = plan.memory.peak + (plan.memory.segment if device == "cpu" else -plan.memory.process)
    context = multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    process = context.Process(target=run_rank, args=(config, args, results))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"the rank failed on {name!r}; its error is above")
    peak, seconds = results.get()
    return {
        "predicted_gib": expected / GIB,
        "measured_gib": peak / GIB,
        "memory_ratio": expected / peak,
        "predicted_s": plan.train_seconds,
        "measured_s": seconds,
        "time_ratio": plan.train_seconds / seconds,
        "parts_gib": {k: round(v / GIB, 3) for k, v in plan.as_json()["memory"].items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shape", choices=["tiny", "mid", "3b", "7b"], default="mid")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--image-tokens", type=int, default=64, help="a square number")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--completion-tokens", type=int, default=48)
    parser.add_argument("--max-tokens", type=int, default=2048, help="token slots of a micro-batch")
    parser.add_argument("--steps", type=int, default=2)
    args = parse_with_json(parser)
    import torch

    with tempfile.TemporaryDirectory() as folder:
        build_model(args.shape, Path(folder), getattr(torch, args.dtype))
        found = {}
        for name in args.settings:
            found[name] = compare(Path(folder), name, args)
            one = found[name]
            print(f"{name:>16}: {one['predicted_gib']:.2f} GiB predicted, {one['measured_gib']:.2f} measured "
                  f"({one['memory_ratio']:.2f}); {one['predicted_s']:.2f} s predicted, "
                  f"{one['measured_s']:.2f} measured ({one['time_ratio']:.2f})", flush=True)  # fmt: skip
    worst = max(abs(one["memory_ratio"] - 1) for one in found.values())
    if args.json:
        print_json({"worst_memory_error": worst, "settings": found})


if __name__ == "__main__":
    main()
