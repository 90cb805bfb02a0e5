"""What the source of vlrl/engine/ does not say of its use of vLLM: the classes of objects, and names.

tools/vllm_guard.py reads the rest from the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

RUNNERS = (
    "vllm.v1.worker.gpu_model_runner.GPUModelRunner",  # V1
    "vllm.v1.worker.gpu.model_runner.GPUModelRunner",  # V2
    "vllm.v1.worker.cpu_model_runner.CPUModelRunner",
)
WORKERS = ("vllm.v1.worker.gpu_worker.Worker", "vllm.v1.worker.cpu_worker.CPUWorker")
SCHEDULER = "vllm.v1.core.sched.scheduler.Scheduler"
ADAPTERS = "vllm.lora.worker_manager.LRUCacheWorkerLoRAManager"
ADAPTER_MODEL = "vllm.lora.model_manager.LRUCacheLoRAModelManager"
MODELS = "vllm.model_executor.models"
DELTA_RULE = "vllm.model_executor.layers.mamba.gdn.qwen_gdn_linear_attn.QwenGatedDeltaNetAttention"

CLASSES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "engine.py": {
        "self._engine": ["vllm.v1.engine.llm_engine.LLMEngine"],
        "self._engine.renderer": ["vllm.renderers.base.BaseRenderer"],
        "self._engine.engine_core": ["vllm.v1.engine.core_client.InprocClient"],
        "self._engine.engine_core.engine_core": ["vllm.v1.engine.core.EngineCore"],
        "scheduler": [SCHEDULER],
        "scheduler.kv_cache_manager": ["vllm.v1.core.kv_cache_manager.KVCacheManager"],
        "output": ["vllm.outputs.RequestOutput"],
    },
    "choices.py": {
        "vllm_config": ["vllm.config.vllm.VllmConfig"],
        "vllm_config.compilation_config": ["vllm.config.compilation.CompilationConfig"],
        "vllm_config.compilation_config.cudagraph_mode": [],
        "vllm_config.compilation_config.static_forward_context": [],
        "vllm_config.device_config": ["vllm.config.device.DeviceConfig"],
        "vllm_config.model_config": ["vllm.config.model.ModelConfig"],
        "vllm_config.scheduler_config": ["vllm.config.scheduler.SchedulerConfig"],
        "layer": ["vllm.model_executor.layers.attention.attention.Attention"],
        "layer.get_attn_backend()": ["vllm.v1.attention.backend.AttentionBackend"],
    },
    "requests.py": {
        "output": ["vllm.outputs.RequestOutput"],
        "completion": ["vllm.outputs.CompletionOutput"],
        "completion.logprobs": ["vllm.logprobs.FlatLogprobs"],
        "s": ["vllm.outputs.WeightVersionSpan"],
    },
    "structured.py": {
        "engine": ["vllm.v1.engine.llm_engine.LLMEngine"],
        "engine.engine_core": ["vllm.v1.engine.core_client.InprocClient"],
        "engine.engine_core.engine_core": ["vllm.v1.engine.core.EngineCore"],
        "manager": ["vllm.v1.structured_output.StructuredOutputManager"],
    },
    "weight_receiver.py": {"self.model_runner": RUNNERS},
    "worker.py": {"self.model_runner": RUNNERS[:2], "self.model_runner.device": []},
    "threads.py": {
        "model_runner": [RUNNERS[0], RUNNERS[2]],
        "model_runner.model_config": ["vllm.config.model.ModelConfig"],
        "model_runner.model_config.hf_text_config": [],
        "scheduled": ["vllm.v1.core.sched.output.SchedulerOutput"],
    },
    "patches.py": {
        "engine": ["vllm.v1.engine.llm_engine.LLMEngine"],
        "engine.renderer": ["vllm.renderers.base.BaseRenderer"],
        "model": [f"{MODELS}.llava_onevision.LlavaOnevisionForConditionalGeneration"],
        "processor": [f"{MODELS}.interns1.InternS1MultiModalProcessor"],
        "processor.info": [f"{MODELS}.interns1.InternS1ProcessingInfo"],
    },
    "routed_experts.py": {
        "runner": RUNNERS[:2],
        "runner.get_model()": [],
        "runner.model_config": ["vllm.config.model.ModelConfig"],
        "self.model_runner": RUNNERS[:2],
        "self.model_runner.input_batch": [],
        "router": ["vllm.model_executor.layers.fused_moe.router.base_router.BaseRouter"],
        "batch": ["vllm.v1.worker.gpu_input_batch.InputBatch"],
        "scheduled": ["vllm.v1.core.sched.output.SchedulerOutput"],
    },
    "gated_delta.py": {
        "context": ["vllm.forward_context.ForwardContext"],
        "layer": [DELTA_RULE],
        "layer.A_log": [],
        "layer.A_log.float()": [],
        "self._layer": [DELTA_RULE],
        "found": ["vllm.v1.attention.backends.gdn_attn.GDNAttentionMetadata"],
        "found.non_spec_state_indices_tensor": [],
        "found.non_spec_query_start_loc": [],
    },
    "lora.py": {
        "model_runner": RUNNERS[:2],
        "model_runner.lora_manager": [ADAPTERS],
        "model_runner.device": [],
        "self._worker": [ADAPTERS],
        "self._worker.lora_config": ["vllm.config.lora.LoRAConfig"],
        "self._manager": [ADAPTER_MODEL],
        "self._manager.punica_wrapper_mapping": [],
        "mapper": ["vllm.model_executor.models.utils.WeightsMapper"],
    },
}
"""File of vlrl/engine/ → an expression there → vLLM's classes of which its value is, all of them; none for an
object of Python's own."""

