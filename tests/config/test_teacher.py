"""algorithm.teacher: what it may be, what goes with it, and what other projects call it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.config import Config, parse_config
from vlrl.errors import ConfigError
from vlrl.sft import without_other_models


def config(*overrides: str, **sections: Any) -> Config:
    tree = {
        "model": {"path": "m"},
        "data": {"train": "digit_sum"},
        "algorithm": {"teacher": {"path": "owner/name"}},
        **sections,
    }
    return parse_config(tree, overrides=overrides)


def test_a_teacher_has_its_defaults_and_is_none_by_default() -> None:
    teacher = config().algorithm.teacher
    assert teacher is not None
    assert (teacher.path, teacher.coef, teacher.offload) == ("owner/name", 1.0, False)
    assert config(algorithm={}).algorithm.teacher is None
    assert config("algorithm.teacher=null").algorithm.teacher is None
    beside = config("algorithm.teacher.path=owner/name", algorithm="gspo").algorithm
    assert (beside.preset, beside.loss.name, beside.teacher) == ("gspo", "gspo", teacher)


def test_a_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is seen from any process, as model.path is."""
    monkeypatch.chdir(tmp_path)
    teacher = config("algorithm.teacher.path=./runs/best").algorithm.teacher
    assert teacher is not None and teacher.path == f"{tmp_path}/runs/best"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["algorithm.teacher={coef: 1}"], "missing key 'algorithm.teacher.path'"),
        (["algorithm.teacher.coef=0"], "algorithm.teacher.coef: Input should be greater than 0"),
        (["algorithm.teacher.coef=.inf"], "algorithm.teacher.coef: Input should be a finite number"),
        (["algorithm.teacher.weight=1"], "unknown key 'algorithm.teacher.weight'"),
        (["teacher_model_name_or_path=x"], "did you mean 'algorithm.teacher.path'?"),
        (["distillation.teacher_model=x"], "did you mean 'algorithm.teacher'?"),
        (["batch.filters=[{name: zero_variance}]"],
         "batch.filters=zero_variance with algorithm.teacher and no reward that has a weight"),
        (["batch.filters=[{name: zero_variance}]", "rewards=[{name: answer_exact, weight: 0}]"],
         "leave it out, or give a reward a weight"),
        (["data.eval=digit_sum"], r"data.eval is measured by the first reward, .* weight: 0\}\]"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_remedy(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_rewards_beside_it_may_filter_and_measure() -> None:
    assert config("batch.filters=[{name: zero_variance}]", "rewards=answer_exact").batch.filters
    assert config("data.eval=digit_sum", "rewards=[{name: answer_exact, weight: 0}]").data.eval
    own = {"name": "digit_sum", "rewards": "answer_exact"}
    assert config(data={"train": "digit_sum", "eval": own}).data.eval


def test_supervised_training_holds_none() -> None:
    found = without_other_models(config("algorithm.kl_coef=0.1"))
    assert (found.algorithm.teacher, found.algorithm.kl_coef) == (None, 0.1)
