"""Arguments in place of a config file: the same tree, the same refusals, nothing heavy imported."""

from __future__ import annotations

import subprocess
import sys
import typing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import open_tiny
from PIL import Image

import vlrl
from vlrl import DPO, GRPO, SFT, episodes
from vlrl.config import Config, parse_config
from vlrl.config.data import DatasetConfig
from vlrl.config.options import RewardConfig, RolloutConfig, RunConfig
from vlrl.data import open_dataset
from vlrl.errors import ConfigError
from vlrl.library.sections import Sections
from vlrl.protocols import Observation, StepResult
from vlrl.registry import resolve
from vlrl.registry.objects import label_of

ROWS = [{"prompt": "Which color?", "image": Image.new("RGB", (60, 60), "red"), "answer": "red"}] * 2


def score(completion: str, answer: str) -> float:
    return float(completion == answer)


def test_arguments_are_the_keys_of_a_config() -> None:
    trainer = GRPO(
        "Qwen/Qwen2.5-VL-3B-Instruct",
        "rows.jsonl",
        [score, {"name": "think_answer_format", "weight": 0.1}, RewardConfig(name=score, weight=2)],
        eval_rows={"name": "held.jsonl", "columns": {"answer": "label"}},
        data={"on_broken": "drop"},
        num_steps=7,
        algorithm="gspo",
        rollout=RolloutConfig(group_size=4),
        run={"name": "a"},
    )
    tree = {
        "model": {"path": "Qwen/Qwen2.5-VL-3B-Instruct"},
        "data": {
            "train": "rows.jsonl",
            "eval": {"name": "held.jsonl", "columns": {"answer": "label"}},
            "on_broken": "drop",
        },
        "rewards": [score, {"name": "think_answer_format", "weight": 0.1}, {"name": score, "weight": 2}],
        "num_steps": 7,
        "algorithm": "gspo",
        "rollout": {"group_size": 4},
        "run": {"name": "a"},
    }
    assert trainer.config == parse_config(tree)
    assert GRPO("m", "rows.jsonl", score).config.rewards == [RewardConfig(name=score)]
    assert SFT("m", "rows.jsonl", sft={"batch_size": 2}).config.sft.batch_size == 2
    pairs = DPO({"path": "m", "dtype": "bfloat16"}, "pairs.jsonl", preferences={"loss": "ipo"})
    assert pairs.config.preferences is not None and pairs.config.model.dtype == "bfloat16"