SUBCLASSES: Mapping[str, Sequence[str]] = {
    "logits_processor.py:MediaTokenBan": (
        "vllm.v1.sample.logits_processor.LogitsProcessor",
        "vllm.v1.worker.gpu.sample.logits_processor.LogitsProcessor",
    ),
    "cpu/fused_layers.py:FusedRMSNorm": ("vllm.model_executor.layers.layernorm.RMSNorm",),
    "cpu/fused_layers.py:FusedMRotaryEmbedding": (
        "vllm.model_executor.layers.rotary_embedding.mrope.MRotaryEmbedding",
    ),
}
"""A class of vlrl → those that vLLM's loaders want it to derive from."""

MIXED_IN: Mapping[str, Sequence[str]] = {
    "weight_receiver.py:WeightReceiver": WORKERS,
    "cpu/routed_experts.py:ExpertRecorder": WORKERS,
}
"""A class of vlrl → vLLM's classes that get it as a further base."""

REPLACED_METHODS: Mapping[str, str] = {
    "cpu/lora_products.py:_add_products": (
        "vllm.lora.punica_wrapper.punica_cpu.PunicaWrapperCPU.add_lora_linear"
    ),
}
"""A function of vlrl → the method that it is put in place of."""

ARGUMENTS: Mapping[str, str] = {
    "arguments.py:engine_arguments": "vllm.engine.arg_utils.EngineArgs",
    "lora.py:adapter_arguments": "vllm.engine.arg_utils.EngineArgs",
}
"""A function of vlrl that returns a dictionary → what it is the keyword arguments of."""

PATHS = (
    "vllm.model_executor.layers.vocab_parallel_embedding.ParallelLMHead",
    "vllm.model_executor.layers.fused_moe.modular_kernel.FusedMoEKernel.fused_experts",
    "vllm.model_executor.models.interfaces.SupportsLoRA.packed_modules_mapping",
    "vllm.model_executor.models.utils.WeightsMapper.apply_list",
    "vllm.sampling_params.RequestOutputKind.FINAL_ONLY",
)
"""Looked up while a run goes on, by names that no import says."""

LOADERS = ("v1/sample/logits_processor", "v1/worker/gpu/sample/logits_processor")
"""Folders of the loaders of logits processors, V1's and V2's."""

ENVIRONMENT = "vllm.envs.environment_variables"
