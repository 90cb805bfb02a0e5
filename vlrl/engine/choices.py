"""What an engine chose for its machine, read from vLLM's own config, which vLLM changes without a message."""

from __future__ import annotations

from typing import Any

from vlrl.choices import MachineChoice

GRAPHS, STEPS, PRODUCTS = "token steps", "scheduling", "adapter's products"
RUNNER, ATTENTION = "vLLM's model runner", "attention of engines"
SLOWER_ATTENTION = frozenset({"TRITON_ATTN", "FLEX_ATTENTION"})
"""Kernels that vLLM takes where its fast ones do not know the dtype, the head size or the GPU."""


def engine_choices(vllm_config: Any, unknown_lora_products: str) -> list[MachineChoice]:
    """An engine's choices.

    Args:
        vllm_config: as it is when the engine has started.
        unknown_lora_products: see `vlrl.engine.cpu.lora_products.use_plain_products`; empty without adapters.
    """
    found = []
    if vllm_config.device_config.device_type == "cuda":
        found += [_graphs(vllm_config), _scheduling(vllm_config), _runner(vllm_config)]
        found += _attention(vllm_config)
    if unknown_lora_products:
        reason = f"vLLM's class {unknown_lora_products} is not the one that this is written for"
        cost = "a prompt of 1,600 tokens takes two to four times as long as without an adapter"
        found.append(MachineChoice(PRODUCTS, "two plain products", "vLLM's", reason, cost))
    return found


def _graphs(vllm_config: Any) -> MachineChoice:
    mode = str(vllm_config.compilation_config.cudagraph_mode.name)
    if mode != "NONE":
        return MachineChoice.as_wanted(GRAPHS, "CUDA graphs", f"mode {mode}")
    eager = vllm_config.model_config.enforce_eager
    reason = "generator.enforce_eager=true" if eager else "vLLM has none for this model and its attention"
    cost = "about 20 ms a step in place of 7 for a model of 3 billion parameters, estimated"
    return MachineChoice(GRAPHS, "CUDA graphs", "eager", reason, cost)


def _scheduling(vllm_config: Any) -> MachineChoice:
    if vllm_config.scheduler_config.async_scheduling:
        return MachineChoice.as_wanted(STEPS, "beside the GPU", "async_scheduling")
    reason = "weights are replaced between two steps, when no batch may be in flight"
    cost = "the scheduler's time on the host in every step; unmeasured"
    return MachineChoice(STEPS, "beside the GPU", "between steps", reason, cost)


def _runner(vllm_config: Any) -> MachineChoice:
    if vllm_config.use_v2_model_runner:
        return MachineChoice.as_wanted(RUNNER, "V2", "vLLM's default")
    reason = "VLLM_USE_V2_MODEL_RUNNER=0 is set, or vLLM found no working Triton (see vlrl doctor)"
    cost = "more of the host's time in every step, unmeasured; vLLM has deprecated V1"
    return MachineChoice(RUNNER, "V2", "V1", reason, cost)


def _attention(vllm_config: Any) -> list[MachineChoice]:
    """Which kernels the layers use; nothing where the layers are in processes of their own."""
    layers = vllm_config.compilation_config.static_forward_context.values()
    used = {layer.get_attn_backend().get_name() for layer in layers if hasattr(layer, "get_attn_backend")}
    names = ", ".join(sorted(used))
    if used & SLOWER_ATTENTION:
        reason = f"vLLM's choice for model.dtype={vllm_config.model_config.dtype}, this head size and GPU"
        cost = "the attention's time in every step, unmeasured"
        return [MachineChoice(ATTENTION, "FLASH_ATTN", names, reason, cost)]
    return [MachineChoice.as_wanted(ATTENTION, names, "vLLM's choice")] if used else []
