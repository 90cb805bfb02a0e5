"""What reaches vLLM of the options that are about its engines."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from builders import make_config

from vlrl.config.engine import GeneratorConfig
from vlrl.engine.arguments import (
    BREAKS,
    CPU_BLOCK,
    SET_BY,
    _names_of_vllm,
    engine_arguments,
    engine_environment,
)
from vlrl.errors import ConfigError
from vlrl.process.heap import REUSED_MEMORY

OURS = {
    *(
        "mode",
        "num_replicas",
        "max_restarts",
        "max_concurrency",
        "cpu_kv_cache_gib",
        "cpus",
        "engine",
        "servers",
    ),
    "routing_replay",
}
"""Of the generator's options those that say how many engines there are, where, and when they generate, and
those that go by another name there."""

OTHER: dict[str, Any] = {
    "max_model_len": 777,
    "max_num_seqs": 33,
    "max_num_batched_tokens": 5000,
    "gpu_memory_utilization": 0.3,
    "tensor_parallel_size": 4,
    "enforce_eager": True,
}


@pytest.mark.parametrize("name", sorted(set(GeneratorConfig.model_fields) - OURS))
def test_an_option_of_the_engine_reaches_it_under_its_name(name: str) -> None:
    def handed(**generator: Any) -> dict[str, Any]:
        return engine_arguments(make_config(generator=generator), [5], {"max_pixels": 9}, on_gpu=True)

    assert handed(**{name: OTHER[name]})[name] == OTHER[name]
    assert handed()[name] != OTHER[name]


def handed_further(**engine: Any) -> dict[str, Any]:
    return engine_arguments(make_config("m", generator={"engine": engine}), [], {}, on_gpu=False)


def test_further_arguments_reach_vllm_and_slips_are_named() -> None:
    handed = handed_further(block_size=64, enable_prefix_caching=False)
    assert handed["block_size"] == 64 and handed["enable_prefix_caching"] is False
    with pytest.raises(ConfigError, match=r"generator\.engine\.blok_size: .* did you mean block_size\?"):
        handed_further(blok_size=32)
    with pytest.raises(ConfigError, match=r"EngineArgs has no such argument$"):
        handed_further(qqq=1)


def test_blocks_are_small_where_a_cpu_shares_prompts() -> None:
    """Elsewhere vLLM chooses: on a GPU, where nothing is cached, and where prompts of other rounds are."""
    handed = partial(engine_arguments, make_config("m"), [], {}, begins_empty=True)
    replayed = make_config("m", generator={"routing_replay": True})
    own = make_config("m", generator={"engine": {"block_size": 128}})
    assert handed(on_gpu=False)["block_size"] == CPU_BLOCK
    assert engine_arguments(own, [], {}, on_gpu=False, begins_empty=True)["block_size"] == 128
    for other in (
        handed(on_gpu=True),
        handed(on_gpu=False, has_state=True),
        engine_arguments(replayed, [], {}, on_gpu=False, begins_empty=True),
        engine_arguments(make_config("m"), [], {}, on_gpu=False),
    ):
        assert "block_size" not in other


def test_what_other_keys_say_or_a_law_forbids_is_refused() -> None:
    """Every argument that vlrl sets, but the one that may be taken away from it."""
    with pytest.raises(ConfigError, match=r"generator\.engine\.seed: give run\.seed instead"):
        handed_further(seed=3)
    with pytest.raises(ConfigError, match=r"generator\.engine\.quantization would break law 6: "):
        handed_further(quantization="fp8")
    assert set(handed_further()) - {"enable_prefix_caching"} <= {*SET_BY, *BREAKS}
    assert {*SET_BY, *BREAKS} <= _names_of_vllm()


def test_what_is_no_option_is_as_the_laws_want_it() -> None:
    config = make_config("owner/m", run={"seed": 7})
    handed = engine_arguments(config, [5, 6], {"max_pixels": 9}, on_gpu=False)
    assert handed["additional_config"] == {"banned_token_ids": [5, 6]}
    assert handed["mm_processor_kwargs"] == {"max_pixels": 9}
    assert (handed["seed"], handed["dtype"], handed["model"]) == (7, "float32", "owner/m")
    assert handed["enable_chunked_prefill"] is False


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "ieee"), ("bfloat16", None)])
def test_float32_is_not_rounded_to_tf32_in_triton_s_products(dtype: Any, expected: str | None) -> None:
    config = make_config("m")
    config.model.dtype = dtype
    assert engine_environment(config, on_gpu=True).get("TRITON_F32_DEFAULT") == expected


def test_an_engine_on_a_cpu_keeps_memory_in_one_heap_and_a_rank_in_several() -> None:
    on_cpu = engine_environment(make_config("m"), on_gpu=False)
    assert on_cpu.items() >= {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0"}.items()
    assert "MALLOC_ARENA_MAX" not in REUSED_MEMORY
    assert not any(name.startswith("MALLOC") for name in engine_environment(make_config("m"), on_gpu=True))


@pytest.mark.parametrize("wanted", [None, True, False])
@pytest.mark.parametrize("on_gpu", [True, False])
def test_cuda_graphs_are_the_default_on_a_gpu_alone(wanted: bool | None, on_gpu: bool) -> None:
    config = make_config("m", generator={"enforce_eager": wanted})
    eager = not on_gpu if wanted is None else wanted
    assert engine_arguments(config, [], {}, on_gpu=on_gpu)["enforce_eager"] is eager
    compiles = "TORCHDYNAMO_DISABLE" not in engine_environment(config, on_gpu=on_gpu)
    assert compiles is not eager


@pytest.mark.parametrize(("on_gpu", "takes_turns", "sleeps"), [(True, True, True), (True, False, False),
                                                               (False, True, False)])  # fmt: skip
def test_an_engine_can_sleep_where_it_takes_turns_on_a_gpu(
    on_gpu: bool, takes_turns: bool, sleeps: bool
) -> None:
    handed = engine_arguments(make_config("m"), [], {}, on_gpu=on_gpu, takes_turns=takes_turns)
    assert handed["enable_sleep_mode"] is sleeps


def test_no_batch_is_in_flight_when_weights_are_replaced() -> None:
    """vLLM schedules ahead of the GPU by default on CUDA."""
    assert engine_arguments(make_config("m"), [], {}, on_gpu=True)["async_scheduling"] is False


@pytest.mark.parametrize("parallel", [1, 2])
def test_an_engine_s_processes_are_its_own_in_a_placement_group(
    parallel: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM would start Ray actors else, in bundles of its own choice."""
    from vllm.config import parallel as vllms

    answers = {"is_cuda": True, "is_tpu": False, "use_custom_allreduce": True, "device_count": parallel}
    cuda = SimpleNamespace(**{name: partial(int, answer) for name, answer in answers.items()})
    monkeypatch.setattr(vllms, "current_platform", cuda)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr("ray.util.get_current_placement_group", object)
    config = make_config("m", generator={"tensor_parallel_size": parallel})
    handed = engine_arguments(config, [], {}, on_gpu=True)
    names = ("tensor_parallel_size", "distributed_executor_backend")
    chosen = vllms.ParallelConfig(**{name: handed[name] for name in names})
    left_alone = vllms.ParallelConfig(tensor_parallel_size=parallel)
    assert (chosen.use_ray, left_alone.use_ray) == (False, parallel > 1)


