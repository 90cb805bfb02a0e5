"""The arguments of vLLM when an engine starts, and its process's environment."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vlrl.config import Config
from vlrl.config.engine import GeneratorConfig
from vlrl.engine import structured
from vlrl.errors import ConfigError
from vlrl.model.recurrent.layers import has_state
from vlrl.process.heap import ONE_HEAP, REUSED_MEMORY
from vlrl.storage.model_cache import local_model

CPU_BLOCK = 32
"""Tokens of a block of the KV cache on a CPU, the fewest that vLLM's attention there takes (default 128).
The requests of a group compute whole blocks of their prompt once, and the rest each for itself."""

SET_BY: Mapping[str, str] = {
    **{name: "model.path" for name in ("model", "tokenizer", "hf_config_path", "revision", "model_weights")},
    "dtype": "model.dtype",
    "seed": "run.seed",
    **{
        name: f"generator.{name}"
        for name in (
            *("max_model_len", "max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization"),
            *("tensor_parallel_size", "enforce_eager"),
        )
    },
    **{name: "generator.num_replicas" for name in ("data_parallel_size", "pipeline_parallel_size")},
    "distributed_executor_backend": "generator.tensor_parallel_size",
    "mm_processor_kwargs": "processor",
    "trust_remote_code": "processor.trust_remote_code",
    **{
        name: "lora"
        for name in (
            *("enable_lora", "max_loras", "max_cpu_loras", "max_lora_rank", "lora_target_modules"),
            "enable_tower_connector_lora",
        )
    },
    "enable_sleep_mode": "placement",
    "structured_outputs_config": "rollout.structured_outputs",
    "enable_return_routed_experts": "generator.routing_replay",
    "disable_log_stats": "logging.prometheus_port",
}
"""vLLM's argument → the key of the config that says it."""
BREAKS: Mapping[str, str] = {
    "logits_processors": "law 3: the one that is there keeps media tokens from being generated",
    "additional_config": "law 3: it names the media tokens that are not generated",
    "logprobs_mode": "law 5: log-probabilities are those of the distribution that was sampled from",
    "speculative_config": "law 5: its log-probabilities have not been compared with the trainer's",
    "quantization": "law 6: an update would have to quantise the weights as a start does, which is untried",
    "load_format": "law 6: weights come from the model's folder, and then from the trainer",
    "worker_extension_cls": "law 6: the one that is there receives the trainer's weights",
    "weight_transfer_config": "law 6: vlrl sends the weights itself, see the section weights",
    "async_scheduling": "law 6: a batch would be in flight while weights are replaced",
    "enable_chunked_prefill": "law 8: on a CPU a seeded generator cannot be rewound after a partial prefill; "
    "on GPUs it is on",
    "generation_config": "law 9: sampling has no defaults but the config's",
    "override_generation_config": "law 9: sampling has no defaults but the config's",
}
"""vLLM's argument → the law that it breaks, and why."""


def further_arguments(config: Config) -> dict[str, Any]:
    """The arguments of generator.engine.

    Raises:
        ConfigError: for a name that vLLM does not have, one that another key says, or one that breaks a law.
    """
    given = config.generator.engine
    for name in given:
        place = f"generator.engine.{name}"
        if name in SET_BY:
            raise ConfigError(f"{place}: give {SET_BY[name]} instead, which is read by more than the engine")
        if name in BREAKS:
            raise ConfigError(f"{place} would break {BREAKS[name]}")
        known = _names_of_vllm()
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"{place}: vLLM's EngineArgs has no such argument{hint}")
    return dict(given)


@cache
def _names_of_vllm() -> frozenset[str]:
    """Names of EngineArgs' fields, read from source: importing vLLM takes ten seconds."""
    found = find_spec("vllm")
    assert found is not None and found.origin is not None, "vLLM is one of vlrl's own requirements"
    tree = ast.parse((Path(found.origin).parent / "engine" / "arg_utils.py").read_text("utf-8"))
    [args] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "EngineArgs"]
    fields = (node.target for node in args.body if isinstance(node, ast.AnnAssign))
    return frozenset(target.id for target in fields if isinstance(target, ast.Name))


