"""A teacher that cannot read the student's tokens and pixels is refused with both keys and the remedy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.errors import ConfigError
from vlrl.model.tiny import build_tiny_qwen2_5_vl
from vlrl.processors.auto import open_processor
from vlrl.processors.teacher import require_fitting_others, vocabulary_difference


def judge(student: Path, teacher: Path | str) -> None:
    config = make_config(student, algorithm={"teacher": {"path": str(teacher)}})
    require_fitting_others(config, open_processor(config))


def edited(folder: Path, to: Path, file: str, **values: Any) -> Path:
    """A copy of a model's folder; nested keys have dots."""
    shutil.copytree(folder, to)
    tree = json.loads((to / file).read_text())
    for key, value in values.items():
        *parents, leaf = key.split("__")
        node = tree
        for parent in parents:
            node = node[parent]
        assert leaf in node
        node[leaf] = value
    (to / file).write_text(json.dumps(tree))
    return to


@pytest.fixture(scope="module")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's tokenizer and processor, other widths."""
    folder = tmp_path_factory.mktemp("teacher") / "larger"
    return build_tiny_qwen2_5_vl(folder, DigitSum().corpus(), hidden_size=256, num_layers=3, vision_depth=3)


def test_a_model_of_another_size_fits(tiny_model: Path, larger: Path) -> None:
    judge(tiny_model, larger)
    judge(larger, tiny_model)


def test_a_teacher_may_have_further_tokens_and_another_template(
    tiny_model: Path, larger: Path, tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    other = shutil.copytree(larger, tmp_path / "other")
    tokenizer = AutoTokenizer.from_pretrained(other)
    tokenizer.add_tokens(["<mine>"])
    tokenizer.chat_template = "{{ messages }}"
    tokenizer.save_pretrained(other)
    judge(tiny_model, other)


def test_another_tokenizer_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    other = build_tiny_qwen2_5_vl(tmp_path / "other", ["entirely other words are merged here"] * 9)
    with pytest.raises(ConfigError) as caught:
        judge(tiny_model, other)
    said = str(caught.value)
    assert f"algorithm.teacher.path='{other}' and model.path='{tiny_model}' have different tokenizers" in said
    assert "to the student and" in said and "give a teacher of the student's family" in said


def test_a_critic_is_held_to_the_same(tiny_model: Path, larger: Path, tmp_path: Path) -> None:
    def judge_critic(path: Path | None) -> None:
        critic = {} if path is None else {"path": str(path)}
        config = make_config(tiny_model, algorithm={"preset": "ppo", "critic": critic})
        require_fitting_others(config, open_processor(config))

    judge_critic(None)
    judge_critic(larger)
    other = build_tiny_qwen2_5_vl(tmp_path / "other", ["entirely other words are merged here"] * 9)
    with pytest.raises(ConfigError, match=r"algorithm\.critic\.path=.*to the policy and .* to the critic"):
        judge_critic(other)


def test_another_family_is_refused(tiny_model: Path, tiny_family: Callable[[str], Path]) -> None:
    with pytest.raises(ConfigError, match="different processors, InternVLProcessor and Qwen25VLProcessor"):
        judge(tiny_model, tiny_family("internvl"))


def test_other_pixels_are_refused(tiny_model: Path, larger: Path, tmp_path: Path) -> None:
    files = [
        file for file in ("preprocessor_config.json", "processor_config.json") if (larger / file).exists()
    ]
    tree = json.loads((larger / files[0]).read_text())
    key = "image_mean" if "image_mean" in tree else "image_processor__image_mean"
    other = edited(larger, tmp_path / "mean", files[0], **{key: [0.1, 0.2, 0.3]})
    with pytest.raises(ConfigError, match="differ in what they make of an image"):
        judge(tiny_model, other)


def test_other_positions_in_time_are_refused(tiny_model: Path, larger: Path, tmp_path: Path) -> None:
    other = edited(larger, tmp_path / "time", "config.json", vision_config__tokens_per_second=9)
    with pytest.raises(ConfigError, match=r"differ in vision_config\.tokens_per_second, 9 and "):
        judge(tiny_model, other)


def test_a_head_that_lacks_what_the_student_may_generate_is_refused(
    tiny_model: Path, larger: Path, tmp_path: Path
) -> None:
    size = json.loads((tiny_model / "config.json").read_text())["text_config"]["vocab_size"]
    student = edited(tiny_model, tmp_path / "padded", "config.json", text_config__vocab_size=size + 64)
    with pytest.raises(ConfigError, match=rf"the teacher's head has {size} entries, .* any of {size + 64}"):
        judge(student, larger)


def test_a_teacher_that_is_not_there_is_named_by_its_own_key(tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match=r"algorithm.teacher.path='/nowhere/at/all'.*does not exist"):
        judge(tiny_model, "/nowhere/at/all")


def test_vocabularies_by_hand() -> None:
    student = {"a": 0, "b": 1}
    assert vocabulary_difference(student, {"a": 0, "b": 1, "c": 2}) == ""
    assert vocabulary_difference(student, {"a": 1, "b": 0}) == (
        "token 'a' is number 0 to the student and number 1 to the teacher, as are 2 of 2 tokens"
    )
    assert "number 1 to the student and unknown to the teacher" in vocabulary_difference(student, {"a": 0})
