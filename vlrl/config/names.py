"""Other names of the config's options: those that TRL, verl, EasyR1 and VLM-R1 use, and former ones."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

ALIASES: Mapping[str, str] = {
    # TRL: GRPOConfig, ModelConfig, ScriptArguments
    "num_generations": "rollout.group_size",
    "learning_rate": "optim.lr",
    "max_completion_length": "rollout.max_tokens",
    "max_prompt_length": "data.max_prompt_tokens",
    "per_device_train_batch_size": "rollout.prompts_per_step",
    "gradient_accumulation_steps": "trainer.max_tokens_per_micro_batch",
    "epsilon": "algorithm.clip_low",
    "epsilon_high": "algorithm.clip_high",
    "delta": "algorithm.correction",
    "num_iterations": "algorithm.num_minibatches",
    "importance_sampling_level": "algorithm.loss",
    "steps_per_generation": "algorithm.num_minibatches",
    "loss_type": "algorithm.aggregation",
    "sync_ref_model": "algorithm.reference",
    "ref_model_sync_steps": "algorithm.reference.every",
    "ref_model_mixup_alpha": "algorithm.reference.mix",
    "top_entropy_quantile": "algorithm.selections",
    "scale_rewards": "algorithm.scale_by_std",
    "mask_truncated_completions": "algorithm.masks",
    "vllm_importance_sampling_correction": "algorithm.correction",
    "label_smoothing": "preferences.loss",
    "reference_free": "preferences.reference",
    "desirable_weight": "preferences.loss",
    "center_rewards_coefficient": "preferences.loss",
    "undesirable_weight": "preferences.loss",
    "reward_funcs": "rewards",
    "reward_weights": "rewards",
    "max_steps": "num_steps",
    "num_train_epochs": "num_steps",
    "save_steps": "checkpoint.every",
    "save_total_limit": "checkpoint.keep",
    "eval_steps": "eval.every",
    "output_dir": "run.dir",
    "run_name": "run.name",
    "model_name_or_path": "model.path",
    "dataset_name": "data.train",
    "train_dataset": "data.train",
    "eval_dataset": "data.eval",
    "bf16": "model.dtype",
    "torch_dtype": "model.dtype",
    "attn_implementation": "model.attention",
    "freeze_vision_modules": "model.freeze",
    "lr_scheduler_type": "optim.schedule",
    "warmup_ratio": "optim.warmup_steps",
    "adam_beta1": "optim.betas",
    "adam_beta2": "optim.betas",
    "adam_epsilon": "optim.eps",
    "use_vllm": "generator",
    "vllm_gpu_memory_utilization": "generator.gpu_memory_utilization",
    "vllm_tensor_parallel_size": "generator.tensor_parallel_size",
    "vllm_max_model_length": "generator.max_model_len",
    "vllm_structured_outputs_regex": "rollout.structured_outputs.regex",
    "json": "rollout.structured_outputs.json_schema",
    "guided_json": "rollout.structured_outputs.json_schema",
    "guided_regex": "rollout.structured_outputs.regex",
    "report_to": "logging.wandb_project",
    "use_peft": "lora",
    "lora_r": "lora.rank",
    "lora_alpha": "lora.alpha",
    "use_rslora": "lora.rslora",
    "use_dora": "lora.dora",
    "load_in_4bit": "lora.base",
    "lora_target_modules": "lora.targets",
    "teacher_model_name_or_path": "algorithm.teacher.path",
    # verl
    "n": "rollout.group_size",
    "train_batch_size": "rollout.prompts_per_step",
    "max_response_length": "rollout.max_tokens",
    "response_length": "rollout.max_tokens",
    "ppo_mini_batch_size": "algorithm.num_minibatches",
    "ppo_epochs": "algorithm.num_minibatches",
    "ppo_micro_batch_size": "trainer.max_tokens_per_micro_batch",
    "ppo_micro_batch_size_per_gpu": "trainer.max_tokens_per_micro_batch",
    "ppo_max_token_len_per_gpu": "trainer.max_tokens_per_micro_batch",
    "kl_loss_coef": "algorithm.kl_coef",
    "use_kl_loss": "algorithm.kl_coef",
    "clip_ratio": "algorithm.clip_low",
    "clip_ratio_low": "algorithm.clip_low",
    "clip_ratio_high": "algorithm.clip_high",
    "entropy_coeff": "algorithm.entropy_coef",
    "loss_mode": "algorithm.loss",
    "kl_loss_type": "algorithm.kl_estimator",
    "use_kl_in_reward": "algorithm.kl_in",
    "kl_penalty": "algorithm.kl_estimator",
    "target_kl": "algorithm.kl_adaptive",
    "kl_ctrl": "algorithm.kl_adaptive",
    "loss_agg_mode": "algorithm.aggregation",
    "adv_estimator": "algorithm.credit",
    "norm_adv_by_std_in_grpo": "algorithm.scale_by_std",
    "gamma": "algorithm.discount",
    "lam": "algorithm.credit.options",
    "critic_warmup": "algorithm.critic.warmup_steps",
    "cliprange_value": "algorithm.critic.clip",
    "total_training_steps": "num_steps",
    "total_epochs": "num_steps",
    "save_freq": "checkpoint.every",
    "max_actor_ckpt_to_keep": "checkpoint.keep",
    "test_freq": "eval.every",
    "n_gpus_per_node": "trainer.num_ranks",
    "experiment_name": "run.name",
    "project_name": "logging.wandb_project",
    "default_local_dir": "run.dir",
    "tensor_model_parallel_size": "generator.tensor_parallel_size",
    "router_replay": "generator.routing_replay",
    "router_aux_loss_coef": "trainer.router_aux_coef",
    "enable_rollout_routing_replay": "generator.routing_replay",
    "ulysses_sequence_parallel_size": "trainer.sequence_parallel",
    "param_offload": "trainer.offload_parameters",
    "optimizer_offload": "trainer.offload_optimizer",
    "enable_gradient_checkpointing": "trainer.gradient_checkpointing",
    "grad_clip": "optim.max_grad_norm",
    "lr_warmup_steps": "optim.warmup_steps",
    "lr_warmup_steps_ratio": "optim.warmup_steps",
    "train_files": "data.train",
    "val_files": "data.eval",
    "prompt_key": "data.train.columns",
    "answer_key": "data.train.columns",
    "image_key": "data.train.columns",
    "filter_overlong_prompts": "data.overlong",
    "custom_reward_function": "rewards",
    "lora_rank": "lora.rank",
    "target_modules": "lora.targets",
    "distillation": "algorithm.teacher",
    "distillation_loss_coef": "algorithm.teacher.coef",
    "teacher_model": "algorithm.teacher",
    # EasyR1
    "rollout_batch_size": "rollout.prompts_per_step",
    "global_batch_size": "algorithm.num_minibatches",
    "micro_batch_size_per_device_for_update": "trainer.max_tokens_per_micro_batch",
    "disable_kl": "algorithm.kl_coef",
    "reward_function": "rewards",
    "system_prompt": "data.train.system",
    "format_prompt": "data.train.template",
    "image_dir": "data.train.options",
    "freeze_vision_tower": "model.freeze",
    "online_filtering": "batch.filters",
    "val_freq": "eval.every",
    "save_limit": "checkpoint.keep",
    # VLM-R1
    "data_file_paths": "data.train",
    "image_folders": "data.train.options",
    "is_reward_customized_from_vlm_module": "rewards",
}
"""The last part of a key elsewhere → the nearest option here; docs/reference/options.md lists them."""


RENAMED: Mapping[str, str] = {
    "async_": "it is called 'asynchronous'",
    "rollout.top_p": "tokens are sampled from the whole distribution, the one that the trainer computes",
    "rollout.top_k": "tokens are sampled from the whole distribution, the one that the trainer computes",
    "generator.gpus": "an engine has whole GPUs: generator.tensor_parallel_size of them, see placement",
    "trainer.gpus_per_rank": "a rank has a GPU, to itself or by turns with an engine, see placement",
}
"""A former key or section → what became of it."""


_NO_LIGER = (
    "Liger's fused loss is vlrl's own head, which never has whole logits (trainer.logits_chunk_mib); its "
    "other kernels run on GPUs alone and were never compared with the engine's logprobs, see docs/memory.md"
)
_NO_HALF = "float16 needs a loss scale, which skips steps; set model.dtype=bfloat16, see docs/memory.md"
_NO_OFFLOADED_ACTIVATIONS = (
    "saved activations stay on the device; set trainer.gradient_checkpointing=true, a smaller "
    "trainer.max_tokens_per_micro_batch or trainer.sequence_parallel, see docs/memory.md"
)
_NO_TRAINER_EXPERTS = (
    "ZeRO-3 slices experts as all weights; generator.engine={enable_expert_parallel: true} places an "
    "engine's, see docs/memory.md"
)
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("use_liger_kernel", "use_liger", "use_liger_loss"), _NO_LIGER),
    **dict.fromkeys(("fp16", "float16"), _NO_HALF),
    **dict.fromkeys(("activation_offloading", "enable_activation_offload"), _NO_OFFLOADED_ACTIVATIONS),
    **dict.fromkeys(("expert_parallel", "expert_model_parallel_size", "moe"), _NO_TRAINER_EXPERTS),
}
"""The last part of a key elsewhere that has no counterpart here → why, and what to set instead."""


def renamed(key: str) -> str | None:
    """What became of a former version's key, or why there is none like another project's; else None."""
    former = next((now for old, now in RENAMED.items() if key == old or key.startswith(f"{old}.")), None)
    return former or REFUSED.get(key.rsplit(".", 1)[-1])


def nearest_key(key: str, known: Sequence[str]) -> str | None:
    """The known key meant by an unknown one: another project's word for it, the same name elsewhere, a slip.

    Args:
        key: dotted, as it was written.
        known: every dotted key, the list of `vlrl.config.field_paths`.
    """
    name = key.rsplit(".", 1)[-1]
    # Of each name the first wins of those that are nested least: optim.lr before algorithm.critic.lr.
    deepest_first = sorted(reversed(known), key=lambda path: -path.count("."))
    by_name = {path.rsplit(".", 1)[-1]: path for path in deepest_first}
    if name in ALIASES and name not in by_name:
        return ALIASES[name]
    indexless = ".".join(part for part in key.split(".") if not part.isdigit())
    alike = difflib.get_close_matches(indexless, known, n=1, cutoff=0.75)
    if alike or name in by_name:
        return alike[0] if alike else by_name[name]
    words = {**ALIASES, **by_name}
    near = difflib.get_close_matches(name, words, n=1, cutoff=0.6)
    return words[near[0]] if near else None
