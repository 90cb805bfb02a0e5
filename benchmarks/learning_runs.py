"""What benchmarks of learning share: the quickstart's warm start, and GRPO that is evaluated on the way."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlrl.config import Config, load_config
from vlrl.model.tiny import QwenFamily
from vlrl.tracking.console import TrainConsole

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
GREEDY = "heldout/accuracy_greedy"

Evaluation = dict[str, float]
"""Held-out metrics, with `step` and `num_tokens`: what had been trained and generated before them."""


def quickstart_config(file: str, overrides: Mapping[str, object]) -> Config:
    """A config of the quickstart with other values, by key."""
    return load_config(CONFIGS / file, [f"{key}={value}" for key, value in overrides.items()])


def digits_config(overrides: Mapping[str, object]) -> Config:
    """The quickstart's config with other values, and one optimizer step a batch, as recorded results have."""
    return quickstart_config("quickstart.yaml", {"algorithm.num_minibatches": 1, **overrides})


def warm_start(
    seed: int,
    out: Path,
    *,
    json_mode: bool,
    num_steps: int | None = None,
    num_digits: object = 2,
    family: QwenFamily = "qwen2_5_vl",
) -> Path:
    """The model that all runs of a seed begin with, the quickstart's; made once.

    Args:
        seed: of the random weights and of the supervised run.
        out: folder that keeps it.
        json_mode: stdout stays free for JSON.
        num_steps: of the supervised run; the quickstart's if None.
        num_digits: digits that are added, see `digit_sum`.
        family: of the model.
    """
    from vlrl.registry import resolve

    values: dict[str, object] = {
        "run.seed": seed,
        "run.dir": out,
        "run.name": f"warm-{seed}",
        "model.path": f"{out}/init-{seed}",
        "data.train.options.num_digits": num_digits,
    }
    config = quickstart_config(
        "quickstart_sft.yaml", values | ({"num_steps": num_steps} if num_steps else {})
    )
    return warmed_up(config, lambda: resolve("datasets", "digit_sum")().corpus(), family, json_mode=json_mode)


def warmed_up(
    config: Config,
    corpus: Callable[[], Sequence[str]],
    family: QwenFamily = "qwen2_5_vl",
    *,
    json_mode: bool,
) -> Path:
    """The model of a supervised run from random weights, which is made if it is not there.

    Args:
        config: of the run; `model.path` is where the random model is put.
        corpus: gives the texts that its tokenizer is trained on.
        family: of the model.
        json_mode: stdout stays free for JSON.
    """
    from vlrl import sft
    from vlrl.model.tiny import build_tiny_qwen_vl

    if not (config.run_dir / "summary.json").is_file():
        shutil.rmtree(config.run_dir, ignore_errors=True)  # of a run that was cut short
        shutil.rmtree(config.model.path, ignore_errors=True)
        build_tiny_qwen_vl(family, config.model.path, corpus(), seed=config.run.seed)
        with TrainConsole(config.run.name, config.num_steps, json_mode=json_mode) as console:
            sft.train(config, console)
    return config.run_dir / "model"


def train_evaluated(
    config: Config, *, every: int, until: Callable[[Evaluation], bool], json_mode: bool
) -> list[Evaluation]:
    """`vlrl.grpo.train` without checkpoints, evaluated on all held-out rows every so many steps.

    Args:
        config: of the run, whose folder is emptied first.
        every: steps between evaluations; there is one before the first step and one after the last.
        until: whether an evaluation ends the run; else num_steps does.
        json_mode: stdout stays free for JSON.
    """
    from vlrl.evaluate import hold_out
    from vlrl.grpo import generate_groups, grpo_step
    from vlrl.run.run import Run

    shutil.rmtree(config.run_dir, ignore_errors=True)
    num_tokens, evaluations = 0.0, list[Evaluation]()
    with (
        TrainConsole(config.run.name, config.num_steps, json_mode=json_mode) as console,
        Run(config, console, train=True, generate=True) as run,
    ):
        run.collect(generate_groups)
        console.phase(config.run.name, config.num_steps)
        for step in range(config.num_steps + 1):
            if step % every == 0 or step == config.num_steps:
                found = hold_out(run, f"after {step} steps", None, num_updates=step)
                evaluations.append({"step": step, "num_tokens": round(num_tokens), **found})
                if until(evaluations[-1]):
                    break
            if step < config.num_steps:
                metrics = grpo_step(run, step)
                num_tokens += metrics["throughput/tokens_per_s"] * metrics["time_s/step"]
                run.log(step, metrics)
        run.runner.run(run.collector.close())
    return evaluations


def without_extras(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Overrides with those that every such run has: no checkpoints, no evaluations but these, no target."""
    return {
        "eval.every": 0,
        "eval.target_accuracy": "null",
        "checkpoint.every": 0,
        "logging.tensorboard": "false",
        **overrides,
    }
