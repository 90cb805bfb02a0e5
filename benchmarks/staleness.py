"""Whether training on older tokens costs accuracy: the quickstart's task at several ages of its tokens.

    python benchmarks/staleness.py --runs 0:none 1:none 4:none 4:uncorrected --seeds 0 1 2

A run is STALENESS:CORRECTION, an algorithm.correction.kind: "none" is PPO's own, the ratio to the policy that
generated, clipped; "uncorrected" takes old tokens for new ones. All runs of a seed share a warm start
(`vlrl quickstart`'s) and train the same rows by quickstart.yaml, with a continuous engine in async mode. So
that a run is as stale as it says, on a fast machine and on a slow one, every step waits until all that may be
generated is: with pipeline_depth = STALENESS + 1 each token is then exactly STALENESS updates old, but for
the first steps. With --free nothing waits, and staleness is what the machine makes of it;
`mean_staleness` has it. A run with a result is not repeated; results lie under --out, a JSON file each.
Nothing is timed: other jobs do no harm.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning_runs import digits_config, warm_start

from vlrl.config import Config
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

LAST_STEPS = 20
"""Whose rewards are averaged."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run: how old tokens may be, what is done about it, and the seed."""

    staleness: int
    correction: str
    seed: int
    free: bool

    @property
    def name(self) -> str:
        """Name of the folder and of the result."""
        return f"{self.staleness}-{self.correction}{'-free' if self.free else ''}-seed{self.seed}"


def config_of(case: Case, model: Path, args: argparse.Namespace) -> Config:
    """The quickstart's, in async mode."""
    overrides = {
        "run.seed": case.seed,
        "run.dir": args.out,
        "run.name": case.name,
        "model.path": model,
        "num_steps": args.steps,
        "data.eval.options.num_rows": args.heldout,
        "eval.every": 0,
        "eval.target_accuracy": "null",
        "checkpoint.every": 0,
        "logging.tensorboard": "false",
        "episodes.lockstep": "false",
        "asynchronous.mode": "async",
        "asynchronous.max_staleness": case.staleness,
        "asynchronous.pipeline_depth": case.staleness + 1,
        "algorithm.correction.kind": case.correction,
        "generator.max_num_seqs": 1024,
    }
    return digits_config(overrides)


def train(config: Config, console: TrainConsole, *, free: bool) -> dict[str, float]:
    """`vlrl.grpo.train` without checkpoints; its held-out metrics."""
    from vlrl.evaluate import hold_out
    from vlrl.grpo import generate_groups, grpo_step
    from vlrl.run.parity import check_parity
    from vlrl.run.run import Run

    with Run(config, console, train=True, generate=True) as run:
        run.collect(generate_groups)
        check_parity(run)
        before = hold_out(run, "before training", None)
        console.phase(config.run.name, config.num_steps)
        for step in range(config.num_steps):
            if not free:
                run.runner.run(run.collector.fill())
            run.log(step, grpo_step(run, step))
        run.runner.run(run.collector.close())
        after = hold_out(run, "after training", None)
    kinds = ("greedy", "sampled")
    return {
        f"{kind}_{when}": found[f"heldout/accuracy_{kind}"]
        for when, found in (("before", before), ("after", after))
        for kind in kinds
    }


def result_of(case: Case, model: Path, args: argparse.Namespace) -> dict[str, Any]:
    """A run's figures, from its file if it was done before."""
    config = config_of(case, model, args)
    file = args.out / f"{case.name}.json"
    if not file.is_file():
        shutil.rmtree(config.run_dir, ignore_errors=True)  # of a run that was cut short
        with TrainConsole(case.name, config.num_steps) as console:
            accuracies = train(config, console, free=case.free)
        steps = read_metrics(config.run_dir / METRICS_FILE)
        found = accuracies | {
            "reward": mean_of("reward/mean", steps[-LAST_STEPS:]),
            "mean_staleness": mean_of("off_policy/staleness_mean", steps),
            "kl": mean_of("policy/sampler_mismatch", steps),
            "ess": mean_of("off_policy/ess", steps),
            "clipped": mean_of("policy/clip_fraction", steps),
            "limited": mean_of("off_policy/limited_fraction", steps),
        }
        part = file.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(file)
    return {"staleness": case.staleness, "correction": case.correction, "seed": case.seed} | json.loads(
        file.read_text(encoding="utf-8")
    )


def mean_of(name: str, steps: list[dict[str, float | None]]) -> float:
    """Mean of a metric over the steps that have it."""
    values = [value for step in steps if (value := step.get(name)) is not None]
    return statistics.fmean(values) if values else float("nan")


COLUMNS = (
    "greedy_before",
    "greedy_after",
    "sampled_before",
    "sampled_after",
    "reward",
    "mean_staleness",
    "kl",
    "ess",
)


def summary_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds, by run, and the held-out difference to the first run of the same seeds."""
    by_run: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for result in results:
        by_run.setdefault((result["staleness"], result["correction"]), []).append(result)
    first = {r["seed"]: r for r in next(iter(by_run.values()))}
    summary = []
    for (staleness, correction), of_run in by_run.items():
        row: dict[str, Any] = {"staleness": staleness, "correction": correction, "num_seeds": len(of_run)}
        row |= {name: statistics.fmean(r[name] for r in of_run) for name in COLUMNS}
        paired = [(r, first[r["seed"]]) for r in of_run if r["seed"] in first]
        for kind in ("greedy_after", "sampled_after"):
            row[f"{kind}_difference"] = statistics.fmean(r[kind] - f[kind] for r, f in paired)
        summary.append(row)
    return summary


def print_table(rows: list[Mapping[str, Any]]) -> None:
    """Rows under one heading."""
    names = list(rows[0])
    print("  ".join(names))
    for row in rows:
        cells = (f"{v:.3f}" if isinstance(v, float) else str(v) for v in row.values())
        print("  ".join(cell.rjust(len(name)) for cell, name in zip(cells, names, strict=True)))


def main() -> None:
    """Do the runs that have no result yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    runs = ["0:none", "1:none", "4:none", "4:uncorrected"]
    parser.add_argument("--runs", nargs="+", default=runs, metavar="STALENESS:CORRECTION")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--warm-steps", type=int, help="of the warm start; the quickstart's if left out")
    parser.add_argument("--heldout", type=int, default=1024, help="rows that accuracy is measured on")
    parser.add_argument("--free", action="store_true", help="do not wait: the machine makes the age")
    parser.add_argument("--out", type=Path, default=Path("runs/staleness"))
    args = parse_with_json(parser)
    args.out.mkdir(parents=True, exist_ok=True)
    results = []
    for seed in args.seeds:
        model = warm_start(seed, args.out, json_mode=args.json, num_steps=args.warm_steps)
        for run in args.runs:
            staleness, _, correction = run.partition(":")
            results.append(
                result_of(Case(int(staleness), correction or "none", seed, args.free), model, args)
            )
    if args.json:
        print_json({"runs": results, "summary": summary_of(results)})
        return
    print_table(results)
    print_table(summary_of(results))


if __name__ == "__main__":
    main()
