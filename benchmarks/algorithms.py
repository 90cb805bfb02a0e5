"""Every preset from one warm start with equally many generated tokens: accuracy, tokens to it, KL, entropy.

    python benchmarks/algorithms.py --seeds 0 1 2                        do the runs that have no result
    python benchmarks/algorithms.py --report [--image algorithms.png]    table and chart of those that have

A task is the quickstart's digits, or `three_digits`, its harder form, from a warm start of its own. All runs
of a task and seed share that warm start, the rows, the optimizer (quickstart.yaml's, the rate falls to 0 over
--steps) and the number of completions a step; they differ in `algorithm` alone, and in what SETTINGS says. A
run is evaluated on the held-out rows every --every steps, greedily and sampled, and ends after --steps. "At
equal tokens" is the last evaluation before 2 % more tokens were generated than the shortest run of the task
had in all. Every run keeps a reference, for the KL to the start: a preset without a KL term weighs it with
1e-9. Results lie in --results, a line a run, with the commit that made it; a run with one is not repeated.
Seconds are medians of a step and mean something on a quiet machine only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learning_runs import GREEDY, Evaluation, digits_config, train_evaluated, warm_start, without_extras

from vlrl.config.presets import PRESETS
from vlrl.evaluation.estimates import wilson
from vlrl.process.json_stdout import parse_with_json, print_json
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

ROOT = Path(__file__).resolve().parent.parent
TASKS = {"digits": 2, "three_digits": 3}
"""Name of a task → digits that are added."""
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "remax": {"rollout.prompts_per_step": 64, "rollout.group_size": 1},
    "gdpo": {
        "algorithm.credit.options.rewards": "{answer_exact: 1, think_answer_format: 0.1}",
        "rewards": "[{name: answer_exact}, {name: think_answer_format, weight: 0.1}]",
    },
    # Ten times the policy's, as verl has them. The default, 1e-5, is for models of billions.
    "ppo": {"algorithm.critic.lr": 2e-3},
}
"""Preset → what else it needs: ReMax its paper's groups of one, each with a greedy completion beside it."""
TARGET = 0.9
TOLERANCE = 0.02
"""Share of tokens by which "equal" may differ: answers are not of one length."""
LAST_STEPS = 20
"""Whose entropy and KL are averaged."""
AVERAGED = ("kl", "entropy", "train_s")
SAMPLED = "heldout/accuracy_sampled"

Result = dict[str, Any]
"""A run's line: task, preset, seed, commit, evaluations, and the numbers of `steps_of`."""


def main() -> None:
    """Do the runs, or report on those that are done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--presets", nargs="+", choices=PRESETS, default=list(PRESETS))
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=["digits"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--every", type=int, default=20, help="steps between evaluations")
    parser.add_argument("--heldout", type=int, default=256, help="rows that accuracy is measured on")
    parser.add_argument("--report", action="store_true", help="do no run")
    parser.add_argument("--image", type=Path, help="draw the curves there, as PNG")
    parser.add_argument("--out", type=Path, default=Path("runs/algorithms"), help="folder of the runs")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "algorithms.jsonl")
    args = parse_with_json(parser)
    args.out = args.out.absolute()
    if not args.report:
        for seed in args.seeds:
            for task in args.tasks:
                for preset in args.presets:
                    run_missing(task, preset, seed, args)
    results = [r for r in read_results(args.results) if r["task"] in args.tasks]
    rows = [row for task in args.tasks for row in table([r for r in results if r["task"] == task])]
    if args.image:
        draw(args.image, results)
    if args.json:
        print_json({"rows": rows})
    else:
        print_table(rows)


def run_missing(task: str, preset: str, seed: int, args: argparse.Namespace) -> None:
    """Do a run and add its line, unless there is one."""
    key = {"task": task, "preset": preset, "seed": seed}
    if any(key.items() <= result.items() for result in read_results(args.results)):
        return
    folder = args.out / task
    model = warm_start(seed, folder, json_mode=args.json, num_digits=TASKS[task])
    values: dict[str, object] = {
        "run.seed": seed,
        "run.dir": folder,
        "run.name": f"{preset}-{seed}",
        "model.path": model,
        "num_steps": args.steps,
        "data.train.options.num_digits": TASKS[task],
        "data.eval.options.num_digits": TASKS[task],
        "data.eval.options.num_rows": args.heldout,
        "algorithm": preset,
        "rollout.max_tokens": 12 * TASKS[task],
    }
    if "kl_coef" not in PRESETS[preset].keys:
        values["algorithm.kl_coef"] = 1e-9
    config = digits_config(without_extras(values | SETTINGS.get(preset, {})))
    evaluations = train_evaluated(config, every=args.every, until=lambda _: False, json_mode=args.json)
    result = {
        **key,
        "commit": commit(),
        "num_heldout": args.heldout,
        **steps_of(read_metrics(config.run_dir / METRICS_FILE)),
        "evaluations": evaluations,
    }
    args.results.parent.mkdir(parents=True, exist_ok=True)
    with args.results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


def steps_of(steps: Sequence[Mapping[str, float | None]]) -> dict[str, float]:
    """Means over the last steps, entropy and KL in nats a token, and the median seconds of a step."""

    def values(name: str, of: Sequence[Mapping[str, float | None]]) -> list[float]:
        return [value for step in of if (value := step.get(name)) is not None]

    explained = values("critic/explained_variance", steps[-LAST_STEPS:])
    return {
        **({"explained_variance": statistics.fmean(explained)} if explained else {}),
        "entropy": statistics.fmean(values("policy/entropy", steps[-LAST_STEPS:])),
        "kl": statistics.fmean(values("policy/kl_reference", steps[-LAST_STEPS:])),
        "step_s": statistics.median(values("time_s/step", steps)),
        "train_s": statistics.median(values("time_s/train", steps)),
    }


def commit() -> str:
    """The checkout's, with a plus if it was changed since."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "vlrl", "rewards", "configs")
    return git("rev-parse", "--short=12", "HEAD").strip() + ("+" if changed else "")


