"""When nothing fits, `vlrl plan` has tried what a person would: offloading, LoRA, no reference, more GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_config

from vlrl.config import Config, parse_config
from vlrl.plan.changes import fitting_changes
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.predict import GIB, Plan, predict
from vlrl.plan.workload import Prompts

PROMPTS = Prompts(text_tokens=64, num_images=1, image_pixels=500_000, completion_tokens=256)
GPU = PlannedMachine("cuda", 79 * GIB, 400e12, gpus_per_node=1)
SMALL = replace(GPU, memory_bytes=39 * GIB)
EIGHT = replace(GPU, gpus_per_node=8)
pytestmark = pytest.mark.usefixtures("count_shapes_once")


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


def with_words(config: Config, machine: PlannedMachine, words: str) -> Plan:
    """The plan after a suggestion, typed on the command line of `vlrl plan`."""
    options = {
        name: int(value) for name, _, value in (w.partition("=") for w in words.split() if w[:2] == "--")
    }
    machine = replace(
        machine,
        num_nodes=options.get("--nodes", machine.num_nodes),
        gpus_per_node=options.get("--gpus-per-node", machine.gpus_per_node),
    )
    overrides = [word for word in words.split() if word[:2] != "--"]
    changed = parse_config(config.model_dump(mode="json"), overrides=overrides)
    return predict(changed, PROMPTS, machine)


def test_one_gpu_is_offered_offloading_first_then_lora_then_more_gpus() -> None:
    found = keys_of(config_of(), SMALL)
    assert found[0] == "trainer.offload_optimizer=true"
    assert "lora.rank=32" in found
    assert [key for key in found if "--gpus-per-node" in key] == [
        "--gpus-per-node=4"
    ]  # the smallest that fits


def test_a_config_that_takes_too_few_of_the_gpus_is_told_to_take_all() -> None:
    """Two ranks on a machine of eight GPUs; all eight are an override, and no machine has to be bought."""
    config = config_of(trainer={"num_ranks": 2, "gradient_checkpointing": True})
    found = fitting_changes(config, PROMPTS, replace(EIGHT, memory_bytes=39 * GIB)).fitting
    plans = dict(found)
    assert plans["trainer.num_ranks=null"].num_gpus == 8
    assert not any("--" in words for words in plans)


def test_a_described_number_of_ranks_is_doubled_where_no_machine_is_described() -> None:
    config = config_of(trainer={"num_ranks": 1, "gradient_checkpointing": True})
    found = keys_of(config, replace(SMALL, gpus_per_node=None))
    assert [key for key in found if "num_ranks" in key] == ["trainer.num_ranks=4"]


def test_what_only_costs_time_is_put_together_before_less_is_trained() -> None:
    """7B in 22 GiB: no single change is enough, and two that train the same parameters are."""
    tight = replace(GPU, memory_bytes=22 * GIB)
    first, *others = keys_of(config_of("Qwen/Qwen2.5-VL-7B-Instruct"), tight)
    assert set(first.split()) == {"trainer.offload_optimizer=true", "trainer.offload_parameters=true"}
    assert not {"trainer.offload_optimizer=true", "trainer.offload_parameters=true"} & {*others}


def test_every_suggestion_is_an_override_that_fits() -> None:
    config = config_of(algorithm={"kl_coef": 0.04})
    for gib in (79, 39, 23):
        machine = replace(GPU, memory_bytes=gib * GIB)
        found = keys_of(config, machine)
        assert found
        for keys in found:
            assert with_words(config, machine, keys).fits(machine), keys


def test_no_change_without_an_effect_is_tried() -> None:
    """Each one alone needs another amount of something than the config as it is."""
    for config in (config_of(), config_of(lora={"rank": 8})):
        base = predict(config, PROMPTS, SMALL)
        for words in fitting_changes(config, PROMPTS, SMALL).tried:
            plan = with_words(config, SMALL, words)
            assert (
                plan.needed_bytes,
                plan.needed_host_bytes,
                plan.engine_bytes,
                plan.engine_floor_bytes,
            ) != (
                base.needed_bytes,
                base.needed_host_bytes,
                base.engine_bytes,
                base.engine_floor_bytes,
            ), words


def test_an_engines_share_is_no_remedy_where_ranks_and_engines_take_turns() -> None:
    """Smaller or larger, the trainer has the GPU for itself."""
    config = config_of(generator={"max_model_len": 2048, "gpu_memory_utilization": 0.5})
    tried = " ".join(fitting_changes(config, PROMPTS, SMALL).tried)
    assert "gpu_memory_utilization" not in tried


def test_the_reference_is_tried_without() -> None:
    config = config_of(algorithm={"kl_coef": 0.04}, lora=None)
    assert "algorithm.kl_coef=0" in fitting_changes(config, PROMPTS, SMALL).tried


def test_an_engine_that_cannot_hold_its_model_is_split_or_enlarged() -> None:
    """The ranks have room, the engine's share of 85 % of 79 GiB has not: 137 GiB of weights."""
    nodes = replace(EIGHT, num_nodes=8)
    large = config_of("Qwen/Qwen2.5-VL-72B-Instruct")
    plan = predict(large, PROMPTS, nodes)
    assert not plan.engine_fits
    assert plan.memory.peak < nodes.memory_bytes
    assert not plan.fits(nodes)
    (first, *_) = keys_of(large, nodes)
    assert first == "generator.tensor_parallel_size=4"
    small = config_of(generator={"max_model_len": 2048, "gpu_memory_utilization": 0.1}, lora={"rank": 8})
    assert not predict(small, PROMPTS, GPU).engine_fits
    assert keys_of(small, GPU)[0] == "generator.gpu_memory_utilization=null"


