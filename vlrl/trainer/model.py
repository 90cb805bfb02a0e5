"""What a trainer rank trains: the model with its frozen parts, in the form that ZeRO-3 takes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch.distributed import ProcessGroup

from vlrl.config import Config
from vlrl.config.memory import rounds_base
from vlrl.errors import ConfigError
from vlrl.model.adapters.nf4 import round_layers
from vlrl.model.feature_cache import FeatureCache, fingerprint
from vlrl.model.head_logprobs import chunk_bytes_on
from vlrl.model.logprobs import TreeLogprobs, TreeModel
from vlrl.model.lora import adapted_layers, adapter_targets, add_adapters
from vlrl.model.omni.thinker import model_class
from vlrl.model.parts import VISION_PARTS, freeze, part_of, recomputes, vision_is_frozen
from vlrl.model.scored.files import load_scored
from vlrl.storage.model_cache import local_model
from vlrl.trainer.choices import RankChoices
from vlrl.trainer.offload import zero_options


def load_model(config: Config) -> Any:
    """The starting model, whole unless within `load_split`, with its frozen parts marked.

    Raises:
        ConfigError: if there is no model at model.path, or nothing of it is left to train.
    """
    from transformers import AutoConfig

    path, remote = local_model(config.model.path), config.processor.trust_remote_code
    try:
        load: Any = model_class(AutoConfig.from_pretrained(path, trust_remote_code=remote)).from_pretrained
        if config.preferences is not None and config.preferences.is_scored:
            load = partial(load_scored, seed=config.run.seed)
        model = load(
            path,
            dtype=getattr(torch, config.model.dtype),
            attn_implementation=config.model.attention,
            trust_remote_code=remote,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(f"model.path={config.model.path!r} cannot be loaded: {error}") from error
    if config.trainer.gradient_checkpointing:
        _recompute(model, config.trainer.gradient_checkpointing)
    freeze(model, config.model.freeze)
    if config.lora is not None:
        if rounds_base(config):
            round_layers(model, adapter_targets(model, config.lora))
        add_adapters(model, config.lora, config.run.seed, config.policies)
    if not any(p.requires_grad for p in model.parameters()):
        raise ConfigError(f"model.freeze={config.model.freeze} leaves nothing to train")
    return model.train()


def _recompute(model: Any, choice: bool | str) -> None:
    """Switch recomputing on, and off again in the layers of the side that is not chosen."""
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    for name, module in model.named_modules():
        side: Literal["vision", "language"] = "vision" if part_of(f"{name}.") in VISION_PARTS else "language"
        if getattr(module, "gradient_checkpointing", False) and not recomputes(choice, side):
            module.gradient_checkpointing = False


def with_logprobs(
    model: Any,
    config: Config,
    banned_token_ids: Sequence[int],
    chosen: RankChoices,
    cache: FeatureCache | None,
    sharers: ProcessGroup | None,
    is_policy: bool = False,
) -> TreeLogprobs:
    """The model wrapped for the loss, as was chosen; `cache` stands in for a frozen tower.

    The policy alone replays the engine's choices of experts, and is kept from using some of them too much.
    """
    return TreeLogprobs(
        model,
        temperature=config.rollout.temperature,
        banned_token_ids=banned_token_ids,
        attention=chosen.attention,
        spans=chosen.spans,
        chunk_bytes=chunk_bytes_on(chosen.device_type, config.trainer.logits_chunk_mib),
        **({"features": cache} if cache is not None else {}),
        sharers=sharers,
        replays_routing=is_policy and config.generator.routing_replay,
        # ZeRO-3 takes the mean of the ranks' gradients, and their shares add up to 1.
        router_aux_coef=config.trainer.router_aux_coef * config.trainer.world_size if is_policy else 0.0,
    )


def feature_cache(model: Any, config: Config, device: torch.device) -> FeatureCache | None:
    """A cache of images' features, if no step changes them and the config keeps any.

    Every rank must call it.
    """
    options = config.vision_cache
    if not vision_is_frozen(model) or (options.gib == 0 and options.dir is None):
        return None
    folder = None
    if options.dir is not None:
        folder = options.dir / fingerprint(_whole_tower(model), _vision_settings(model, config))

    def agree(mine: bool) -> bool:
        flag = torch.tensor(int(mine), device=device)
        torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
        return bool(flag.item())

    return FeatureCache(int(options.gib * 2**30), folder, agree)


def _whole_tower(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tower's weights by name, each gathered for as long as the caller is at it."""
    import deepspeed

    for name, parameter in model.named_parameters():
        if part_of(name) in VISION_PARTS:
            with deepspeed.zero.GatheredParameters([parameter]):
                yield name, parameter


