"""vLLM's own LoRA: engines keep the starting weights and are sent adapters alone (lora.sync=adapter).

Every request carries its policy's adapter under a fixed id, from the first on: an adapter of zeros until a
version arrives. So requests that run when one arrives go on under it (law 6), as they do with merged weights.
vLLM tells the prefixes of different adapters apart by their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import torch

from vlrl.config.memory import LoraConfig
from vlrl.engine.cpu.lora_products import use_plain_products
from vlrl.errors import ConfigError, EngineError
from vlrl.model.hf_names import PublishedLayout, prefix_of
from vlrl.model.parts import VISION_PARTS, part_of
from vlrl.model.recurrent.layers import has_state

FIRST_ID = 1
"""Of the adapters: vLLM counts from 1."""
ONE_POLICY = ("trained",)
"""Name of the adapter where there are no policies by name."""


def adapter_arguments(
    options: LoraConfig, targets: Sequence[str], arguments: Mapping[str, Any], num_adapters: int = 1
) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs that give the layers named `targets` room for adapters, and no others.

    Args:
        options: rank.
        targets: transformers' names.
        arguments: the others of EngineArgs.
        num_adapters: one a policy.

    Raises:
        ConfigError: if the rank is larger than any that vLLM serves, or it serves none for the model, or none
            for its layers with a state on this device.
    """
    from vllm import EngineArgs
    from vllm.config.lora import MaxLoRARanks
    from vllm.model_executor.model_loader.utils import get_model_cls
    from vllm.model_executor.models import supports_lora

    model_config = EngineArgs(**arguments).create_model_config()
    model_class = get_model_cls(model_config)
    if not supports_lora(model_class):
        require_places(targets, arguments["model"])

    if has_state(model_config.hf_text_config) and not torch.cuda.is_available():
        raise ConfigError(
            "lora.sync=adapter, but vLLM's layers with a state take no adapters on a CPU; set "
            "lora.sync=merged"
        )
    ranks = sorted(get_args(MaxLoRARanks))
    room = next((rank for rank in ranks if rank >= options.rank), None)
    if room is None:
        raise ConfigError(
            f"lora.rank={options.rank}, but vLLM serves adapters of rank {ranks[-1]} at most; set "
            "lora.sync=merged, or a smaller rank"
        )
    return {
        "enable_lora": True,
        "max_loras": num_adapters,
        "max_cpu_loras": num_adapters,
        "max_lora_rank": room,
        # Each layer with room for an adapter multiplies with it, also where it is zero.
        "lora_target_modules": sorted(_names_in(model_class, targets)),
        "enable_tower_connector_lora": any(part_of(f"{name}.weight") in VISION_PARTS for name in targets),
    }


def adapter_requests(policies: Sequence[str]) -> list[Any]:
    """What requests of each policy carry. vLLM wants a path to read an adapter from; it is there already."""
    from vllm.lora.request import LoRARequest

    path = "held in memory, see vlrl/engine/lora.py"
    return [LoRARequest(name, FIRST_ID + number, path) for number, name in enumerate(policies or ONE_POLICY)]


def require_places(missing: Sequence[str], path: str) -> None:
    """Raise ConfigError if layers of the model at `path` have no place for an adapter in the engine."""
    if missing:
        raise ConfigError(
            f"lora.sync=adapter: vLLM gives no adapter to {len(missing)} layers of {path} that lora.targets "
            f"name, such as {missing[0]!r}; set lora.sync=merged, or leave them out of lora.targets"
        )