def test_an_algorithm_of_ones_own_is_an_object() -> None:
    def best_only(trajectories: Any) -> list[float]:
        best = max(t.score.total for t in trajectories)
        return [float(t.score.total == best) for t in trajectories]

    def loss(trainer_logprobs: Any, anchor_logprobs: Any, advantages: Any) -> Any:
        return -advantages * trainer_logprobs, advantages > 1

    algorithm = GRPO("m", "a.jsonl", score, algorithm={"credit": best_only, "loss": loss}).config.algorithm
    assert resolve("advantages", algorithm.credit.name) is best_only
    assert resolve("losses", algorithm.loss.name) is loss


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"learning_rate": 1e-6}, "GRPO: unknown key 'learning_rate'; did you mean 'optim.lr'"),
        ({"rollout": {"groupsize": 4}}, "unknown key 'rollout.groupsize'; did you mean 'rollout.group_size'"),
        ({"num_steps": 0}, "num_steps: "),
        ({"data": {"train": "b.jsonl"}}, "rows and data\\['train'\\] are both given"),
        ({"on_rollouts": print, "logging": {"rollouts": {"every": 0}}}, "logging.rollouts.every=0"),
        ({"on_eval": print}, "no held-out rows"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GRPO("m", "a.jsonl", score, **sections)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (None, "no rows to train on"),
        ({"prompt": "a?", "answer": "b"}, "one mapping, with prompt, answer; give a list"),
        (iter(ROWS), "rows are a list_iterator; give a list of mappings"),
        ([], "rows are empty"),
    ],
)
def test_what_are_no_rows_is_said(rows: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GRPO("m", rows, score)


def test_every_section_is_an_argument_that_type_checkers_know() -> None:
    hints = typing.get_type_hints(Sections)
    assert hints.keys() == Config.model_fields.keys() - {"model", "rewards"}
    for name, hint in hints.items():
        own = str(Config.model_fields[name].annotation).removeprefix("<class '").removesuffix("'>")
        if name != "data":
            assert own.removesuffix(" | None").rpartition(".")[2].rstrip("]") in str(hint), name


def test_rows_are_a_list_whose_images_other_processes_see(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (60, 60, 3), np.uint8)
    rows = [
        {
            "id": "a",
            "prompt": "What?",
            "image": Image.fromarray(pixels),
            "answer": "1",
            "box": (1, 2),
            "mask": Image.new("1", (9, 9)),
        },
        {"prompt": "And?", "images": [Image.fromarray(pixels[:, :, 0]), pixels], "answer": "2"},
    ]
    (source,) = GRPO("m", rows, score).config.data.train
    monkeypatch.setattr("vlrl.registry.objects._given", {})  # as in a worker, which was not given them
    opened, processor = open_dataset(source, "data.train"), open_tiny(tiny_model)
    samples = [processor.sample(row) for row in opened]
    assert [sample.id for sample in samples] == ["a", "row 1"]
    assert [sample.answer for sample in samples] == ["1", "2"]
    assert samples[0].metadata["box"] == (1, 2)
    assert samples[0].metadata["mask"].size == (9, 9), "an image of a reward's own is still one"
    assert len(samples[1].media) == 2
    assert samples[0].media[0].sha256 == samples[1].media[1].sha256, "a PNG has the pixels of the image"


def test_a_turned_photograph_is_upright(tiny_model: Path) -> None:
    photo = Image.new("RGB", (60, 90))
    photo.getexif()[274] = 6  # orientation: it is to be turned by 90°
    (source,) = GRPO("m", [{"prompt": "?", "image": photo, "answer": ""}], score).config.data.train
    (sample,) = [open_tiny(tiny_model).sample(row) for row in open_dataset(source, "data.train")]
    assert sample.media[0].original_size == (60, 90), "height, width"


def test_a_dataset_and_a_source_of_the_config_are_rows(tmp_path: Path) -> None:
    class Numbers:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> dict[str, Any]:
            return {"question": f"{index}?", "answer": str(index)}

    given = DatasetConfig(name="unread", columns={"problem": "question"}, limit=2)
    source = {**{key: getattr(given, key) for key in ("columns", "limit")}, "name": Numbers()}
    (as_source,) = GRPO("m", source, score).config.data.train
    assert [row["answer"] for row in open_dataset(as_source, "rows")] == ["0", "1"]
    assert GRPO("m", given, score).config.data.train == [given]
    assert label_of(as_source.name) == "rows"
    (table,) = GRPO(
        "m", pd.DataFrame({"prompt": ["a?", "b?"], "answer": ["1", "2"]}), score
    ).config.data.train
    assert [row["answer"] for row in open_dataset(table, "rows")] == ["1", "2"]


class Guess:
    """An environment of a program's own."""

    def reset(self, task: Any, seed: int) -> Observation:
        return Observation("a number?")

    def step(self, action: str) -> StepResult:
        return StepResult(Observation(""), 1.0, terminated=True, truncated=False)

    def close(self) -> None:
        """There is nothing to free."""


def test_an_environment_of_ones_own_is_an_object() -> None:
    config = GRPO("m", episodes(Guess, num_rows=3), eval_rows=episodes(Guess, split="heldout")).config
    (source,) = config.data.train
    assert source.rewards == [RewardConfig(name="episode_return")]
    rows = list(open_dataset(source, "data.train"))
    assert [row["id"] for row in rows] == ["Guess/train/0", "Guess/train/1", "Guess/train/2"]
    assert len({row["env"]["seed"] for row in rows}) == 3
    assert resolve("envs", rows[0]["env"]["name"]) is Guess


def test_a_run_without_a_name_takes_a_free_one(tmp_path: Path) -> None:
    trainer = GRPO("m", "a.jsonl", score, run={"dir": str(tmp_path)})
    (tmp_path / "grpo").mkdir()
    assert trainer._named(resume=False).run_dir == tmp_path / "grpo-2"
    with pytest.raises(ConfigError, match="give run=\\{'name'"):
        trainer.train(resume=True)
    named = GRPO("m", "a.jsonl", score, run=RunConfig(dir=tmp_path, name="grpo"))
    assert named._named(resume=True).run_dir == tmp_path / "grpo"


def test_the_package_is_light_until_it_trains() -> None:
    code = (
        "import sys, vlrl\nassert 'pydantic' not in sys.modules\n"
        "vlrl.GRPO('m', [{'prompt': 'a?', 'answer': 'b'}], 'answer_exact')\n"
        "print(*sorted({'torch', 'transformers', 'ray', 'vllm', 'deepspeed', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_package_has_these_names_and_no_others() -> None:
    assert {"GRPO", "SFT", "DPO", "TrainResult", "episodes"} <= set(dir(vlrl))
    with pytest.raises(AttributeError, match="no attribute 'GRP0'"):
        getattr(vlrl, "GRP0")  # noqa: B009 - a type checker would refuse it
