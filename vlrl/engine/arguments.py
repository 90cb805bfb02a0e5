"""What vLLM is told when an engine starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vlrl.config import Config


def engine_arguments(
    config: Config, banned_token_ids: Sequence[int], engine_options: Mapping[str, Any], *, on_gpu: bool
) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs.

    Args:
        config: the run's.
        banned_token_ids: never to be generated (law 3).
        engine_options: the processor's, for vLLM's own.
        on_gpu: whether the engine runs on GPUs.
    """
    generator = config.generator
    return {
        "model": config.model.path,
        "dtype": config.model.dtype,
        "seed": config.run.seed,
        "max_model_len": generator.max_model_len,
        "max_num_seqs": generator.max_num_seqs,
        "max_num_batched_tokens": generator.max_num_batched_tokens,
        "gpu_memory_utilization": generator.gpu_memory_utilization,
        "tensor_parallel_size": generator.tensor_parallel_size,
        "enforce_eager": generator.enforce_eager,
        "enable_prefix_caching": True,
        # vLLM rewinds a seeded generator after a partial prefill; a CPU one cannot be rewound.
        "enable_chunked_prefill": on_gpu,
        "generation_config": "vllm",  # nothing hidden: no sampling defaults from the model's folder
        "logprobs_mode": "processed_logprobs",  # of the distribution that was sampled from
        "logits_processors": ["vlrl.engine.logits_processor:MediaTokenBan"],
        "additional_config": {"banned_token_ids": list(banned_token_ids)},
        "mm_processor_kwargs": dict(engine_options),
        "trust_remote_code": config.processor.trust_remote_code,
        "worker_extension_cls": "vlrl.engine.weight_receiver.WeightReceiver",
        "disable_log_stats": True,
    }