def test_a_share_that_leaves_nothing_for_the_sleeping_rank_is_lowered() -> None:
    config = config_of(generator={"max_model_len": 2048, "gpu_memory_utilization": 1.0}, lora={"rank": 8})
    assert not predict(config, PROMPTS, GPU).fits(GPU)
    assert keys_of(config, GPU)[0] == "generator.gpu_memory_utilization=null"


def test_host_memory_is_a_limit_with_remedies_of_its_own() -> None:
    """The segment and the sleeping rank's copy of 7 GiB of weights are in host memory."""
    config = config_of(lora={"rank": 8})
    needed = predict(config, PROMPTS, GPU).needed_host_bytes
    machine = replace(GPU, host_memory_bytes=needed - GIB)
    assert not predict(config, PROMPTS, machine).fits(machine)
    found = fitting_changes(config, PROMPTS, machine).fitting
    assert "weights.transport=disk" in [words for words, _ in found]
    assert all(plan.needed_host_bytes <= needed - GIB for _, plan in found)


def test_what_does_not_fit_at_all_says_what_was_tried() -> None:
    changes = fitting_changes(
        config_of("Qwen/Qwen2.5-VL-72B-Instruct"), PROMPTS, replace(GPU, memory_bytes=4 * GIB)
    )
    assert changes.fitting == []
    tried = " ".join(changes.tried)
    for word in (
        "lora.rank=",
        "offload_optimizer=true",
        "offload_parameters=true",
        "--nodes=8",
        "state=8bit",
    ):
        assert word in tried
    assert changes.best is not None
    assert changes.best[1].needed_bytes > 4 * GIB


def test_needless_changes_are_left_out() -> None:
    """Nothing about micro-batches or the engine is suggested where memory goes to the optimizer."""
    first = keys_of(config_of(), SMALL)[0]
    assert first == "trainer.offload_optimizer=true"


@pytest.mark.parametrize(("every", "keep", "factor"), [(0, 2, 1), (50, 2, 3), (100, 2, 1), (10, 4, 5)])
def test_disk_is_checkpoints_kept_one_being_written_and_the_model(every: int, keep: int, factor: int) -> None:
    """100 steps. A checkpoint: weights in bfloat16, and 12 bytes of optimizer states a parameter."""
    plan = predict(config_of(checkpoint={"every": every, "keep": keep}), PROMPTS, GPU)
    params = plan.shape.num_params
    assert plan.checkpoint_bytes == params * (2 + 12)
    assert plan.disk_bytes == factor * plan.checkpoint_bytes + 2 * params + plan.rollouts_bytes


def test_rollouts_count_as_far_as_they_are_kept() -> None:
    def size(**rollouts: float) -> int:
        return predict(config_of(logging={"rollouts": rollouts}), PROMPTS, GPU).rollouts_bytes

    whole, work = size(max_gib=1e6), predict(config_of(), PROMPTS, GPU).work
    image_bytes = 1.5 * PROMPTS.num_images * PROMPTS.image_pixels * config_of().rollout.prompts_per_step
    assert whole == pytest.approx(100 * (24 * work.step_tokens + image_bytes))
    assert size(max_gib=1e6, every=50) == pytest.approx(whole / 50, rel=1e-6)
    assert size(max_gib=1e6, num_kept_steps=3) == pytest.approx(whole * 3 / 100, rel=1e-6)
    assert size(max_gib=1e6, groups=1) < whole and size(every=0) == 0
    assert size(max_gib=1e-3) == int(2**30 * 1e-3)


def test_a_checkpoint_of_adapters_is_the_model_and_little_else() -> None:
    plan = predict(config_of(lora={"rank": 16}), PROMPTS, GPU)
    assert plan.checkpoint_bytes < 1.1 * 2 * plan.shape.num_params
