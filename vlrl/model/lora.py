"""Low-rank adapters (LoRA, arXiv 2106.09685) by peft: trained alone; merged, or as they are, for the engine.

W' = W + alpha/rank · B·A (Eq. 3, scaled as in §4.1), or with lora.rslora alpha/√rank (rsLoRA, arXiv
2312.03732, Eq. 4), and with lora.dora (DoRA, arXiv 2402.09353, Eq. 5) each row of it made as long as a
trained magnitude. The saved model gets W', the engine W' too or A and B alone (lora.sync), see
`vlrl.model.adapters`. The model with its adapters off is the starting one, which makes a second copy as the
KL term's reference needless.

Several policies are several adapters on the one model, all active, each on the tokens of its own policy
(`vlrl.model.policies.masks`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vlrl.config import Config
from vlrl.config.learning.policies import PolicyConfig
from vlrl.config.memory import LoraConfig
from vlrl.errors import ConfigError
from vlrl.model.adapters.nf4 import whole_shape
from vlrl.model.parts import VISION_PARTS, matches, part_of, present
from vlrl.model.scored.files import is_scored
from vlrl.seeds import derive_seed

ADAPTER = "default"
"""Name of the one adapter where there are no policies by name."""
BASE_INFIX = ".base_layer."
"""What names of an adapted layer's own weights have in addition."""
MAGNITUDE = ".lora_magnitude_vector.weight"


def add_adapters(
    model: Any, options: LoraConfig, seed: int, policies: Mapping[str, PolicyConfig] | None = None
) -> None:
    """Put adapters beside the linear layers that options.targets name; nothing else is trained but a score.

    Their random half is sampled from `seed`, the same on every rank; the other half is zero, so that the
    model starts as it was.

    Args:
        model: of transformers.
        options: rank, scale and layers.
        seed: the run's.
        policies: that get an adapter each, from seeds of their own; those that copy another are frozen.

    Raises:
        ConfigError: if peft is not installed, or the targets name no linear layer, or for several policies
            one of the vision tower or projector.
    """
    try:
        from peft import LoraConfig as PeftConfig
        from peft import inject_adapter_in_model
    except ImportError as error:
        raise ConfigError("lora needs peft: pip install 'vlrl[lora]', or remove the section") from error
    targets = adapter_targets(model, options)
    config = PeftConfig(
        r=options.rank,
        lora_alpha=options.alpha,
        use_rslora=options.rslora,
        use_dora=options.dora,
        target_modules=targets,
        bias="none",
    )
    seeds = {name: derive_seed(seed, "policy", name) for name in policies or ()} or {ADAPTER: seed}
    for name, own in seeds.items():
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings(), _gathering(options.dora):
            warnings.filterwarnings(
                "ignore", "Already found a `peft_config` attribute"
            )  # of the policy before
            torch.manual_seed(own)
            inject_adapter_in_model(config, model, adapter_name=name)
    if policies:
        _activate_all(model, targets, policies)
    if is_scored(model):
        model.score.weight.requires_grad_(True)  # a new head has nothing to adapt
    model.vlrl_peft_config = config


@contextmanager
def _gathering(needed: bool) -> Iterator[None]:
    """Let peft gather each layer's split weight while it measures the rows that DoRA's magnitudes begin at.

    peft asks transformers whether there is ZeRO-3, which knows of it only as long as such an object lives.
    """
    from transformers.integrations import HfDeepSpeedConfig

    told = HfDeepSpeedConfig({"zero_optimization": {"stage": 3}}) if needed else None
    yield
    del told


def _activate_all(model: Any, targets: Sequence[str], policies: Mapping[str, PolicyConfig]) -> None:
    """Let all policies' adapters act, and be trained but for copies; peft leaves only the last one active."""
    if vision := [name for name in targets if part_of(f"{name}.weight") in VISION_PARTS]:
        raise ConfigError(
            f"lora.targets name {vision[0]!r}, of the vision tower or projector, with policies="
            f"{', '.join(policies)}: an image's features are computed once for all policies; leave it out"
        )
    for layer in adapted_layers(model).values():
        layer.set_adapter(list(policies))
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            parameter.requires_grad_(policies[policy_of(name)].copies is None)
    model.vlrl_policies = tuple(policies)


def policy_of(name: str) -> str:
    """The adapter of a weight by peft's name: MODULE.lora_A.POLICY.weight."""
    return name.rsplit(".", 2)[1]


def sent_alone(config: Config) -> LoraConfig | None:
    """The options of adapters that engines are sent without the rest of the model; None if they are not."""
    return config.lora if config.lora is not None and config.lora.sync == "adapter" else None


def adapter_targets(model: nn.Module, options: LoraConfig) -> list[str]:
    """Names of the linear layers that get an adapter.

    Raises:
        ConfigError: if there are none.
    """
    layers = _linear_layers(model)
    targets = [name for name in layers if any(matches(f"{name}.weight", p) for p in options.targets)]
    if not targets:
        raise ConfigError(
            f"lora.targets={options.targets} name no linear layer; parts are "
            f"{present(f'{n}.weight' for n in layers)}, and patterns match whole names such as "
            f"'{layers[0]}.weight'"
        )
    return targets