def engine_arguments(
    config: Config,
    banned_token_ids: Sequence[int],
    engine_options: Mapping[str, Any],
    *,
    on_gpu: bool,
    takes_turns: bool = False,
    has_state: bool = False,
    begins_empty: bool = False,
) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs.

    Args:
        config: the run's.
        banned_token_ids: never to be generated (law 3).
        engine_options: the processor's, for vLLM's own.
        on_gpu: whether the engine runs on GPUs.
        takes_turns: whether it gives its GPUs' memory up for the trainer.
        has_state: whether layers carry a state from token to token, see `model_has_state`.
        begins_empty: whether its caches are emptied between rounds. Then blocks may be small; else prompts of
            different rounds would share their first ones, and last bits depend on what was asked before.

    Raises:
        ConfigError: see `further_arguments`.
    """
    generator = config.generator
    if generator.routing_replay and not on_gpu:
        _require_recording(config)
    # The states of layers that have one are kept at the ends of partial prefills alone.
    # On a CPU choices of experts are recorded as each request's tokens are computed.
    caches_prefixes = on_gpu or not (has_state or generator.routing_replay)
    return {
        "model": local_model(config.model.path),
        "dtype": config.model.dtype,
        "seed": config.run.seed,
        "max_model_len": generator.max_model_len,
        "max_num_seqs": generator.max_num_seqs,
        "max_num_batched_tokens": generator.max_num_batched_tokens,
        "gpu_memory_utilization": memory_share(generator, on_gpu=on_gpu),
        "tensor_parallel_size": generator.tensor_parallel_size,
        # Within a placement group vLLM would make Ray actors for them, in bundles that it chooses itself.
        "distributed_executor_backend": "mp" if generator.tensor_parallel_size > 1 else "uni",
        "enforce_eager": is_eager(config, on_gpu=on_gpu),
        # With it a batch is in flight whenever the engine's thread looks, also when weights are replaced.
        "async_scheduling": False,
        "enable_sleep_mode": takes_turns and on_gpu,
        "enable_prefix_caching": caches_prefixes,
        **({"block_size": CPU_BLOCK} if caches_prefixes and begins_empty and not on_gpu else {}),
        "enable_return_routed_experts": on_gpu and generator.routing_replay,
        # vLLM rewinds a seeded generator after a partial prefill; a CPU one cannot be rewound.
        "enable_chunked_prefill": on_gpu,
        "generation_config": "vllm",  # nothing hidden: no sampling defaults from the model's folder
        "logprobs_mode": "processed_logprobs",  # of the distribution that was sampled from
        "logits_processors": ["vlrl.engine.logits_processor:MediaTokenBan"],
        "additional_config": {"banned_token_ids": list(banned_token_ids)},
        "mm_processor_kwargs": dict(engine_options),
        "trust_remote_code": config.processor.trust_remote_code,
        "worker_extension_cls": "vlrl.engine.worker.WorkerExtension",
        "disable_log_stats": config.logging.prometheus_port is None,
        **structured.ARGUMENTS,
        **further_arguments(config),
    }


def _require_recording(config: Config) -> None:
    """What recording the choices of experts takes on a CPU: routers that are called, for every token."""
    begin = "generator.routing_replay on a CPU"
    if not is_eager(config, on_gpu=False):
        raise ConfigError(f"{begin}: a compiled engine calls no router; leave generator.enforce_eager out")
    if config.generator.engine.get("enable_prefix_caching"):
        raise ConfigError(
            f"{begin}: of a cached prompt no choices are recorded; leave "
            "generator.engine.enable_prefix_caching out"
        )


def model_has_state(config: Config) -> bool:
    """Whether layers of the config's model carry a state from token to token."""
    from transformers import AutoConfig

    path, remote = local_model(config.model.path), config.processor.trust_remote_code
    return has_state(AutoConfig.from_pretrained(path, trust_remote_code=remote).get_text_config())


def memory_share(generator: GeneratorConfig, *, on_gpu: bool) -> float:
    """`gpu_memory_utilization`, or what it is for this device."""
    return generator.gpu_memory_utilization or (0.85 if on_gpu else 0.45)


def is_eager(config: Config, *, on_gpu: bool) -> bool:
    """Whether the engine runs without compilation and CUDA graphs."""
    wanted = config.generator.enforce_eager
    return not on_gpu if wanted is None else wanted


def engine_environment(config: Config, *, on_gpu: bool) -> dict[str, str]:
    """Environment variables of an engine's process, which libraries read when they are imported."""
    env = {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the engine steps inside the actor, in an order we control
        "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "ERROR"),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": str(config.generator.cpu_kv_cache_gib),
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    if not on_gpu:
        env |= {**REUSED_MEMORY, **ONE_HEAP}
    if config.model.dtype == "float32":
        env["TRITON_F32_DEFAULT"] = "ieee"  # its products are TF32's else, which parity (law 5) would find
    if is_eager(config, on_gpu=on_gpu):
        # vLLM compiles a few helpers even when eager: 10 s at the first batch
        env["TORCHDYNAMO_DISABLE"] = "1"
    return env