class AdapterSlots:
    """The adapters of one worker process of an engine, as vLLM holds them.

    Attributes:
        unknown_products: see `use_plain_products`; empty on a GPU, which has kernels of its own.
    """

    def __init__(self, model_runner: Any, layers: Sequence[str], policies: Sequence[str] = ()) -> None:
        """Start with adapters of zeros, which leave the model as it is.

        Args:
            model_runner: vLLM's.
            layers: published names of those that every version brings adapters for.
            policies: that have one each; none is one policy without a name.
        """
        self._layers, self._policies = layers, tuple(policies)
        self._worker, self._manager = model_runner.lora_manager, model_runner.lora_manager._adapter_manager
        self._model = model_runner.get_model()
        self._mapper = _renames(self._model)
        for request in adapter_requests(policies):
            self._worker.add_dummy_lora(request, rank=1)
            self._manager.activate_adapter(request.lora_int_id)
        wrappers = self._manager.punica_wrapper_mapping.values()
        on_cpu = model_runner.device.type == "cpu"
        self.unknown_products = use_plain_products(wrappers) if on_cpu else ""

    def without_place(self) -> list[str]:
        """The layers that have no place for an adapter in this model, or are called past it."""
        packed, past = self._manager.packed_modules, called_past(self._model, self._manager.modules)
        places = {p for name in self._manager.modules if name not in past for p in packed.get(name, [name])}
        return [layer for layer in self._layers if _name_here(layer, self._mapper) not in places]

    def load(self, tensors: Mapping[str, torch.Tensor], options: LoraConfig) -> None:
        """Replace every adapter, whole.

        Args:
            tensors: A [rank, in] and B [out, rank] of every layer, by "LAYER.lora_A.weight" and "…lora_B.…",
                of several policies by "LAYER.lora_A.POLICY.weight"; not kept.
            options: their rank and scale.

        Raises:
            EngineError: if it is not one adapter of each policy for each of the layers.
        """
        policies = [f".{name}" for name in self._policies] or [""]
        names = [
            {
                f"{layer}.lora_{half}{policy}.weight": f"{layer}.lora_{half}.weight"
                for layer in self._layers
                for half in "AB"
            }
            for policy in policies
        ]
        if strange := sorted(set().union(*names) ^ tensors.keys()):
            raise EngineError(
                f"{len(strange)} weights of the adapters that arrived are missing or of others, such as "
                f"{strange[0]!r}; trainer and engine must have the same model.path, lora.targets and policies"
            )
        for number, of_policy in enumerate(names):
            own = {here: tensors[name] for name, here in of_policy.items()}
            self._replace(FIRST_ID + number, own, options)

    def _replace(self, adapter_id: int, tensors: Mapping[str, torch.Tensor], options: LoraConfig) -> None:
        from vllm.lora.lora_model import LoRAModel
        from vllm.lora.peft_helper import PEFTHelper

        made = LoRAModel.from_lora_tensors(
            adapter_id,
            # Copies: vLLM multiplies B with the scale in place, and these may be views of shared memory.
            {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()},
            PEFTHelper(
                r=options.rank,
                lora_alpha=options.alpha,
                use_rslora=options.rslora,
                target_modules=list(self._layers),
            ),
            device="cpu",
            dtype=self._worker.lora_config.lora_dtype,
            weights_mapper=self._mapper,
        )
        # Removed first, so that it comes back to the slot that running requests are computed with.
        self._manager.remove_adapter(adapter_id)
        self._manager.add_adapter(made)
        self._manager.activate_adapter(adapter_id)


def called_past(model: Any, wrappers: Mapping[str, Any]) -> set[str]:
    """Names of wrapped layers that another module of the model holds, and calls, without their adapter.

    vLLM wraps a layer where it finds it first; Gemma 4's per_layer_model_projection is held twice.
    """
    names = {id(wrapper.base_layer): name for name, wrapper in wrappers.items()}
    own = {id(wrapper) for wrapper in wrappers.values()}
    others = (module for module in model.modules() if id(module) not in own)
    return {names[id(child)] for other in others for child in other.children() if id(child) in names}


def _names_in(model_class: Any, targets: Iterable[str]) -> Iterator[str]:
    """What target layers may be called in vLLM's model, alone or packed with others into one.

    Whole names, since vLLM takes the last part of one for the name of convolutions as well.
    """
    mapper, prefix = _renames(model_class), prefix_of(model_class)
    layouts = [PublishedLayout(False, nested, prefix) for nested in (False, True)]
    for published in {layout.name_of(name) for name in targets for layout in layouts}:
        name = _name_here(published, mapper)
        yield name
        path, _, last = name.rpartition(".")
        for packed, parts in model_class.packed_modules_mapping.items():
            if last in parts:
                yield f"{path}.{packed}"


def _renames(model: Any) -> Any:
    """How vLLM renames layers of a model or class of its; None if it does not."""
    mapper = getattr(model, "hf_to_vllm_mapper", None)
    return None if mapper is None else mapper.get_rename_mapper()


def _name_here(published: str, renames: Any) -> str:
    """Name of a layer in vLLM's model before it was packed with others."""
    from vllm.lora.utils import parse_fine_tuned_lora_name

    return str(parse_fine_tuned_lora_name(f"{published}.lora_A.weight", renames)[0])
