"""When nothing fits, `vlrl plan` has tried what a person would: LoRA, no reference, smaller engine, GPUs."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_config

from vlrl.config import Config, parse_config
from vlrl.plan.changes import fitting_changes
from vlrl.plan.predict import GIB, PlannedMachine, predict
from vlrl.plan.workload import Prompts

PROMPTS = Prompts(text_tokens=64, num_images=1, image_pixels=500_000, completion_tokens=256)
GPU = PlannedMachine("cuda", 79 * GIB, 400e12)


def config_of(model: str = "Qwen/Qwen2.5-VL-3B-Instruct", **sections: Any) -> Config:
    defaults: dict[str, Any] = {
        "rollout": {"max_tokens": 256},
        "generator": {"max_model_len": 2048},
        "trainer": {"gradient_checkpointing": True},
    }
    config = make_config(model, **{**defaults, **sections})
    config.model.dtype = "bfloat16"
    return config


def keys_of(config: Config, machine: PlannedMachine) -> list[str]:
    return [keys for keys, _ in fitting_changes(config, PROMPTS, machine).fitting]


def test_one_gpu_is_offered_offloading_first_then_lora_then_more_gpus() -> None:
    found = keys_of(config_of(), GPU)
    assert found[0] == "trainer.offload_optimizer=true"
    assert "lora.rank=32" in found
    assert [key for key in found if "num_ranks" in key] == ["trainer.num_ranks=4"]  # the smallest that fits


def test_what_only_costs_time_is_put_together_before_less_is_trained() -> None:
    """24 GiB: no single change is enough, and two that train the same parameters are."""
    tight = PlannedMachine("cuda", 44 * GIB, 100e12)
    first, *others = keys_of(config_of(), tight)
    assert "trainer.offload_optimizer=true" in first
    assert "generator.gpu_memory_utilization=" in first
    assert "lora" not in first
    assert any("lora.rank=32" in keys for keys in others)


def test_every_suggestion_is_an_override_that_fits() -> None:
    config = config_of(algorithm={"kl_coef": 0.04})
    for machine in (GPU, PlannedMachine("cuda", 40 * GIB, 100e12), PlannedMachine("cuda", 24 * GIB, 100e12)):
        found = keys_of(config, machine)
        assert found
        for keys in found:
            changed = parse_config(config.model_dump(mode="json"), overrides=keys.split())
            assert predict(changed, PROMPTS, machine).fits(machine), keys


def test_the_reference_is_tried_without() -> None:
    config = config_of(algorithm={"kl_coef": 0.04}, lora=None)
    assert "algorithm.kl_coef=0" in fitting_changes(config, PROMPTS, GPU).tried


def test_an_engine_that_cannot_hold_its_model_is_split_or_enlarged() -> None:
    """The rank has room, the engine's share of 45 % of 79 GiB has not: 139 GiB of weights."""
    large = config_of(
        "Qwen/Qwen2.5-VL-72B-Instruct", trainer={"num_ranks": 64, "gradient_checkpointing": True}
    )
    plan = predict(large, PROMPTS, GPU)
    assert not plan.engine_fits
    assert not plan.fits(GPU)
    (first, *_) = keys_of(large, GPU)
    assert "generator.tensor_parallel_size=" in first
    small = config_of(generator={"max_model_len": 2048, "gpu_memory_utilization": 0.1}, lora={"rank": 8})
    assert not predict(small, PROMPTS, GPU).engine_fits
    assert keys_of(small, GPU)[0].startswith("generator.gpu_memory_utilization=0.1")


def test_what_does_not_fit_at_all_says_what_was_tried() -> None:
    changes = fitting_changes(
        config_of("Qwen/Qwen2.5-VL-72B-Instruct"), PROMPTS, PlannedMachine("cuda", 4 * GIB, 1e13)
    )
    assert changes.fitting == []
    tried = " ".join(changes.tried)
    for word in (
        "lora.rank=",
        "offload_optimizer=true",
        "offload_parameters=true",
        "num_ranks=64",
        "state=8bit",
    ):
        assert word in tried
    assert changes.best is not None
    assert changes.best[1].needed_bytes > 4 * GIB


def test_needless_changes_are_left_out() -> None:
    """Nothing about micro-batches is suggested where memory goes to the optimizer."""
    tight = PlannedMachine("cuda", 44 * GIB, 100e12)
    first = keys_of(config_of(), tight)[0]
    assert "sequence_parallel" not in first
    assert "offload_parameters" not in first


@pytest.mark.parametrize(("every", "keep", "factor"), [(0, 2, 1), (50, 2, 3), (100, 2, 1), (10, 4, 5)])
def test_disk_is_checkpoints_kept_one_being_written_and_the_model(every: int, keep: int, factor: int) -> None:
    """100 steps. A checkpoint: weights in bfloat16, and 12 bytes of optimizer states a parameter."""
    plan = predict(config_of(checkpoint={"every": every, "keep": keep}), PROMPTS, GPU)
    params = plan.shape.num_params
    assert plan.checkpoint_bytes == params * (2 + 12)
    assert plan.disk_bytes == factor * plan.checkpoint_bytes + 2 * params


def test_a_checkpoint_of_adapters_is_the_model_and_little_else() -> None:
    plan = predict(config_of(lora={"rank": 16}), PROMPTS, GPU)
    assert plan.checkpoint_bytes < 1.1 * 2 * plan.shape.num_params


def test_an_engine_apart_needs_a_gpu_of_its_own() -> None:
    together, apart = (
        predict(config_of(generator={"max_model_len": 2048, "gpus": g}), PROMPTS, GPU) for g in (0.4, 1)
    )
    assert (together.num_gpus, apart.num_gpus) == (1, 2)
    assert apart.needed_bytes == max(apart.memory.peak, apart.engine_bytes)
    assert together.needed_bytes == together.memory.peak + together.engine_bytes


def test_supervised_training_has_no_engine() -> None:
    plan = predict(config_of(), PROMPTS, GPU, engine=False)
    assert plan.engine_bytes == plan.engine_floor_bytes == 0
    assert plan.needed_bytes == plan.memory.peak
