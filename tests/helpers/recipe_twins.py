"""The recipes of configs/ and their twins: small data, a tiny model, right answers, two steps of training."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe_data import (
    write_charts,
    write_clevr,
    write_documents,
    write_geometry3k,
    write_moments,
    write_ovd,
    write_rec,
    write_video_questions,
)
from rich.console import Console

from vlrl import grpo, sft
from vlrl.config import Config, load_config, parse_config
from vlrl.coordinates import Box, CoordinateFrame, convert
from vlrl.tracking.console import TrainConsole
from vlrl.types import Sample

CONFIGS = Path(__file__).parents[2] / "configs"


def as_seen(sample: Sample, box: Any, frame: CoordinateFrame) -> list[float]:
    """A box of the file's pixels in another frame."""
    moved = convert(Box(*box), "original_pixels", frame, sample.media[0])
    return [round(n, 3) for n in (moved.x0, moved.y0, moved.x1, moved.y1)]


def say_box(sample: Sample, frame: CoordinateFrame = "resized_pixels") -> str:
    answer = sample.answer if isinstance(sample.answer, list) else json.loads(sample.answer)
    said = json.dumps({"bbox_2d": as_seen(sample, answer, frame), "label": "block"})
    return f"<think>There.</think>\n<answer>```json\n{said}\n```</answer>"


def say_boxes(sample: Sample, frame: CoordinateFrame = "resized_pixels") -> str:
    if sample.answer == "None":
        return "<think>Not there.</think><answer>None</answer>"
    found = json.loads(sample.answer.strip("`").removeprefix("json"))
    said = [{"bbox_2d": as_seen(sample, each["bbox_2d"], frame), "label": each["label"]} for each in found]
    return f"<think>There.</think><answer>```json\n{json.dumps(said)}\n```</answer>"


def say_boxed(sample: Sample) -> str:
    return rf"<think>So x is {sample.answer}.</think> The answer is \boxed{{{sample.answer}}}."


def say_tagged(sample: Sample) -> str:
    return f"<think>I count.</think><answer>{sample.answer}</answer>"


def say_first(sample: Sample) -> str:
    return f"<think>I read.</think><answer>{sample.answer[0]}</answer>"


def say_span(sample: Sample) -> str:
    start, end = sample.answer
    return f"<think>I watch.</think><answer>{start:.2f} to {end:.2f}</answer>"


@dataclass(frozen=True)
class Recipe:
    """A recipe of configs/ and its twin.

    Attributes:
        name: of the file.
        write: its data, below a folder data/.
        right: sample → a completion that deserves the best reward.
        best: that reward.
        wrong: a completion of the right form with a wrong answer.
        wrong_scores: what it gets for its form.
        data: overrides that name the data; none where the config's own paths are the twin's.
        sizes: overrides of its own.
    """

    name: str
    write: Callable[[Path], None]
    right: Callable[[Sample], str]
    best: float
    wrong: str
    wrong_scores: float
    data: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()

    def config(self, model: Path, *more: str) -> Config:
        """The recipe's own file, with nothing overridden but the model, the data's names, sizes and steps."""
        common = (
            f"model.path={model}",
            "model.dtype=float32",
            "num_steps=2",
            "rollout.prompts_per_step=4",
            "trainer.num_ranks=1",
            "generator.enforce_eager=true",
            "eval.num_samples=2",
            "eval.every=0",
            "checkpoint.every=0",
            "logging.tensorboard=false",
            # Ray's workers have a working folder of their own.
            f"run.dir={Path.cwd() / 'runs'}",
            f"media.cache_dir={Path.cwd() / 'cache'}",
        )
        return load_config(CONFIGS / f"{self.name}.yaml", [*common, *self.data, *self.sizes, *more])


# Adapters of a random model do not learn the form within the few steps of the warm start.
_WHOLE = ("lora=null", "eval.keep_best=false", "eval.patience=null")
_SMALL_VIDEO = (
    "processor.video.max_pixels=12544",
    "processor.video.total_pixels=50176",
    "generator.max_model_len=2048",
    "eval.keep_best=false",
)

_ALL = (
    Recipe(
        "chart_qa",
        write_charts,
        say_tagged,
        best=1.0,
        wrong="<think>I count.</think><answer>11</answer>",
        wrong_scores=0.1,
        sizes=("rollout.max_tokens=32", *_WHOLE),
    ),
    Recipe(
        "clevr_count",
        write_clevr,
        say_tagged,
        best=2.0,
        wrong="<think>I count.</think><answer>11</answer>",
        wrong_scores=1.0,
        data=(
            "data.train.name=data/clevr",
            "data.train.options.split=train",
            "data.eval.name=data/clevr",
            "data.eval.options.split=test",
        ),
        sizes=("rollout.max_tokens=32",),
    ),
    Recipe(
        "document_qa",
        write_documents,
        say_first,
        best=1.0,
        wrong="<think>I count.</think><answer>many more</answer>",
        wrong_scores=0.1,
        sizes=("rollout.max_tokens=32", *_WHOLE),
    ),
    Recipe(
        "geometry3k",
        write_geometry3k,
        say_boxed,
        best=1.0,
        wrong=r"<think>Guess.</think>\boxed{1234}",
        wrong_scores=0.1,
        data=("data.train.name=data/geometry3k", "data.eval.name=data/geometry3k"),
        sizes=("rollout.max_tokens=64",),
    ),
    Recipe(
        "temporal_grounding",
        write_moments,
        say_span,
        best=1.0,
        wrong="<think>I watch.</think><answer>90.00 to 91.00</answer>",
        wrong_scores=0.1,
        sizes=("rollout.max_tokens=48", *_SMALL_VIDEO),
    ),
    Recipe(
        "video_qa",
        write_video_questions,
        say_tagged,
        best=1.0,
        wrong="<think>I count.</think><answer>C</answer>",
        wrong_scores=0.1,
        sizes=("rollout.max_tokens=48", *_SMALL_VIDEO),
    ),
    Recipe(
        "vlm_r1_rec",
        write_rec,
        say_box,
        best=2.0,
        wrong='<think>There.</think><answer>{"bbox_2d": [0, 0, 1, 1], "label": "block"}</answer>',
        wrong_scores=1.0,
        sizes=("rollout.max_tokens=128",),
    ),
    Recipe(
        "vlm_r1_ovd",
        write_ovd,
        say_boxes,
        best=2.0,
        wrong='<think>There.</think><answer>[{"bbox_2d": [0, 0, 1, 1], "label": "blue"}]</answer>',
        wrong_scores=1.0,
        sizes=("rollout.max_tokens=128",),
    ),
)

RECIPES = {recipe.name: recipe for recipe in _ALL}


NUM_WARM_STEPS = 60


def supervised(config: Config, train: Any, num_steps: int = NUM_WARM_STEPS, **options: Any) -> Path:
    """A tiny model that imitated the targets of these rows for some steps."""
    warm = {
        **config.model_dump(mode="json"),
        "run": {"name": "warm", "dir": str(config.run.dir)},
        "data": {"train": train},
        "rewards": [],
        "num_steps": num_steps,
        "optim": {"lr": 3e-3, "warmup_steps": 5},
        "sft": {"batch_size": 4, **options},
        "eval": {},
    }
    checked = parse_config(warm)
    with TrainConsole("warm start", num_steps, console=Console(file=io.StringIO())) as console:
        sft.train(checked, console)
    return checked.run_dir / "model"


def metrics(config: Config) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


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
