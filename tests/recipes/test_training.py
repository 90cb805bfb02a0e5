"""Two steps of every recipe's twin through the real engines; the cheapest one in the quick suite."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from recipe_twins import RECIPES, Recipe
from rich.console import Console

from vlrl import grpo, sft
from vlrl.config import Config, parse_config
from vlrl.data import open_dataset
from vlrl.processors.auto import open_processor
from vlrl.tracking.console import TrainConsole

NUM_WARM_STEPS = 60


def inline(part: dict[str, Any]) -> dict[str, Any]:
    """A content part whose image stands in it; a video keeps its place."""
    if part["type"] != "image":
        return part
    source = part["image"]
    data = source["bytes"] if isinstance(source, dict) else Path(source).read_bytes()
    return {"type": "image", "image": f"data:image/png;base64,{base64.b64encode(data).decode()}"}


def warm_start(recipe: Recipe, model: Path) -> Path:
    """A model that has seen the form of right answers, so that some of its completions score."""
    config = recipe.config(model)
    (source,) = config.data.train
    processor, lines = open_processor(config), []
    for row in open_dataset(source, "data.train"):
        (turn,) = row["messages"]
        messages = [{"role": "user", "content": [inline(part) for part in turn["content"]]}]
        lines.append(json.dumps({"messages": messages, "target": recipe.right(processor.sample(row))}))
    Path("sft.jsonl").write_text("\n".join(lines))
    warm = {
        **config.model_dump(mode="json"),
        "run": {"name": "warm", "dir": str(config.run.dir)},
        "data": {"train": {"name": "sft.jsonl"}},
        "rewards": [],
        "num_steps": NUM_WARM_STEPS,
        "optim": {"lr": 3e-3, "warmup_steps": 5},
        "sft": {"batch_size": 4},
    }
    supervised = parse_config(warm)
    with TrainConsole("warm start", NUM_WARM_STEPS, console=Console(file=io.StringIO())) as console:
        sft.train(supervised, console)
    return supervised.run_dir / "model"


def metrics(config: Config) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


VARIANTS = {
    "asynchronous": (
        *("asynchronous.mode=async", "asynchronous.max_staleness=1", "episodes.lockstep=false"),
        "algorithm.correction.kind=decoupled",
    ),
    "adapters": ("lora.rank=8", "lora.alpha=16", "optim.lr=1e-4"),
}
"""Overrides of docs/recipes.md that every recipe takes, at a twin's size."""


def trained(recipe: Recipe, config: Config) -> list[dict[str, Any]]:
    """The metrics of a run's two steps, which keep parity, drop no row and learn something."""
    with TrainConsole(recipe.name, config.num_steps, console=Console(file=io.StringIO())) as console:
        summary = grpo.train(config, console)
    steps = [step for step in metrics(config) if "optim/grad_norm" in step]
    assert [step["step"] for step in steps] == [0, 1]
    assert all(step["data/num_dropped_overlong"] == 0 for step in steps)
    assert all({f"reward/{reward.name}" for reward in config.rewards} <= step.keys() for step in steps)
    assert any(step["optim/grad_norm"] > 0 for step in steps), "no group's rewards differed"
    assert summary["num_heldout"] == 2
    return steps


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, indirect=True)
def test_it_trains(recipe: Recipe, recipe_model: Path, local_ray: None) -> None:
    """The run itself holds the engines to the same prompts and logprobs (laws 3 and 5)."""
    steps = trained(recipe, recipe.config(warm_start(recipe, recipe_model)))
    assert all(step["parity/max_abs_logprob_diff"] < 1e-3 for step in steps)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("recipe", ["geometry3k"], indirect=True)
def test_it_trains_asynchronously_and_by_adapters(
    recipe: Recipe, variant: str, recipe_model: Path, local_ray: None
) -> None:
    trained(recipe, recipe.config(warm_start(recipe, recipe_model), *VARIANTS[variant]))
