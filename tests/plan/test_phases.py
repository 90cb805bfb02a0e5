"""Memory GPU by GPU and node by node: who has a GPU in which phase, and what waits in host memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import make_config

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.phases import (
    ENGINE_ASLEEP_BYTES,
    ENGINE_BUFFER_BYTES,
    GIB,
    HOST_BYTES_OF_DRIVER,
    HOST_BYTES_OF_ENGINE,
    HOST_BYTES_OF_RANK,
    HOST_BYTES_OF_WORKER,
    IMAGE_CACHE_BYTES,
    PINNED,
)
from vlrl.plan.predict import predict
from vlrl.plan.workload import Prompts

PROMPTS = Prompts(text_tokens=64, num_images=1, image_pixels=500_000, completion_tokens=256)
GPU = PlannedMachine("cuda", 79 * GIB, 400e12)
ONE = replace(GPU, gpus_per_node=1)
NODES = replace(GPU, num_nodes=2, gpus_per_node=8)
pytestmark = pytest.mark.usefixtures("count_shapes_once")
ASYNC = {"asynchronous": {"mode": "async"}, "episodes": {"lockstep": False}}
SHARE = int(0.85 * 79 * GIB)


def config_of(model: str = "Qwen/Qwen2.5-VL-3B-Instruct", **sections: Any) -> Config:
    config = make_config(
        model,
        **{
            "rollout": {"max_tokens": 256},
            "generator": {"max_model_len": 2048},
            "trainer": {"gradient_checkpointing": True},
            **sections,
        },
    )
    config.model.dtype = "bfloat16"
    return config


def test_by_turns_each_phase_has_one_awake_and_one_asleep() -> None:
    plan = predict(config_of(), PROMPTS, NODES)
    assert [(gpu.node, gpu.gpu) for gpu in plan.gpus] == [(f"node {n}", g) for n in (0, 1) for g in range(8)]
    assert [gpu.processes for gpu in plan.gpus] == [(f"rank {n}", f"engine {n}") for n in range(16)]
    for gpu in plan.gpus:
        assert gpu.training >= plan.memory.peak + ENGINE_ASLEEP_BYTES
        assert gpu.generation == SHARE + plan.memory.process
        weights = 2 * plan.shape.num_params
        assert weights < gpu.hand_over < weights + 6 * GIB
    assert plan.needed_bytes == max(gpu.peak for gpu in plan.gpus)


def test_split_no_gpu_has_both() -> None:
    plan = predict(config_of(**ASYNC), PROMPTS, NODES)
    ranks = [gpu for gpu in plan.gpus if gpu.processes[0].startswith("rank")]
    engines = [gpu for gpu in plan.gpus if gpu.processes[0].startswith("engine")]
    assert (len(ranks), len(engines)) == (8, 8)
    assert all(len(gpu.processes) == 1 for gpu in plan.gpus)
    assert {(gpu.training, gpu.generation, gpu.hand_over) for gpu in engines} == {(SHARE,) * 3}
    assert all(gpu.training == gpu.generation == gpu.hand_over >= plan.memory.peak for gpu in ranks)
    assert all(host.copies == 0 for host in plan.hosts)  # nobody sleeps


def test_a_gpu_without_an_engine_still_waits_for_the_others() -> None:
    """One replica on eight GPUs: the other ranks sleep too."""
    config = config_of(generator={"max_model_len": 2048, "num_replicas": 1})
    plan = predict(config, PROMPTS, replace(GPU, gpus_per_node=8))
    assert [gpu.processes for gpu in plan.gpus[:2]] == [("rank 0", "engine 0"), ("rank 1",)]
    assert plan.gpus[1].generation == plan.memory.process
    assert plan.gpus[1].training == plan.gpus[0].training - ENGINE_ASLEEP_BYTES


def test_a_replica_is_split_over_its_gpus() -> None:
    whole, split = (
        predict(
            config_of(generator={"max_model_len": 2048, "tensor_parallel_size": size}),
            PROMPTS,
            replace(GPU, gpus_per_node=8),
        )
        for size in (1, 4)
    )
    assert [gpu.processes[1] for gpu in split.gpus] == ["engine 0"] * 4 + ["engine 1"] * 4
    assert split.gpus[0].hand_over < whole.gpus[0].hand_over
    assert split.engine_floor_bytes < whole.engine_floor_bytes


def test_supervised_training_has_no_engine() -> None:
    plan = predict(config_of(), PROMPTS, ONE, engine=False)
    assert plan.engine_bytes == plan.engine_floor_bytes == 0
    assert plan.needed_bytes == plan.memory.peak
    assert [gpu.processes for gpu in plan.gpus] == [("rank 0",)]
    (host,) = plan.hosts
    assert (host.segments, host.copies) == (0, 0)


def test_servers_elsewhere_take_nothing_of_these_gpus() -> None:
    servers = {"servers": ["http://10.0.0.9:8001"]}
    plan = predict(config_of(generator=servers), PROMPTS, ONE)
    assert plan.engine_bytes == plan.engine_floor_bytes == 0
    assert [gpu.processes for gpu in plan.gpus] == [("rank 0",)]
    assert plan.rollouts_bytes == predict(config_of(), PROMPTS, ONE).rollouts_bytes > 0


def test_weights_gathered_for_other_nodes_are_counted_where_they_are_gathered() -> None:
    """Buckets of 40 GiB, sent and gathered, are more than a backward pass; on one node there are none."""
    here, there = (
        predict(config_of(weights={"bucket_mib": 40960}), PROMPTS, machine)
        for machine in (replace(GPU, gpus_per_node=8), NODES)
    )
    assert here.gpus[0].training == here.memory.peak + ENGINE_ASLEEP_BYTES
    assert there.gpus[0].training > 80 * GIB


def test_the_sleeping_ranks_weights_masters_and_moments_are_in_host_memory() -> None:
    """2 bytes a weight and 12 a trained one, on 8 ranks of each node, and what pinning wastes."""
    plan = predict(config_of(), PROMPTS, NODES)
    params = plan.shape.num_params
    assert len(plan.hosts) == 2
    for host in plan.hosts:
        assert host.copies == pytest.approx(PINNED * 14 * params / 2, rel=0.01)
        assert host.segments == 2 * params  # each node has a whole model for its engines
        assert host.offloaded == host.features == 0
    of_node = 8 * (HOST_BYTES_OF_RANK + HOST_BYTES_OF_ENGINE + IMAGE_CACHE_BYTES) + 4 * HOST_BYTES_OF_WORKER
    assert plan.hosts[1].processes == of_node
    assert plan.hosts[0].processes == of_node + HOST_BYTES_OF_DRIVER + int(0.5 * GIB)  # Ray's objects
    assert plan.needed_host_bytes == plan.hosts[0].total


def test_what_is_offloaded_is_not_copied_too() -> None:
    plain, optimizer, both = (
        predict(
            config_of(trainer={"gradient_checkpointing": True, **trainer}), PROMPTS, ONE
        )
        for trainer in (
            {},
            {"offload_optimizer": True},
            {"offload_optimizer": True, "offload_parameters": True},
        )
    )  # fmt: skip
    params = plain.shape.num_params
    assert plain.hosts[0].copies == pytest.approx(PINNED * 14 * params)
    assert optimizer.hosts[0].copies == pytest.approx(PINNED * 2 * params)
    # Masters and moments, and gradients summed and flat.
    assert optimizer.hosts[0].offloaded == pytest.approx((12 + 8) * params)
    assert both.hosts[0].copies == 0
    assert both.hosts[0].offloaded == pytest.approx((12 + 8 + 2) * params)
    assert both.needed_bytes <= optimizer.needed_bytes < plain.needed_bytes


def test_adapters_sent_alone_leave_the_engines_weights_in_host_memory() -> None:
    """vLLM sleeps at level 1 then: nobody would bring the weights again."""
    merged, alone = (
        predict(config_of(lora={"rank": 8, "sync": sync}), PROMPTS, ONE).hosts[0]
        for sync in ("merged", "adapter")
    )
    weights = 2 * 3_754_622_976
    assert alone.copies - merged.copies == pytest.approx(PINNED * weights)
    assert merged.segments == weights
    assert alone.segments < weights / 50


def test_features_of_a_frozen_tower_are_kept() -> None:
    config = config_of(vision_cache={"gib": 2.0})
    assert predict(config, PROMPTS, NODES).hosts[1].features == 0
    config.model.freeze = ["vision_tower", "projector"]
    assert predict(config, PROMPTS, NODES).hosts[1].features == 8 * 2 * GIB


def test_disk_and_broadcast_leave_nothing_in_shared_memory() -> None:
    for transport in ("disk", "broadcast"):
        config = config_of(**ASYNC, weights={"transport": transport})
        assert all(host.segments == 0 for host in predict(config, PROMPTS, NODES).hosts)


def test_host_memory_decides_only_where_it_is_known() -> None:
    plan = predict(config_of(), PROMPTS, NODES)
    assert plan.fits(NODES)
    assert plan.fits(replace(NODES, host_memory_bytes=plan.needed_host_bytes))
    assert not plan.fits(replace(NODES, host_memory_bytes=plan.needed_host_bytes - 1))


@pytest.mark.parametrize(("gib", "num_gpus"), [(140, 1), (59, 2), (39, 4), (25, 8), (10, 1)])
def test_without_a_number_of_gpus_the_fewest_that_are_enough_are_taken(gib: int, num_gpus: int) -> None:
    """The whole 3B model: 71 GiB on one GPU, less on each of more."""
    machine = replace(GPU, memory_bytes=gib * GIB)
    plan = predict(config_of(), PROMPTS, machine)
    assert plan.num_gpus == num_gpus
    assert plan.fits(machine) == (gib > 10)
    assert len(plan.layout.ranks) == len(plan.layout.engines) == num_gpus


def test_a_config_that_says_its_number_gets_it() -> None:
    config = config_of(trainer={"num_ranks": 24}, generator={"max_model_len": 2048, "num_replicas": 4})
    plan = predict(config, PROMPTS, GPU)
    assert (len(plan.layout.ranks), len(plan.layout.engines)) == (24, 4)
    assert {host.node for host in plan.hosts} == {"node 0", "node 1", "node 2"}  # of eight GPUs each
    apart = predict(config_of(**ASYNC, trainer={"num_ranks": 2}), PROMPTS, GPU)
    assert apart.num_gpus == 3


def test_too_few_gpus_say_so() -> None:
    with pytest.raises(ResourceError, match=r"num_ranks=9 needs as many GPUs"):
        predict(config_of(trainer={"num_ranks": 9}), PROMPTS, replace(GPU, gpus_per_node=8))
    with pytest.raises(ResourceError, match="placement=colocated"):
        predict(config_of(**ASYNC), PROMPTS, ONE)


@pytest.mark.parametrize("engine", [{}, {"enable_expert_parallel": True}])
def test_an_engine_s_gpu_has_its_share_of_a_mixture_s_experts_however_they_are_placed(
    engine: dict[str, Any],
) -> None:
    """Whole experts, or a slice of each: 128 of them on 4 GPUs are as many bytes."""
    generator = {"max_model_len": 2048, "tensor_parallel_size": 4, "engine": engine}
    config = config_of("Qwen/Qwen3-VL-30B-A3B-Instruct", generator=generator)
    plan = predict(config, PROMPTS, replace(GPU, gpus_per_node=8))
    share = plan.shape.num_params * 2 / 4
    assert share == pytest.approx(15.5e9, rel=0.01)
    assert plan.engine_floor_bytes - ENGINE_BUFFER_BYTES == pytest.approx(share, rel=0.01)
    assert plan.memory.weights == pytest.approx(plan.shape.num_params * 2 / 8, rel=0.01)
