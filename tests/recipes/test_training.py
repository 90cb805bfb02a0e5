"""Two steps of every recipe's twin through the real engines; the cheapest one in the quick suite."""

from __future__ import annotations

import base64
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recipe_data import write_pairs
from recipe_twins import RECIPES, Recipe, metrics, say_tagged, supervised, trained
from rich.console import Console

from vlrl import preferences
from vlrl.data import open_dataset
from vlrl.processors.auto import open_processor
from vlrl.tracking.console import TrainConsole


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
    return supervised(config, {"name": "sft.jsonl"})


VARIANTS = {
    "asynchronous": (
        *("asynchronous.mode=async", "asynchronous.max_staleness=1", "episodes.lockstep=false"),
        "algorithm.correction.kind=decoupled",
    ),
    "adapters": ("lora.rank=8", "lora.alpha=16", "optim.lr=1e-4"),
}
"""Overrides of docs/recipes.md that every recipe takes, at a twin's size."""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, indirect=True)
def test_it_trains(recipe: Recipe, recipe_model: Path, local_ray: None) -> None:
    """The run itself holds the engines to the same prompts and logprobs (laws 3 and 5)."""
    steps = trained(recipe, recipe.config(warm_start(recipe, recipe_model)))
    taught = [step for step in steps if step["optim/grad_norm"] > 0]  # the others had equal rewards
    assert all(step["parity/max_abs_logprob_diff"] < 1e-3 for step in taught)


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("recipe", ["geometry3k"], indirect=True)
def test_it_trains_asynchronously_and_by_adapters(
    recipe: Recipe, variant: str, recipe_model: Path, local_ray: None
) -> None:
    trained(recipe, recipe.config(warm_start(recipe, recipe_model), *VARIANTS[variant]))


@pytest.mark.slow
def test_clicks_on_generated_screens_train(
    recipe_model: Path, tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gui_grounding.yaml, whose rows are made on the spot and have the right click for a target."""
    monkeypatch.chdir(tmp_path)
    # The plain grammar: a tiny model does not learn Qwen's JSON within a test.
    sizes = [
        f"data.{part}.options.{each}" for part in ("train", "eval") for each in ("codec=plain", "num_rows=8")
    ]
    recipe = Recipe(
        "gui_grounding", lambda data: None, say_tagged, 1.0, "", 0.0, sizes=("rollout.max_tokens=32", *sizes)
    )
    config = recipe.config(recipe_model)
    (source,) = config.data.train
    model = supervised(config, source.model_dump(mode="json"), num_steps=100)
    trained(recipe, recipe.config(model))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", ["geometry3k"], indirect=True)
def test_a_teacher_teaches_without_answers(recipe: Recipe, recipe_model: Path, local_ray: None) -> None:
    """geometry3k_distill.yaml: the student begins at random, the teacher knows the form."""
    student = replace(recipe, name="geometry3k_distill")
    teacher = warm_start(recipe, recipe_model)
    steps = trained(student, student.config(recipe_model, f"algorithm.teacher.path={teacher}"))
    assert all(step["distillation/reverse_kl"] > 0 for step in steps)


@pytest.mark.slow
def test_pairs_train(
    recipe_model: Path, tmp_path: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """dpo_qwen2_5_vl_3b.yaml on pairs in the hub set's own columns: messages of parts, images beside them."""
    monkeypatch.chdir(tmp_path)
    for split, num_rows in (("train", 8), ("test", 4)):
        write_pairs(tmp_path / "data" / f"{split}-00000-of-00001.parquet", num_rows)
    sizes = (
        "lora.rank=4",
        "preferences.batch_size=4",
        "eval.during_samples=4",
        "generator.max_model_len=2048",
    )
    recipe = Recipe("dpo_qwen2_5_vl_3b", lambda data: None, say_tagged, 1.0, "", 0.0, sizes=sizes)
    names = (f"data.train.name={tmp_path}/data", f"data.eval.name={tmp_path}/data", "optim.warmup_steps=0")
    config = recipe.config(recipe_model, *names)
    with TrainConsole(recipe.name, config.num_steps, console=Console(file=io.StringIO())) as console:
        preferences.train(config, console)
    steps = [step for step in metrics(config) if "optim/grad_norm" in step]
    assert len(steps) == 2 and all(step["optim/grad_norm"] > 0 for step in steps)
    assert steps[0]["preference/loss"] == pytest.approx(math.log(2), abs=1e-3)