@contextmanager
def adapters_off(model: nn.Module) -> Iterator[None]:
    """The starting model, for the length of a block; peft's own switch would also stop the training."""
    layers = list(adapted_layers(model).values())
    try:
        for layer in layers:
            layer._disable_adapters = True
        yield
    finally:
        for layer in layers:
            layer._disable_adapters = False


def base_name(name: str) -> str | None:
    """A parameter's name in the model without adapters; None of what belongs to these or to 4-bit weights."""
    return None if ".lora_" in name or name.endswith(f"{BASE_INFIX}scales") else name.replace(BASE_INFIX, ".")


def adapter_state(model: nn.Module) -> dict[str, Tensor]:
    """The adapters' whole weights on the host, by peft's names; every rank of ZeRO-3 must call it."""
    import deepspeed

    named = dict(_own_parameters(model))
    if not named:
        return {}
    with deepspeed.zero.GatheredParameters(list(named.values())):
        return {name: p.detach().cpu().clone() for name, p in named.items()}


def layout_of(model: nn.Module, *, of_adapters: bool) -> list[tuple[str, str, tuple[int, ...]]]:
    """(name, dtype, whole shape) of a model partitioned by ZeRO-3.

    Args:
        model: with adapters or without.
        of_adapters: their weights, by peft's names; else all parameters but these, by their names without
            adapters, and then the persistent buffers.
    """
    named: Iterable[tuple[str, Any]] = model.named_parameters()
    if of_adapters:
        chosen = _own_parameters(model)
    else:
        chosen = [(name, p) for name, p in ((base_name(n), p) for n, p in named) if name is not None]
    found = [(name, p.dtype, whole_shape(p)) for name, p in chosen]
    if not of_adapters:
        found += [(name, buffer.dtype, buffer.shape) for name, buffer in persistent_buffers(model)]
    return [(name, str(dtype).removeprefix("torch."), tuple(shape)) for name, dtype, shape in found]


def persistent_buffers(model: nn.Module) -> list[tuple[str, Tensor]]:
    """(name without adapters, tensor) of each buffer that a model's file has, such as a router's correction.

    ZeRO-3 leaves them whole, and equal, on every rank.
    """
    in_file = model.state_dict().keys()
    named = ((base_name(name), buffer) for name, buffer in model.named_buffers() if name in in_file)
    return [(name, buffer) for name, buffer in named if name is not None]


def adapter_shards(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """(name by peft, this rank's flat slice) of every adapter's weight, in the order of `layout_of`."""
    for name, parameter in _own_parameters(model):
        yield name, slice_of(parameter)


def slice_of(parameter: Any) -> torch.Tensor:
    """This rank's flat slice of a parameter that ZeRO-3 has split, read from the disk if it lies there."""
    from deepspeed.runtime.swap_tensor.partitioned_param_swapper import PartitionedParamStatus

    if parameter.ds_tensor.status != PartitionedParamStatus.NOT_AVAILABLE:
        found: torch.Tensor = parameter.ds_tensor.detach()
        return found
    swapper = parameter.nvme_swapper
    swapper.swap_in([parameter], async_op=False)
    copy: torch.Tensor = parameter.ds_tensor.detach().clone()
    swapper.remove_partition_and_release_buffers([parameter])
    return copy


def save_adapters(model: Any, adapters: Mapping[str, Tensor], folder: Path) -> None:
    """Write adapter_config.json and adapter_model.safetensors, which peft and vLLM read.

    Of several policies there is a folder each, by their names.
    """
    policies = getattr(model, "vlrl_policies", ())
    for policy in policies:
        own = {n.replace(f".{policy}.", "."): t for n, t in adapters.items() if policy_of(n) == policy}
        _save_adapter(model, own, folder / policy)
    if not policies:
        _save_adapter(model, adapters, folder)


def _save_adapter(model: Any, adapters: Mapping[str, Tensor], folder: Path) -> None:
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    model.vlrl_peft_config.save_pretrained(folder)
    # In peft's files a magnitude is called as its module.
    named = {n.removesuffix(".weight") if n.endswith(MAGNITUDE) else n: t for n, t in adapters.items()}
    state = {f"base_model.model.{name}": tensor.contiguous() for name, tensor in named.items()}
    save_file(state, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def _linear_layers(model: nn.Module) -> list[str]:
    """Every linear layer but the head, which is called otherwise (`vlrl.model.logprobs`)."""
    linear = [n for n, m in model.named_modules() if isinstance(m, nn.Linear)]
    return [name for name in linear if part_of(f"{name}.") != "head"]


def _own_parameters(model: nn.Module) -> list[tuple[str, Any]]:
    """The adapters' weights by peft's names: MODULE.lora_A.weight [rank, in], MODULE.lora_B.weight.

    With DoRA also MODULE.lora_magnitude_vector.weight [out]. Of several policies:
    MODULE.lora_A.POLICY.weight.
    """
    return [(n.replace(f".{ADAPTER}.", "."), p) for n, p in model.named_parameters() if ".lora_" in n]


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """Layers that have an adapter, by name."""
    return {name: m for name, m in model.named_modules() if hasattr(m, "lora_A") and hasattr(m, "base_layer")}
