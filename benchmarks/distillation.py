"""Generated tokens to a teacher's accuracy: on-policy distillation and GRPO from one warm start.

    python benchmarks/distillation.py --seeds 0 1 2

For each seed GRPO trains the quickstart's warm start by quickstart.yaml: that run's model is the teacher, and
its held-out accuracy along the way is the baseline. The student begins with the same warm start, learns from
the teacher alone (the reward has weight 0 and only measures) with the same optimizer, is evaluated as often,
and ends when it is as good as wanted. The rate of each run falls to 0 over its own number of steps. "Tokens"
are those that the policy had generated to train on when greedy held-out accuracy first reached the teacher's
less --margin. What the teacher was trained with is not counted as the student's: the question is what a token
teaches where there is a teacher. Results lie under --out; a run with a result is not repeated. Nothing is
timed: other jobs do no harm.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learning_runs import GREEDY, Evaluation, digits_config, train_evaluated, warm_start, without_extras

from vlrl.config import Config
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.sinks import METRICS_FILE, read_metrics


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--grpo-steps", type=int, default=240)
    parser.add_argument("--steps", type=int, default=120, help="of the distillation, at most")
    parser.add_argument("--warm-steps", type=int, help="of the warm start; the quickstart's if left out")
    parser.add_argument("--every", type=int, default=10, help="steps between evaluations")
    parser.add_argument("--heldout", type=int, default=256, help="rows that accuracy is measured on")
    parser.add_argument("--margin", type=float, default=0.03)
    parser.add_argument("--coef", type=float, default=1.0, help="algorithm.teacher.coef")
    parser.add_argument("--out", type=Path, default=Path("runs/distillation"))
    args = parse_with_json(parser)
    args.out = args.out.absolute()
    results = [result_of(seed, args) for seed in args.seeds]
    if args.json:
        print_json({"runs": results})
    else:
        print_table(results)


def result_of(seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """A seed's figures."""
    warm = warm_start(seed, args.out, json_mode=args.json, num_steps=args.warm_steps)
    baseline = trained(
        config_of("grpo", seed, warm, args, {"eval.every": args.every}, num_steps=args.grpo_steps)
    )
    teacher = baseline.run_dir / "model"
    summary = json.loads((baseline.run_dir / "summary.json").read_text(encoding="utf-8"))
    wanted = summary["heldout_accuracy_after"] - args.margin
    options = {"rewards.0.weight": 0, "algorithm.teacher": f"{{path: {teacher}, coef: {args.coef}}}"}
    config = config_of("distilled", seed, warm, args, options, num_steps=args.steps)
    student = distilled(config, wanted, args)
    found = read_metrics(baseline.run_dir / METRICS_FILE)
    found[-1][GREEDY] = summary["heldout_accuracy_after"]
    return {
        "seed": seed,
        "accuracy_start": summary["heldout_accuracy_before"],
        "accuracy_teacher": summary["heldout_accuracy_after"],
        "accuracy_student": student[-1][GREEDY],
        "accuracy_wanted": wanted,
        "tokens_grpo": tokens_to(wanted, found, baseline),
        "tokens_distilled": student[-1]["num_tokens"] if student[-1][GREEDY] >= wanted else None,
    }


def config_of(
    name: str,
    seed: int,
    model: Path,
    args: argparse.Namespace,
    more: Mapping[str, object],
    *,
    num_steps: int,
) -> Config:
    """The quickstart's, evaluated more often."""
    values = {
        "run.seed": seed,
        "run.dir": args.out,
        "run.name": f"{name}-{seed}",
        "model.path": model,
        "num_steps": num_steps,
        "data.eval.options.num_rows": args.heldout,
        "eval.during_samples": args.heldout,
    }
    return digits_config(without_extras({**values, **more}))


def trained(config: Config) -> Config:
    """A run that is done, now or before; its config."""
    from vlrl import grpo

    if not (config.run_dir / "summary.json").is_file():
        shutil.rmtree(config.run_dir, ignore_errors=True)  # of a run that was cut short
        with TrainConsole(config.run.name, config.num_steps, json_mode=True) as console:
            grpo.train(config, console)
    return config


def distilled(config: Config, wanted: float, args: argparse.Namespace) -> list[Evaluation]:
    """Evaluations of a distillation, which ends when greedy accuracy is as wanted, or after all steps."""
    done = config.run_dir.with_suffix(".json")
    if not done.is_file():
        found = train_evaluated(
            config, every=args.every, until=lambda e: e[GREEDY] >= wanted, json_mode=args.json
        )
        done.write_text(json.dumps(found), encoding="utf-8")
    evaluations: list[Evaluation] = json.loads(done.read_text(encoding="utf-8"))
    return evaluations


def tokens_to(accuracy: float, steps: Sequence[Mapping[str, float | None]], config: Config) -> int | None:
    """Tokens that a run had generated to train on when it first had this accuracy; None if it never had."""
    size = config.rollout.prompts_per_step * config.rollout.group_size
    tokens = 0.0
    for step in steps:
        tokens += size * float(step["completion/num_tokens_mean"] or 0.0)
        if (step.get(GREEDY) or 0.0) >= accuracy:
            return round(tokens)
    return None


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Rows under one heading."""
    names = list(rows[0])
    print("  ".join(names))
    for row in rows:
        cells = (f"{v:.3f}" if isinstance(v, float) else f"{v}" for v in row.values())
        print("  ".join(cell.rjust(len(name)) for cell, name in zip(cells, names, strict=True)))


if __name__ == "__main__":
    main()
