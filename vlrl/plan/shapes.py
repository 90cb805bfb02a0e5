"""A model's shapes: parameters by part and widths, read from its config on the meta device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from vlrl.config import Config
from vlrl.config.memory import rounds_base
from vlrl.errors import ConfigError
from vlrl.model.recurrent.layers import RECURRENT

BYTES = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The layers of a stack that carry a state in place of attending: gated delta rules.

    Attributes:
        num_layers: of them.
        channels: features of a token that go through the short convolution.
        num_heads: heads of the rule.
        key: features of a head's keys.
        value: features of a head's values.
    """

    num_layers: int
    channels: int
    num_heads: int
    key: int
    value: int


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack of equal transformer layers, as wide as its config says.

    Attributes:
        num_layers: layers.
        hidden: features of a token.
        heads: features of all query heads together.
        key_heads: features of all key heads together.
        inner: features inside the MLP, of the experts that answer together.
        num_gates: 3 matrices in a gated MLP, 2 in a plain one.
        largest_layer: parameters of one layer, all experts.
        norms_heads: whether queries and keys are normalised (Qwen3).
        num_heads: query heads.
        num_key_heads: key heads.
        recurrence: of its layers, those that carry a state.
        num_norms: norms of a layer, those of queries and keys aside: 4 where what is added is normalised too.
        num_experts: that answer a token, those of a mixture which all tokens share aside; 0 without one.
    """

    num_layers: int
    hidden: int
    heads: int
    key_heads: int
    inner: int
    num_gates: int
    largest_layer: int
    norms_heads: bool = False
    num_heads: int = 1
    num_key_heads: int = 1
    recurrence: Recurrence | None = None
    num_norms: int = 2
    num_experts: int = 0

    @property
    def num_attending(self) -> int:
        """Layers that attend, and keep keys and values."""
        return self.num_layers - (self.recurrence.num_layers if self.recurrence else 0)

    @property
    def matmul_params(self) -> int:
        """Weights that one token is multiplied with in one layer."""
        attention = self.hidden * (2 * self.heads + 2 * self.key_heads)
        return attention + self.num_gates * self.hidden * self.inner


@dataclass(frozen=True, slots=True)
class ModelShape:
    """Sizes of a model, from which memory and time are predicted.

    Attributes:
        params: whole parameters by part (`vlrl.model.parts`).
        trained: of those, the trained ones; an adapter counts to the part that it sits in.
        adapters: parameters of the adapters; 0 without LoRA.
        adapted_outputs: values that the linear maps with an adapter answer with, of all layers, by part.
        language: the decoder.
        vision: the tower.
        vocab: entries of the head.
        patch: side of a patch in pixels.
        patches_per_token: patches that become one token of the language model.
        weight_bytes: of one weight.
        num_tensors: parameters that are tensors of their own.
        num_matrix_weights: trained ones in matrices that Muon would update.
        num_rounded: weights that lora.base=nf4 keeps in 4 bits.
        largest_rounded: of one layer.
        teacher: shape of algorithm.teacher; None without one.
        critic: shape of algorithm.critic, with its own head; None without one.
        caps_logits: whether no logit exceeds a cap (Gemma 4).
    """

    params: Mapping[str, int]
    trained: Mapping[str, int]
    adapters: int
    adapted_outputs: Mapping[str, int]
    language: Stack
    vision: Stack
    vocab: int
    patch: int
    patches_per_token: int
    weight_bytes: int
    num_tensors: int = 0
    num_matrix_weights: int = 0
    num_rounded: int = 0
    largest_rounded: int = 0
    teacher: ModelShape | None = None
    critic: ModelShape | None = None
    caps_logits: bool = False

    @property
    def num_params(self) -> int:
        """Number of parameters of the model, without adapters."""
        return sum(self.params.values())

    @property
    def num_trained(self) -> int:
        """That have a gradient and optimizer states."""
        return sum(self.trained.values())


def read_shape(config: Config, *, fetch: bool = True) -> ModelShape:
    """Build the model of a config without memory and count; of a hub model config.json is enough.

    Args:
        config: the whole config.
        fetch: ask the hub for a config.json that is nowhere on this machine, see `find_model_config`.

    Raises:
        ConfigError: if there is no config.json, or freezing or adapters name nothing.
    """
    from vlrl.trainer.critic.rank import of_critic
    from vlrl.trainer.frozen.model import of_teacher

    shape = _read_shape(config, fetch)
    if config.algorithm.teacher is not None:
        shape = replace(shape, teacher=_shape_beside("teacher", of_teacher(config), fetch))
    if config.algorithm.critic is not None:
        critic = with_value_head(_shape_beside("critic", of_critic(config), fetch))
        shape = replace(shape, critic=critic)
    return shape


def with_value_head(shape: ModelShape) -> ModelShape:
    """A model whose head answers with one number; one that is tied to the embeddings had no weights."""
    head = {"head": shape.language.hidden + 1}
    return replace(shape, vocab=1, params={**shape.params, **head}, trained={**shape.trained, **head})


def _shape_beside(key: str, config: Config, fetch: bool) -> ModelShape:
    try:
        return _read_shape(config, fetch)
    except ConfigError as error:
        raise ConfigError(f"algorithm.{key}: {error}") from error


def _read_shape(config: Config, fetch: bool) -> ModelShape:
    from vlrl.model.lora import adapter_targets
    from vlrl.model.meta_model import empty_model
    from vlrl.model.omni.thinker import trained_config
    from vlrl.model.parts import freeze, hidden_matrices, part_of
    from vlrl.plan.model_config import find_model_config

    remote = config.processor.trust_remote_code
    found = find_model_config(config.model.path, remote_code=remote, fetch=fetch)
    model = empty_model(config, found)
    freeze(model, config.model.freeze)
    params, trained, adapters, outputs = Counter[str](), Counter[str](), 0, Counter[str]()
    for name, parameter in model.named_parameters():
        params[part_of(name)] += parameter.numel()
        if parameter.requires_grad and config.lora is None:
            trained[part_of(name)] += parameter.numel()
    rounded = [0]
    matrices = sum(weight.numel() for weight in hidden_matrices(model) if weight.requires_grad)
    if config.lora is not None:
        matrices, count = (
            0,
            max(1, len(config.policies)),
        )  # every one is computed for all tokens, frozen copies too
        num_trained = count - sum(policy.copies is not None for policy in config.policies.values())
        for name in adapter_targets(model, config.lora):
            shape, part = model.get_submodule(name).weight.shape, part_of(f"{name}.weight")
            size = config.lora.rank * sum(shape) + (shape[0] if config.lora.dora else 0)
            trained[part] += num_trained * size
            adapters += count * size
            rounded.append(prod(shape) if rounds_base(config) else 0)
            matrices += num_trained * config.lora.rank * sum(shape)
            outputs[part] += count * shape[0]
    found = trained_config(found)
    text, vision = found.get_text_config(), found.vision_config
    merge = (
        getattr(vision, "spatial_merge_size", None)
        or getattr(found, "spatial_merge_size", None)
        or getattr(vision, "pooling_kernel_size", None)
    )
    return ModelShape(
        params=dict(params),
        trained=dict(trained),
        adapters=adapters,
        adapted_outputs=dict(outputs),
        language=_stack(model, "language_layers", text),
        vision=_stack(model, "vision_tower", vision),
        vocab=text.vocab_size,
        patch=_side(vision.patch_size),
        patches_per_token=merge**2 if merge else _shuffled(found),
        weight_bytes=BYTES[config.model.dtype],
        num_tensors=sum(1 for _ in model.parameters()),
        num_matrix_weights=matrices,
        num_rounded=sum(rounded),
        largest_rounded=max(rounded),
        caps_logits=getattr(text, "final_logit_softcapping", None) is not None,
    )


def _stack(model: Any, part: str, config: Any) -> Stack:
    """The longest list of layers of a part, and the widths that its config has under several names.

    Of layers that differ (Gemma 4's) it has the mean.
    """
    from torch import nn

    from vlrl.model.attention import layer_configs
    from vlrl.model.parts import part_of

    lists = [
        layers
        for name, layers in model.named_modules()
        if isinstance(layers, nn.ModuleList) and part_of(f"{name}.0") == part
    ]
    layers = max(lists, key=len)
    # Qwen2-VL's tower calls its own width embed_dim; its hidden_size is the language model's.
    hidden = int(getattr(config, "embed_dim", None) or config.hidden_size)
    heads = int(getattr(config, "num_attention_heads", None) or config.num_heads)
    kinds = layer_configs(config)
    width = sum(int(getattr(kind, "head_dim", None) or hidden // heads) for kind in kinds) // len(kinds)
    key_heads = sum(int(getattr(kind, "num_key_value_heads", None) or heads) for kind in kinds) // len(kinds)
    experts = int(getattr(config, "num_experts_per_tok", None) or 0)
    if experts:
        expert = int(config.moe_intermediate_size)
        shared = getattr(config, "shared_expert_intermediate_size", None)
        inner = experts * expert + int(shared or expert * getattr(config, "n_shared_experts", 0))
    else:
        inner = int(getattr(config, "intermediate_size", None) or config.mlp_ratio * hidden)
        if getattr(config, "use_double_wide_mlp", False):  # where keys and values are another layer's
            inner += inner * config.num_kv_shared_layers // len(layers)
    names = [name for name, _ in layers[0].named_modules()]
    gated = any(name.endswith(("gate_proj", "gate_up_proj", "experts")) for name in names)
    return Stack(
        num_layers=len(layers),
        hidden=hidden,
        heads=width * heads,
        key_heads=width * key_heads,
        inner=inner,
        num_gates=3 if gated else 2,
        largest_layer=max(sum(p.numel() for p in layer.parameters()) for layer in layers),
        norms_heads=any(name.endswith(".q_norm") for name in names),
        num_heads=heads,
        num_key_heads=key_heads,
        recurrence=_recurrence(config),
        num_norms=max(2, sum(name.endswith(("layernorm", "layer_input_norm")) for name in names)),
        num_experts=experts,
    )


def _recurrence(config: Any) -> Recurrence | None:
    if (kinds := getattr(config, "layer_types", None)) is None or RECURRENT not in kinds:
        return None
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    key, value = config.linear_key_head_dim, config.linear_value_head_dim
    return Recurrence(kinds.count(RECURRENT), 2 * keys * key + values * value, values, key, value)


def _side(size: Any) -> int:
    return int(size[0] if isinstance(size, list | tuple) else size)


def _shuffled(config: Any) -> int:
    """Patches a token where neighbours are folded: InternVL's share, SmolVLM's factor, MiniCPM-V's "16x"."""
    if mode := getattr(config, "downsample_mode", None):
        return int(mode.removesuffix("x"))
    share, factor = getattr(config, "downsample_ratio", None), getattr(config, "scale_factor", None)
    if share:
        return int(1 / share**2 + 0.5)
    return int(factor or 1) * int(factor or 1)
