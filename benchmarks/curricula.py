"""Generated tokens to a held-out accuracy, on digits of mixed difficulty: samplers of rows, and replay.

    python benchmarks/curricula.py --seeds 0 1 2 --cases uniform learnability replay

Three rows of four ask for one digit, which the warm start mostly reads; the fourth asks for the sum of two,
which it adds every other time. Training and held-out rows are mixed alike. All runs of a seed share a warm
start (SFT on as many rows of both kinds) and differ in one option alone: data.train.sampler, where
`learnability` pools rows by their number of digits, or batch.replay beside a uniform sampler. The 256
held-out rows are answered greedily every --every steps; `tokens_to_target` are the tokens that training had
generated when the accuracy was first at least --target, null if it never was. A run ends then, or after
--steps. Results lie under --out, a JSON file each; a run that has one is not repeated. Nothing is timed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from learning_runs import GREEDY, digits_config, train_evaluated, warm_start, without_extras

from vlrl.config import Config
from vlrl.process.json_stdout import parse_with_json, print_json

NUM_DIGITS, WARM_DIGITS = [1, 1, 1, 2], [1, 2]
POOLED = {"pool_by": "num_digits", "half_life": 0.1}
"""A pool has many observations a step: a tenth of an epoch is 51 steps."""
SAMPLER, REPLAY = "data.train.sampler", "batch.replay"
CASES: dict[str, tuple[str, Any]] = {
    "uniform": (SAMPLER, "uniform"),
    "learnability": (SAMPLER, {"name": "learnability", **POOLED}),
    "learnability_rows": (SAMPLER, {"name": "learnability"}),
    "hardness": (SAMPLER, {"name": "hardness", **POOLED}),
    "replay": (REPLAY, {"size": 64, "share": 0.5, "max_staleness": 4}),
}
"""Name of a case → the option that it sets, and to what."""


def config_of(case: str, seed: int, model: Path, args: argparse.Namespace) -> Config:
    """The quickstart's on the mixture, at a constant rate: a run may end at any step."""
    option, value = CASES[case]
    overrides = {
        "run.seed": seed,
        "run.dir": args.out,
        "run.name": f"{case}-{seed}",
        "model.path": model,
        "num_steps": args.steps,
        "data.train.options.num_digits": NUM_DIGITS,
        "data.eval.options.num_digits": NUM_DIGITS,
        option: json.dumps(value),
        "eval.group_by": "[num_digits]",
        "optim.schedule": "constant",
    }
    return digits_config(without_extras(overrides))


def result_of(case: str, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A run's result, made if there is none."""
    path = args.out / f"{case}-{seed}.json"
    if not path.is_file():
        model = warm_start(
            seed, args.out, json_mode=args.json, num_steps=args.warm_steps, num_digits=WARM_DIGITS
        )
        evaluations = train_evaluated(
            config_of(case, seed, model, args),
            every=args.every,
            until=lambda e: e[GREEDY] >= args.target,
            json_mode=args.json,
        )
        last = evaluations[-1]
        tokens = last["num_tokens"] if last[GREEDY] >= args.target else None
        result = {
            "case": case,
            "seed": seed,
            "tokens_to_target": tokens,
            "evaluations": evaluations,
        }
        path.write_text(json.dumps(result), encoding="utf-8")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Run what has no result, print a line a run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=["uniform", "learnability", "replay"])
    parser.add_argument("--steps", type=int, default=160, help="most steps of a run")
    parser.add_argument("--warm-steps", type=int, default=375, help="steps of SFT before")
    parser.add_argument("--every", type=int, default=5, help="steps between evaluations")
    parser.add_argument("--target", type=float, default=0.9, help="held-out accuracy")
    parser.add_argument("--out", type=Path, default=Path("runs/curricula"))
    args = parse_with_json(parser)
    args.out = args.out.absolute()
    results = [result_of(case, seed, args) for seed in args.seeds for case in args.cases]
    for result in results:
        first, last = result["evaluations"][0], result["evaluations"][-1]
        print(
            f"seed {result['seed']}  {result['case']:18s} {first['heldout/accuracy_greedy']:.3f} → "
            f"{last['heldout/accuracy_greedy']:.3f} in {last['step']} steps, {last['num_tokens']:,} tokens"
        )
    if args.json:
        print_json({"results": results})


if __name__ == "__main__":
    main()
