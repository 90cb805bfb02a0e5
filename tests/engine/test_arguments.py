"""What reaches vLLM of the options that are about its engines."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_config

from vlrl.config.engine import GeneratorConfig
from vlrl.engine.arguments import engine_arguments, engine_environment

OURS = {"mode", "num_replicas", "max_restarts", "max_concurrency", "cpu_kv_cache_gib", "gpus", "cpus"}
"""Of the generator's options those that say how many engines there are, where, and when they generate."""

OTHER: dict[str, Any] = {
    "max_model_len": 777,
    "max_num_seqs": 33,
    "max_num_batched_tokens": 5000,
    "gpu_memory_utilization": 0.3,
    "tensor_parallel_size": 4,
    "enforce_eager": False,
}


@pytest.mark.parametrize("name", sorted(set(GeneratorConfig.model_fields) - OURS))
def test_an_option_of_the_engine_reaches_it_under_its_name(name: str) -> None:
    def handed(**generator: Any) -> dict[str, Any]:
        return engine_arguments(make_config(generator=generator), [5], {"max_pixels": 9}, on_gpu=True)

    assert handed(**{name: OTHER[name]})[name] == OTHER[name]
    assert handed()[name] != OTHER[name]


def test_what_is_no_option_is_as_the_laws_want_it() -> None:
    config = make_config("m", run={"seed": 7})
    handed = engine_arguments(config, [5, 6], {"max_pixels": 9}, on_gpu=False)
    assert handed["additional_config"] == {"banned_token_ids": [5, 6]}
    assert handed["mm_processor_kwargs"] == {"max_pixels": 9}
    assert (handed["seed"], handed["dtype"], handed["model"]) == (7, "float32", "m")
    assert handed["enable_chunked_prefill"] is False


@pytest.mark.parametrize(("dtype", "expected"), [("float32", "ieee"), ("bfloat16", None)])
def test_float32_is_not_rounded_to_tf32_in_triton_s_products(
    monkeypatch: pytest.MonkeyPatch, dtype: Any, expected: str | None
) -> None:
    monkeypatch.setattr("vlrl.cluster.gpu_available", lambda: True)
    config = make_config("m")
    config.model.dtype = dtype
    assert engine_environment(config).get("TRITON_F32_DEFAULT") == expected