def _vision_settings(model: Any, config: Config) -> str:
    """What features hang on besides images and weights, such as the mean that is taken off pixels."""
    from transformers.models.auto.image_processing_auto import get_image_processor_config

    own = model.config
    settings = {
        "processor": config.processor.model_dump(mode="json"),
        "images": get_image_processor_config(local_model(config.model.path)),
        "tower": own.vision_config.to_dict(),
        "picked": {
            name: value for name, value in own.to_dict().items() if name.startswith("vision_feature_")
        },
    }
    return json.dumps(settings, sort_keys=True, default=str)


def deepspeed_config(config: Config, device_type: str) -> Mapping[str, Any]:
    """DeepSpeed's own config of a rank.

    Collectives run beside the computation on a GPU; gloo's on a CPU would only take its cores.
    """
    low, on_gpu = config.model.dtype == "bfloat16", device_type == "cuda"
    return {
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,  # the boundary is set by hand: micro-batches vary in number
        "gradient_clipping": config.optim.max_grad_norm,
        "zero_optimization": {"stage": 3, "overlap_comm": on_gpu, **zero_options(config)},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,  # torch's AdamW does offloaded updates too, without a compiler
        "bf16": {"enabled": low},
        # Left alone DeepSpeed adds micro-batches and ranks up in bfloat16: small gradients are lost.
        **({"data_types": {"grad_accum_dtype": "fp32"}, "communication_data_type": "fp32"} if low else {}),
    }


def begin_gradients(engine: Any, tower_runs: bool) -> None:
    """Forget the last step's gradients, before a step whose first micro-batch may not compute all of them.

    DeepSpeed overwrites a gradient in the first micro-batch and adds to it in the others, so that what is
    first computed in a later one would be added to the last step's.

    Args:
        engine: of the module that is trained.
        tower_runs: whether the first micro-batch runs the vision tower, and with it all parameters.
    """
    if not tower_runs:
        engine.optimizer.grad_partitions_flat_buffer.zero_()


def make_leaves(module: TreeModel) -> None:
    """Let ZeRO-3 fetch a whole block at once: a hook per linear layer costs more than a small layer.

    DeepSpeed follows such a block's backward pass by its inputs and its output, so these are left alone:
    parts of a block, which may be called by keywords alone (SmolVLM's attention), and a tower whose features
    are picked from its hidden states (LLaVA's), which a hook of transformers takes out early.

    A layer with DoRA is such a block wherever it is: it reads its base layer's weight beside calling it.
    """
    from deepspeed.utils import set_z3_leaf_module, set_z3_leaf_modules

    model = module.model
    picked = model.model.vision_tower if hasattr(model.config, "vision_feature_layer") else None
    tower = set() if picked is None else set(picked.modules())
    lists = (m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and m not in tower)
    names = set(model._no_split_modules or [])
    classes = {type(layer) for layers in lists for layer in layers if type(layer).__name__ in names}
    leaves = set_z3_leaf_modules(module, list(classes)) if classes else []
    inside = {part for leaf in leaves for part in leaf.modules()}
    alone = [m for m in adapted_layers(model).values() if m.lora_magnitude_vector and m not in inside]
    for layer in alone:
        set_z3_leaf_module(layer, True)
    for layer in [*leaves, *alone]:
        layer.register_forward_pre_hook(_with_grad_at_input)


def _with_grad_at_input(layer: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Let the gradient go through a block that is trained above frozen ones.

    DeepSpeed takes a block's gradients when the gradient of its input is there. An input that has none,
    because all below is frozen, would set this off before the block's own are.
    """
    first = inputs[0] if inputs else None
    if not isinstance(first, torch.Tensor) or first.requires_grad or not torch.is_grad_enabled():
        return None
    if not any(parameter.requires_grad for parameter in layer.parameters()):
        return None
    return (first.detach().requires_grad_(), *inputs[1:])
