"""`vlrl plan` against the truth: a rank's peak memory and a step's time, predicted and measured.

    python benchmarks/plan_accuracy.py --json

A rank runs in a process of its own, without Ray: ZeRO-3, its weight segment, synthetic groups of the planned
size (one_rank.py). On a GPU the CUDA context is left out of both sides. Settings differ by what is to be told
apart: recomputed activations, a frozen tower, adapters, a larger micro-batch, optimizers. The last lines are
a table of all settings against the first.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from cases import TOKEN_PIXELS, Case
from one_rank import in_own_process, measure
from train_shapes import build_model

from vlrl.config import Config, parse_config
from vlrl.plan.duration import matmul_rate
from vlrl.plan.predict import Plan, PlannedMachine, predict
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
    "rslora": {"lora": {"rank": 16, "rslora": True}},
    "dora": {"lora": {"rank": 16, "dora": True}},
    "nf4": {"lora": {"rank": 16, "base": "nf4"}},
    "8bit": {"optim": {"state": "8bit"}},
    "muon": {"optim": {"name": "muon"}},
    "offloaded": {"trainer": {"offload_optimizer": True, "offload_parameters": True}},
    "bfloat16": {"model": {"dtype": "bfloat16"}},
}


def config_of(folder: Path, setting: dict[str, Any], args: argparse.Namespace) -> Config:
    return parse_config(
        {
            "model": {"path": str(folder), "dtype": args.dtype, **setting.get("model", {})},
            "optim": setting.get("optim", {}),
            "data": {"train": {"name": "digit_sum"}},
            "rollout": {"prompts_per_step": args.groups, "group_size": args.group_size},
            "trainer": {"max_tokens_per_micro_batch": args.max_tokens, **setting.get("trainer", {})},
            "generator": {"max_model_len": 512},
            "lora": setting.get("lora"),
        }
    )


def case_of(args: argparse.Namespace) -> Case:
    """One turn with one image a prompt, all completions of one length."""
    return Case(
        args.shape, args.groups, args.group_size, turns=1, images=1, image_tokens=args.image_tokens,
        text_tokens=args.prompt_tokens, completion_tokens=args.completion_tokens, shortest=1.0,
    )  # fmt: skip


def prompts_of(case: Case) -> Prompts:
    """A case as the plan sees it."""
    pixels = case.image_tokens * TOKEN_PIXELS**2 if case.images else 0
    return Prompts(case.text_tokens, case.images, pixels, case.completion_tokens)


def planned(config: Config, case: Case, device: str, rate: float) -> Plan:
    """What `vlrl plan` says of a case."""
    return predict(config, prompts_of(case), PlannedMachine(device, 0, rate, gpus_per_node=1))


def expected_bytes(plan: Plan, device: str) -> int:
    """The plan's peak, as `one_rank.measure` counts it."""
    return plan.memory.peak + (plan.memory.segment if device == "cpu" else -plan.memory.process)


def compare(config: Config, case: Case, steps: int) -> dict[str, Any]:
    """Both sides and their ratio."""
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    plan = planned(config, case, device, matmul_rate(device, config.model.dtype))
    expected = expected_bytes(plan, device)
    measured = in_own_process(measure, config, case, steps)
    return {
        "predicted_gib": expected / GIB,
        "measured_gib": measured.peak_bytes / GIB,
        "memory_ratio": expected / measured.peak_bytes,
        "predicted_s": plan.train_seconds,
        "measured_s": measured.seconds,
        "time_ratio": plan.train_seconds / measured.seconds,
        "parts_gib": {k: round(v / GIB, 3) for k, v in plan.as_json()["memory"].items()},
        "measured": asdict(measured),
    }


def median_of(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """The first round, with the medians of what was measured in all."""
    measured = {key: median(one[key] for one in rounds) for key in ("measured_gib", "measured_s")}
    found = {**rounds[0], **measured, "all_measured_s": [one["measured_s"] for one in rounds]}
    found["memory_ratio"] = found["predicted_gib"] / found["measured_gib"]
    found["time_ratio"] = found["predicted_s"] / found["measured_s"]
    return found


def table_of(found: dict[str, dict[str, Any]]) -> list[str]:
    """Lines of markdown: every setting against the first."""
    first = next(iter(found.values()))
    lines = [
        "| | memory, GiB | against the first | predicted, GiB | off by | step, s | against the first |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, one in found.items():
        lines.append(
            f"| {name} | {one['measured_gib']:.2f} | {one['measured_gib'] / first['measured_gib']:.2f} | "
            f"{one['predicted_gib']:.2f} | {100 * (one['memory_ratio'] - 1):+.0f} % | "
            f"{one['measured_s']:.2f} | {one['measured_s'] / first['measured_s']:.2f} |"
        )
    return lines


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
    parser.add_argument("--rounds", type=int, default=1, help="one setting after the other, so many times")
    args = parse_with_json(parser)
    import torch

    with tempfile.TemporaryDirectory() as folder:
        build_model(args.shape, Path(folder), getattr(torch, args.dtype))
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in args.settings}
        for _ in range(args.rounds):
            for name, before in rounds.items():
                config = config_of(Path(folder), SETTINGS[name], args)
                one = compare(config, case_of(args), args.steps)
                before.append(one)
                print(f"{name:>16}: {one['predicted_gib']:.2f} GiB predicted, {one['measured_gib']:.2f} "
                      f"measured ({one['memory_ratio']:.2f}); {one['predicted_s']:.2f} s predicted, "
                      f"{one['measured_s']:.2f} measured ({one['time_ratio']:.2f})", flush=True)  # fmt: skip
    found = {name: median_of(measured) for name, measured in rounds.items()}
    print(*table_of(found), sep="\n")
    worst = max(abs(one["memory_ratio"] - 1) for one in found.values())
    if args.json:
        print_json({"worst_memory_error": worst, "settings": found})


if __name__ == "__main__":
    main()
