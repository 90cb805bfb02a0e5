"""The quickstart with a model of another family: held-out accuracy before and after, seed by seed.

    python benchmarks/family_learning.py --family qwen3_5 --seeds 0 1 2

A model of random weights is trained on digits by targets for --warm-steps, and then by GRPO with the
quickstart's options for --steps; accuracy is that of greedy and sampled answers to the held-out rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from learning_runs import GREEDY, digits_config, train_evaluated, warm_start, without_extras

from vlrl.model.tiny import QwenFamily
from vlrl.process.json_stdout import parse_with_json, print_json

SAMPLED = "heldout/accuracy_sampled"


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", choices=get_args(QwenFamily), default="qwen3_5")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--warm-steps", type=int, default=200)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--out", type=Path, default=Path("runs/family_learning"), help="folder of the runs")
    args = parse_with_json(parser)
    folder, found = args.out.absolute() / args.family, {}
    for seed in args.seeds:
        model = warm_start(seed, folder, json_mode=args.json, num_steps=args.warm_steps, family=args.family)
        values: dict[str, object] = {
            "run.seed": seed,
            "run.dir": folder,
            "run.name": f"grpo-{seed}",
            "model.path": model,
            "num_steps": args.steps,
        }
        config = digits_config(without_extras(values))
        first, *_, last = train_evaluated(
            config, every=args.steps // 3, until=lambda _: False, json_mode=args.json
        )
        found[seed] = {name: [first[name], last[name]] for name in (GREEDY, SAMPLED)}
        print(f"seed {seed}: {found[seed]}", flush=True)
    if args.json:
        print_json(found)


if __name__ == "__main__":
    main()