def test_choices_of_experts_are_vllms_to_return_on_a_gpu_and_recorded_on_a_cpu() -> None:
    config = make_config("m", generator={"routing_replay": True})
    on_gpu, on_cpu = (engine_arguments(config, [], {}, on_gpu=where) for where in (True, False))
    assert (on_gpu["enable_return_routed_experts"], on_gpu["enable_prefix_caching"]) == (True, True)
    assert (on_cpu["enable_return_routed_experts"], on_cpu["enable_prefix_caching"]) == (False, False)
    plain = engine_arguments(make_config("m"), [], {}, on_gpu=True)
    assert plain["enable_return_routed_experts"] is False


@pytest.mark.parametrize(
    ("generator", "named"),
    [
        ({"enforce_eager": False}, "calls no router; leave generator.enforce_eager out"),
        ({"engine": {"enable_prefix_caching": True}}, "leave generator.engine.enable_prefix_caching out"),
    ],
)
def test_what_leaves_choices_of_experts_unrecorded_is_refused(generator: dict[str, Any], named: str) -> None:
    config = make_config("m", generator={"routing_replay": True, **generator})
    with pytest.raises(ConfigError, match=named):
        engine_arguments(config, [], {}, on_gpu=False)
    engine_arguments(config, [], {}, on_gpu=True)
