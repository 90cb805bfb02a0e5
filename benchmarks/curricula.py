"""Generated tokens that a sampler of rows needs to a held-out accuracy, on digits of mixed difficulty.

    python benchmarks/curricula.py --seeds 0 1 2 --samplers uniform learnability

Three rows of four ask for one digit, which the warm start mostly reads; the fourth asks for the sum of
two, which it adds now and then. Training and held-out rows are mixed alike. All runs of a seed share a warm
start (SFT on as many rows of both kinds) and differ in data.train.sampler alone; `learnability` pools rows
by their number of digits. The 256 held-out rows are answered greedily every --every steps; `tokens_to_target`
are the tokens that training had generated when the accuracy was first at least --target, null if it never
was. A run ends then, or after --steps. Results lie under --out, a JSON file each; a run that has one is not
repeated. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from vlrl.config import Config, load_config
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.console import TrainConsole

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
NUM_DIGITS, WARM_DIGITS = [1, 1, 1, 2], [1, 2]
POOLED = {"pool_by": "num_digits", "half_life": 0.1}
"""A pool has many observations a step: a tenth of an epoch is 51 steps."""
SAMPLERS: dict[str, Any] = {
    "uniform": "uniform",
    "learnability": {"name": "learnability", **POOLED},
    "learnability_rows": {"name": "learnability"},
    "hardness": {"name": "hardness", **POOLED},
}
"""Name of a case → data.train.sampler."""


def warm_start(seed: int, args: argparse.Namespace) -> Path:
    """The model that all runs of a seed begin with; made once."""
    from vlrl import sft
    from vlrl.model.tiny import build_tiny_qwen2_5_vl
    from vlrl.registry import resolve

    overrides = {
        "run.seed": seed,
        "run.dir": args.out,
        "run.name": f"warm-{seed}",
        "model.path": f"{args.out}/init-{seed}",
        "num_steps": args.warm_steps,
        "data.train.options.num_digits": WARM_DIGITS,
    }
    config = load_config(
        CONFIGS / "quickstart_sft.yaml", [f"{key}={value}" for key, value in overrides.items()]
    )
    if not (config.run_dir / "summary.json").is_file():
        shutil.rmtree(config.run_dir, ignore_errors=True)
        shutil.rmtree(config.model.path, ignore_errors=True)
        build_tiny_qwen2_5_vl(config.model.path, resolve("datasets", "digit_sum")().corpus(), seed=seed)
        with TrainConsole(f"warm start {seed}", config.num_steps, json_mode=args.json) as console:
            sft.train(config, console)
    return config.run_dir / "model"


def config_of(sampler: str, seed: int, model: Path, args: argparse.Namespace) -> Config:
    """The quickstart's on the mixture, at a constant rate: a run may end at any step."""
    overrides = {
        "run.seed": seed,
        "run.dir": args.out,
        "run.name": f"{sampler}-{seed}",
        "model.path": model,
        "num_steps": args.steps,
        "data.train.options.num_digits": NUM_DIGITS,
        "data.eval.options.num_digits": NUM_DIGITS,
        "data.train.sampler": json.dumps(SAMPLERS[sampler]),
        "eval.group_by": "[num_digits]",
        "eval.target_accuracy": "null",
        "eval.every": 0,
        "checkpoint.every": 0,
        "logging.tensorboard": "false",
        "optim.schedule": "constant",
    }
    return load_config(CONFIGS / "quickstart.yaml", [f"{key}={value}" for key, value in overrides.items()])


def train(config: Config, console: TrainConsole, args: argparse.Namespace) -> dict[str, Any]:
    """`vlrl.grpo.train` without checkpoints, until the target is reached; what was found on the way."""
    from vlrl.evaluate import hold_out
    from vlrl.grpo import generate_groups, grpo_step
    from vlrl.run.run import Run

    num_tokens, evaluations = 0.0, list[dict[str, float]]()
    with Run(config, console, train=True, generate=True) as run:
        run.collect(generate_groups)
        console.phase(config.run.name, config.num_steps)
        for step in range(config.num_steps + 1):
            if step % args.every == 0:
                found = hold_out(run, f"after {step} steps", None)
                evaluations.append({"step": step, "num_tokens": round(num_tokens), **found})
                if found["heldout/accuracy_greedy"] >= args.target:
                    break
            if step < config.num_steps:
                metrics = grpo_step(run, step)
                num_tokens += metrics["throughput/tokens_per_s"] * metrics["time_s/step"]
                run.log(step, metrics)
        run.runner.run(run.collector.close())
    last = evaluations[-1]
    reached = last["heldout/accuracy_greedy"] >= args.target
    return {"tokens_to_target": last["num_tokens"] if reached else None, "evaluations": evaluations}


def result_of(sampler: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A run's result, made if there is none."""
    path = args.out / f"{sampler}-{seed}.json"
    if not path.is_file():
        config = config_of(sampler, seed, warm_start(seed, args), args)
        shutil.rmtree(config.run_dir, ignore_errors=True)
        with TrainConsole(config.run.name, config.num_steps, json_mode=args.json) as console:
            result = {"sampler": sampler, "seed": seed, **train(config, console, args)}
        path.write_text(json.dumps(result), encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run what has no result, print a line a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=["uniform", "learnability"])
    parser.add_argument("--steps", type=int, default=240, help="most steps of a run")
    parser.add_argument("--warm-steps", type=int, default=300, help="steps of SFT before")
    parser.add_argument("--every", type=int, default=10, help="steps between evaluations")
    parser.add_argument("--target", type=float, default=0.9, help="held-out accuracy")
    parser.add_argument("--out", type=Path, default=Path("runs/curricula"))
    args = parse_with_json(parser)
    args.out = args.out.absolute()
    results = [result_of(sampler, seed, args) for seed in args.seeds for sampler in args.samplers]
    for result in results:
        first, last = result["evaluations"][0], result["evaluations"][-1]
        print(
            f"seed {result['seed']}  {result['sampler']:18s} {first['heldout/accuracy_greedy']:.3f} → "
            f"{last['heldout/accuracy_greedy']:.3f} in {last['step']} steps, {last['num_tokens']:,} tokens"
        )
    if args.json:
        print_json({"results": results})


if __name__ == "__main__":
    main()