def read_results(file: Path) -> list[Result]:
    """All lines; none if there is no file."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.is_file() else []


def table(results: Sequence[Result]) -> list[dict[str, Any]]:
    """A row for each preset of a task, means over its seeds; the best at equal tokens first."""
    if not results:
        return []
    budget = (1 + TOLERANCE) * min(result["evaluations"][-1]["num_tokens"] for result in results)
    rows = []
    for preset in dict.fromkeys(result["preset"] for result in results):
        runs = sorted((r for r in results if r["preset"] == preset), key=lambda run: run["seed"])
        equal = [within(run["evaluations"], budget) for run in runs]
        greedy, sampled = ([found[name] for found in equal] for name in (GREEDY, SAMPLED))
        low, high = wilson(statistics.fmean(greedy), sum(run["num_heldout"] for run in runs))
        reached = [tokens_to(TARGET, run["evaluations"]) for run in runs]
        rows.append(
            {
                "task": runs[0]["task"],
                "preset": preset,
                "seeds": len(runs),
                "start": statistics.fmean(run["evaluations"][0][GREEDY] for run in runs),
                "greedy": statistics.fmean(greedy),
                "interval": [round(low, 3), round(high, 3)],
                "by_seed": [round(value, 3) for value in greedy],
                "sampled": statistics.fmean(sampled),
                "tokens_to_target": reached,
                **{
                    name: statistics.fmean(run[name] for run in runs) for name in ("kl", "entropy", "train_s")
                },
            }
        )
    return sorted(rows, key=lambda row: -row["greedy"])


def within(evaluations: Sequence[Evaluation], budget: float) -> Evaluation:
    """The last evaluation before more tokens than that were generated."""
    return [found for found in evaluations if found["num_tokens"] <= budget][-1]


def tokens_to(accuracy: float, evaluations: Sequence[Evaluation]) -> int | None:
    """Tokens that had been generated when greedy accuracy was first that high; None if it never was."""
    return next((round(e["num_tokens"]) for e in evaluations if e[GREEDY] >= accuracy), None)


HEADINGS = (
    "task",
    "preset",
    "seeds",
    "greedy at equal tokens (95 %)",
    "by seed",
    "sampled",
    "tokens to 0.90, thousands",
    "KL to the start",
    "entropy",
    "train, s a step",
)


def print_table(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the table as Markdown, for docs/algorithms.md."""
    print(f"| {' | '.join(HEADINGS)} |\n{'|---' * len(HEADINGS)}|")
    for row in rows:
        low, high = row["interval"]
        cells = (
            row["task"],
            f"`{row['preset']}`",
            str(row["seeds"]),
            f"{row['greedy']:.3f} ({low:.3f} to {high:.3f})",
            ", ".join(f"{value:.2f}" for value in row["by_seed"]),
            f"{row['sampled']:.3f}",
            ", ".join("never" if t is None else f"{t / 1000:.0f}" for t in row["tokens_to_target"]),
            f"{row['kl']:.3f}",
            f"{row['entropy']:.3f}",
            f"{row['train_s']:.2f}",
        )
        print(f"| {' | '.join(cells)} |")


def draw(path: Path, results: Sequence[Result]) -> None:
    """A panel for each preset: greedy accuracy against generated tokens, all other presets' in grey."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys((result["task"], result["preset"]) for result in results))
    columns = 6
    rows = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(2.3 * columns, 1.9 * rows), sharex=True, sharey=True, squeeze=False
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, (task, preset) in zip(axes.flat, panels, strict=False):
        for result in (r for r in results if r["task"] == task):
            own = result["preset"] == preset
            axis.plot(
                [found["num_tokens"] / 1000 for found in result["evaluations"]],
                [found[GREEDY] for found in result["evaluations"]],
                color="#0b63ce" if own else "#c9ced6",
                linewidth=1.4 if own else 0.6,
                zorder=2 if own else 1,
            )
        axis.axhline(TARGET, color="#7a828e", linewidth=0.6, linestyle=":")
        axis.set_title(preset if len({r["task"] for r in results}) == 1 else f"{preset}, {task}", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=7)
    figure.supxlabel("generated tokens, thousands", fontsize=9)
    figure.supylabel("held-out accuracy, greedy", fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main()
