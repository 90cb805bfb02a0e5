"""`vlrl init` writes a config that loads, plans and passes the data check, with the reward that fits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import random_image
from PIL import Image

from vlrl.cli.starter import fitting_reward
from vlrl.config import load_config
from vlrl.errors import DataError


@pytest.mark.parametrize(
    ("answers", "reward"),
    [
        (["3", "-4.5", "1,000"], "numeric"),
        ([3, 4], "numeric"),
        (["A", "(B)", "C."], "multiple_choice"),
        (["yes", "No"], "yes_no"),
        ([[1, 2, 30, 40], [0, 0, 5, 5]], "box_iou"),
        (["\\frac{1}{2}", "3", "x=2"], "math"),
        (["a red car", "two dogs"], "answer_normalized"),
        (["The car is red and stands in front of a house, next to which a tree grows tall."], "rouge_l"),
    ],
)
def test_the_reward_fits_the_answers(answers: list[Any], reward: str) -> None:
    assert fitting_reward(answers, False, "rows")[0] == reward


def test_episodes_are_paid_by_their_environment_and_no_answer_is_an_error() -> None:
    assert fitting_reward([None], True, "rows")[0] == "episode_return"
    with pytest.raises(DataError, match="no row has an answer"):
        fitting_reward([None, None], False, "rows")


@pytest.mark.parametrize(
    ("answers", "reward"),
    [(["3", "4"], "numeric"), (["red car", "dog"], "answer_normalized")],
)
def test_what_it_writes_loads_plans_and_passes_the_data_check(
    vlrl: Any, tiny_model: Path, tmp_path: Path, answers: list[str], reward: str
) -> None:
    Image.fromarray(random_image(56, 56)).save(tmp_path / "a.png")
    rows = [{"prompt": f"{n}?", "image": "a.png", "answer": answer} for n, answer in enumerate(answers)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = vlrl("init", "rows.jsonl", tiny_model, "--json")
    assert result.code == 0, result.err
    assert result.json["reward"] == reward
    config = load_config(tmp_path / "my.yaml")
    assert [each.name for each in config.rewards] == [reward, "think_answer_format"]
    text = (tmp_path / "my.yaml").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 50
    assert result.json["why"] in text
    checked = vlrl("data", "check", "my.yaml", "--json")
    assert checked.code == 0, checked.err
    plan = ("--device", "cpu", "--memory-gib", 64, "--teraflops", 0.1)
    assert vlrl("plan", "my.yaml", *plan).code == 0
    again = vlrl("init", "rows.jsonl", tiny_model)
    assert again.code == 2
    assert "exists" in again.err


def test_a_model_that_is_too_large_to_train_whole_gets_adapters(vlrl: Any, tmp_path: Path) -> None:
    rows = [{"prompt": "1+1", "answer": "2"}, {"prompt": "1+2", "answer": "3"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = vlrl("init", "rows.jsonl", "Qwen/Qwen2.5-VL-7B-Instruct", "--out", "new/seven.yaml", "--json")
    assert result.code == 0, result.err
    config = load_config(tmp_path / "new" / "seven.yaml")
    assert config.lora is not None
    assert config.optim.lr == 1e-5
    gpu = ("--device", "cuda", "--memory-gib", 79, "--teraflops", 400)
    assert vlrl("plan", "new/seven.yaml", *gpu, "--images", 0).code == 0
