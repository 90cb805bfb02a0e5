"""A teacher's memory and time in `vlrl plan`: a slice a rank, and one forward pass a step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_config
from planned_models import SEVEN, with_trainer

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.plan.changes import fitting_changes
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.predict import GIB, Plan, predict
from vlrl.plan.shapes import read_shape
from vlrl.plan.workload import Prompts

PROMPTS = Prompts(text_tokens=128, num_images=1, image_pixels=500_000, completion_tokens=256)
GPU = PlannedMachine("cuda", 80 * GIB, 400e12, gpus_per_node=8)
TAUGHT = replace(SEVEN, teacher=SEVEN)


def config_of(**teacher: object) -> Config:
    config = make_config(
        algorithm={"teacher": {"path": "teacher", **teacher}},
        rollout={"prompts_per_step": 64, "group_size": 8, "max_tokens": 256},
        generator={"max_model_len": 2048},
    )
    config.model.dtype = "bfloat16"
    return with_trainer(config, num_ranks=8, max_tokens_per_micro_batch=8192)


def planned(config: Config, taught: bool = True) -> Plan:
    return predict(config, PROMPTS, GPU, TAUGHT if taught else SEVEN)


def test_every_rank_has_a_slice_of_it() -> None:
    alone, taught = planned(config_of(), taught=False), planned(config_of())
    assert taught.memory.weights - alone.memory.weights == SEVEN.num_params * 2 // 8
    assert taught.memory.optimizer == alone.memory.optimizer
    assert taught.checkpoint_bytes == alone.checkpoint_bytes


def test_offloaded_it_lies_in_host_memory() -> None:
    on_gpu, offloaded = planned(config_of()), planned(config_of(offload=True))
    slice_bytes = SEVEN.num_params * 2 // 8
    assert on_gpu.memory.weights - offloaded.memory.weights == slice_bytes
    assert offloaded.memory.host - on_gpu.memory.host == slice_bytes
    everything = planned(with_trainer(config_of(), offload_parameters=True))
    assert (everything.memory.weights, everything.memory.host) == (0, on_gpu.memory.weights)


def test_a_step_has_one_more_forward_pass() -> None:
    """A teacher as large as the student costs what a reference does."""
    config = config_of()
    algorithm = config.algorithm.model_copy(update={"kl_coef": 0.1, "teacher": None})
    alone, taught = planned(config, taught=False), planned(config)
    reference = planned(config.model_copy(update={"algorithm": algorithm}), taught=False)
    assert taught.train_flops == reference.train_flops > alone.train_flops
    assert taught.step is not None and alone.step is not None
    assert taught.step.training > alone.step.training


def test_a_large_teachers_gathered_layers_are_counted() -> None:
    huge = replace(SEVEN, params={"language_layers": 72_000_000_000})
    small = replace(SEVEN, params={"language_layers": 500_000_000}, trained={"language_layers": 500_000_000})
    plan = predict(config_of(), PROMPTS, GPU, replace(small, teacher=huge))
    assert plan.memory.gathered == 2 * 1_000_000_000


def test_offloading_the_teacher_is_suggested() -> None:
    config = config_of()
    needed = predict(config, PROMPTS, replace(GPU, memory_bytes=0), TAUGHT).needed_bytes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vlrl.plan.changes.read_shape", lambda config: TAUGHT)
        patch.setattr("vlrl.plan.predict.read_shape", lambda config: TAUGHT)
        found = fitting_changes(config, PROMPTS, replace(GPU, memory_bytes=needed - GIB))
    assert "algorithm.teacher.offload=true" in [words for words, _ in found.fitting]


def test_its_shape_is_read_from_its_own_folder(tiny_model: Path, tmp_path: Path) -> None:
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    larger = build_tiny_qwen2_5_vl(tmp_path / "larger", DigitSum().corpus(), hidden_size=256)
    config = make_config(tiny_model, algorithm={"teacher": {"path": str(larger)}}, lora={"rank": 2})
    shape = read_shape(config)
    assert shape.teacher is not None
    assert (shape.language.hidden, shape.teacher.language.hidden) == (128, 256)
    assert shape.teacher.adapters == 0 < shape.adapters
    with pytest.raises(ConfigError, match=r"algorithm.teacher: model.path=.*no config.json"):
        read_shape(make_config(tiny_model, algorithm={"teacher": {"path": str(tmp_path)}}))
