"""The scaling model: each part of a step grows with what it is made of, and the longest is named."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from builders import make_config
from planned_models import SEVEN

from vlrl.config import Config
from vlrl.plan import rates
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.phases import GIB
from vlrl.plan.predict import predict
from vlrl.plan.rates import all_rates
from vlrl.plan.step_time import PARTS, StepTime
from vlrl.plan.workload import Prompts

MODEL = replace(SEVEN, num_tensors=700, language=replace(SEVEN.language, num_heads=28, num_key_heads=4))
EIGHT = PlannedMachine("cuda", 139 * GIB, 7e14, gpus_per_node=8)
SCREENS = Prompts(text_tokens=128, num_images=1, image_pixels=1_003_520, completion_tokens=150, num_turns=10)
ASYNC = {"asynchronous": {"mode": "async"}, "episodes": {"lockstep": False, "max_episodes": 10**6}}


def config_of(num_prompts: int = 8, **sections: Any) -> Config:
    config = make_config(
        **{
            "rollout": {"prompts_per_step": num_prompts, "group_size": 8, "max_tokens": 256},
            "generator": {"max_model_len": 16384, "max_num_batched_tokens": 16384},
            "trainer": {"gradient_checkpointing": True, "max_tokens_per_micro_batch": 16384},
            "episodes": {"max_episodes": 10**6},
            **sections,
        }
    )
    config.model.dtype = "bfloat16"
    return config


def step_of(config: Config, machine: PlannedMachine = EIGHT, prompts: Prompts = SCREENS) -> StepTime:
    step = predict(config, prompts, machine, MODEL).step
    assert step is not None
    return step


def test_what_passes_through_one_process_grows_with_the_gpus() -> None:
    """GPUs, workers and images take as long with as many episodes each; driver and packing in proportion."""
    steps = [step_of(config_of(8 * n), replace(EIGHT, num_nodes=n)) for n in (1, 8, 64)]
    for before, after in pairwise(steps):
        assert after.generation == pytest.approx(before.generation, rel=0.01)
        assert after.training == pytest.approx(before.training, rel=0.05)
        assert after.workers == pytest.approx(before.workers)
        assert after.driver == pytest.approx(8 * before.driver)
        assert after.packing == pytest.approx(8 * before.packing)
        assert after.total > before.total
    sent = 640 * 5120 * 14 * 14 * 3 / rates.OBJECT_PUSH.value  # by each node to the others, none by one alone
    assert steps[1].media == pytest.approx(steps[0].media + sent * 7 / 8)
    assert steps[2].media == pytest.approx(steps[0].media + sent * 63 / 64)
    assert steps[-1].packing + steps[-1].driver < steps[-1].generation
    assert steps[0].num_tokens == 64 * 10 * 150


def test_workers_share_turns_and_images() -> None:
    """64 episodes of 10 turns; every screenshot once, the first of a group shared."""
    step = step_of(config_of())
    num_images = 8 * (8 * 9 + 8)  # sharing the first is worth less than a tenth, so each ledger has its own
    megapixels = num_images * 5120 * 14 * 14 / 1e6
    expected = 640 * rates.WORKER_TURN.value + megapixels * rates.WORKER_IMAGE.value
    assert step.workers == pytest.approx(expected / 4)  # one for two GPUs
    assert step.driver == pytest.approx(640 * rates.DRIVER_TURN.value)
    alone = step_of(
        config_of(rollout={"prompts_per_step": 8, "group_size": 8, "max_tokens": 256, "num_workers": 0})
    )
    assert (alone.workers, alone.driver) == (pytest.approx(expected), 0.0)


def test_a_greedy_baseline_is_played_and_not_trained() -> None:
    """Nine episodes for eight: an eighth more turns for the driver, as many for packing and trainer."""
    plain, beside = step_of(config_of()), step_of(config_of(algorithm={"credit": "remax"}))
    assert beside.driver == pytest.approx(plain.driver * 9 / 8)
    assert beside.workers > plain.workers and beside.generation > plain.generation
    assert (beside.packing, beside.training) == (plain.packing, plain.training)


def test_media_are_made_ready_on_both_sides_and_sent_as_bytes() -> None:
    """Engines and ranks share the images; each node sends its own to the ranks on the others."""
    megapixels = 640 * 5120 * 14 * 14 / 1e6
    one_node, two_nodes = step_of(config_of()), step_of(config_of(), replace(EIGHT, num_nodes=2))
    prepared = megapixels * (rates.ENGINE_IMAGE.value + rates.RANK_IMAGE.value)
    stored = megapixels * 3e6 / rates.OBJECT_STORE.value
    assert one_node.media == pytest.approx(prepared / 8 + stored)
    pushed = megapixels * 3e6 / 2 / rates.OBJECT_PUSH.value
    assert two_nodes.media == pytest.approx(prepared / 16 + (stored + pushed) / 2)  # each node half of them
    rollout = {"prompts_per_step": 8, "group_size": 8, "max_tokens": 256, "num_workers": 0}
    by_driver = step_of(config_of(rollout=rollout), replace(EIGHT, num_nodes=2))
    assert by_driver.media == pytest.approx(prepared / 16 + stored + pushed)


def test_decoding_reads_the_weights_for_every_token() -> None:
    """One completion, published times of vLLM: 6.5 ms a token of an 8B model on an H200 (docs/scaling.md)."""
    question = Prompts(text_tokens=32, num_images=0, image_pixels=784, completion_tokens=128)
    config = config_of(1, rollout={"prompts_per_step": 1, "group_size": 8, "max_tokens": 128})
    step = step_of(config, replace(EIGHT, gpus_per_node=1), question)
    language = sum(n for part, n in MODEL.params.items() if part not in ("vision_tower", "projector"))
    least = language * 2 / rates.MEMORY_READ.value + 28 * rates.LAYER.value
    assert 128 * least < step.generation < 128 * (least + 1e-3)
    eager = config.model_copy(
        update={"generator": config.generator.model_copy(update={"enforce_eager": True})}
    )
    assert step_of(eager, replace(EIGHT, gpus_per_node=1), question).generation > 2 * step.generation


def test_the_longest_completion_is_waited_for_only_in_synchronous_runs() -> None:
    question = Prompts(text_tokens=32, num_images=0, image_pixels=784, completion_tokens=100)
    tail = replace(question, longest_tokens=2000)
    assert (
        step_of(config_of(), prompts=tail).generation > 5 * step_of(config_of(), prompts=question).generation
    )
    apart = config_of(**ASYNC)
    assert step_of(apart, prompts=tail).generation == step_of(apart, prompts=question).generation


def test_episodes_that_must_wait_for_others_take_longer() -> None:
    """64 episodes, at most 8 at once on 8 engines, are played in 8 rounds."""
    free = step_of(config_of())
    bound = step_of(config_of(episodes={"max_episodes": 8}))
    assert 4 * free.generation < bound.generation < 9 * free.generation
    question = replace(SCREENS, num_turns=1)
    assert step_of(config_of(), prompts=question) == step_of(
        config_of(episodes={"max_episodes": 8}), prompts=question
    )


def test_asynchronous_generation_goes_on_beside_training() -> None:
    step = step_of(config_of(**ASYNC))
    assert step.overlaps
    assert step.total == pytest.approx(
        max(step.generation, step.workers, step.driver, step.packing + step.media + step.training) + step.sync
    )
    together = step_of(config_of())
    assert together.total == pytest.approx(sum(getattr(together, part) for part in PARTS))


def test_a_slow_network_is_felt_by_ranks_on_several_nodes_only() -> None:
    slow = replace(EIGHT, network_bytes_per_s=1e9 / 8)
    assert step_of(config_of(), slow) == step_of(config_of(), EIGHT)
    two = replace(EIGHT, num_nodes=2)
    near = step_of(config_of(16), two)
    far = step_of(config_of(16), replace(two, network_bytes_per_s=1e9 / 8))
    assert far.training > 100 * near.training
    assert far.sync > 20 * near.sync
    assert far.bottleneck == "training"


def test_an_update_costs_by_its_transport_and_by_turns() -> None:
    """Weights of 16.6 GB: shared memory against disk; adapters alone; GPUs that change hands."""
    sync = {
        name: step_of(config_of(**ASYNC, **sections)).sync
        for name, sections in {
            "shared_memory": {},
            "disk": {"weights": {"transport": "disk"}},
            "broadcast": {"weights": {"transport": "broadcast"}},
        }.items()
    }
    assert sync["broadcast"] < sync["shared_memory"] < sync["disk"]
    assert step_of(config_of()).sync > rates.ENGINE_WAKE.value + 2 * 14 * 8.29e9 / 8 / rates.PINNED_COPY.value


def test_an_optimizer_in_host_memory_takes_its_time() -> None:
    config = config_of(trainer={"offload_optimizer": True, "max_tokens_per_micro_batch": 16384})
    plain = config_of(trainer={"max_tokens_per_micro_batch": 16384})
    extra = step_of(config).training - step_of(plain).training
    assert extra == pytest.approx(28 * MODEL.num_trained / 8 / rates.HOST_UPDATE.value)


def test_a_supervised_step_is_training_alone() -> None:
    step = predict(config_of(), SCREENS, EIGHT, MODEL, engine=False).step
    assert step is not None
    assert step.generation == step.driver == step.sync == 0.0
    assert step.bottleneck == "training"
    assert predict(config_of(), SCREENS, PlannedMachine("cpu", 0, 1e11), MODEL).step is None


def test_every_rate_says_where_it_is_from() -> None:
    """Estimates are marked; what was measured names the program that prints it, or follows from the code."""
    found = all_rates()
    assert len(found) > 20
    for name, rate in found.items():
        assert rate.value > 0, name
        assert rate.unit, name
        assert ("estimate" in rate.source) != rate.measured, name
