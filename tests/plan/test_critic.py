"""A critic's memory and time in `vlrl plan`: a second trained model on every rank."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_config
from planned_models import SEVEN, with_trainer

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.memory import BUCKET_PARAMS
from vlrl.plan.predict import GIB, Plan, predict
from vlrl.plan.saved.layers import FLOAT32
from vlrl.plan.shapes import read_shape, with_value_head
from vlrl.plan.workload import Prompts

PROMPTS = Prompts(text_tokens=128, num_images=1, image_pixels=500_000, completion_tokens=256)
GPU = PlannedMachine("cuda", 80 * GIB, 400e12, gpus_per_node=8)
WITH_CRITIC = replace(SEVEN, critic=with_value_head(SEVEN))


def config_of(num_updates: int = 2, **trainer: object) -> Config:
    config = make_config(
        algorithm={"preset": "ppo", "critic": {"num_updates": num_updates}},
        rollout={"prompts_per_step": 64, "group_size": 8, "max_tokens": 256},
        generator={"max_model_len": 2048},
    )
    config.model.dtype = "bfloat16"
    return with_trainer(config, num_ranks=8, max_tokens_per_micro_batch=8192, **trainer)


def planned(config: Config, critic: bool = True) -> Plan:
    return predict(config, PROMPTS, GPU, WITH_CRITIC if critic else SEVEN)


def test_every_rank_has_its_weights_gradients_and_states() -> None:
    alone, beside = planned(config_of(), critic=False), planned(config_of())
    critic = WITH_CRITIC.critic
    assert critic is not None
    assert critic.num_params == SEVEN.num_params - SEVEN.params["head"] + SEVEN.language.hidden + 1
    mine = -(-critic.num_trained // 8)
    assert beside.memory.weights - alone.memory.weights == pytest.approx(critic.num_params * 2 / 8, abs=1)
    assert beside.memory.optimizer - alone.memory.optimizer == pytest.approx(mine * 12, abs=12)
    assert beside.memory.gradients - alone.memory.gradients == (mine + BUCKET_PARAMS) * FLOAT32
    assert (beside.memory.activations, beside.memory.vision) == (
        alone.memory.activations,
        alone.memory.vision,
    )
    assert beside.checkpoint_bytes - alone.checkpoint_bytes == critic.num_trained * 12
    assert beside.memory.kept > alone.memory.kept, "an engine's turn moves it, too"


def test_offloaded_its_states_are_in_host_memory() -> None:
    offload = {"offload_optimizer": True, "offload_parameters": True}
    alone, beside = planned(config_of(**offload), critic=False), planned(config_of(**offload))
    assert (beside.memory.weights, beside.memory.optimizer) == (0, 0)
    assert beside.memory.host - alone.memory.host > 12 * SEVEN.num_trained // 8


def test_each_of_its_updates_takes_time() -> None:
    alone = planned(config_of(), critic=False)
    two, three = (planned(config_of(num_updates=count)) for count in (2, 3))
    one_update = three.train_flops - two.train_flops
    assert 0 < one_update < alone.train_flops, "as the policy's, without the head"
    assert two.train_flops - alone.train_flops == pytest.approx(2 * one_update + one_update / 4, rel=0.1)
    assert two.step is not None and alone.step is not None and three.step is not None
    assert alone.step.training < two.step.training < three.step.training


def test_its_shape_is_read_from_its_own_folder(tiny_model: Path, tmp_path: Path) -> None:
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    own = read_shape(make_config(tiny_model, algorithm="ppo"))
    assert own.critic is not None and own.critic.language == own.language
    assert own.critic.params["head"] == own.language.hidden + 1
    larger = build_tiny_qwen2_5_vl(tmp_path / "larger", DigitSum().corpus(), hidden_size=256)
    shape = read_shape(make_config(tiny_model, algorithm={"preset": "ppo", "critic": {"path": str(larger)}}))
    assert shape.critic is not None
    assert (shape.language.hidden, shape.critic.language.hidden) == (128, 256)
    with pytest.raises(ConfigError, match=r"algorithm.critic: model.path=.*no config.json"):
        read_shape(make_config(tiny_model, algorithm={"preset": "ppo", "critic": {"path": str(tmp_path)}}))
