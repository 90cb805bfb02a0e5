"""vLLM's own LoRA: engines keep the starting weights and are sent adapters alone (lora.sync=adapter).

Every request carries the one adapter under a fixed id, from the first on: an adapter of zeros until a version
arrives. So requests that run when one arrives go on under it (law 6), as they do with merged weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args

import torch

from vlrl.config.memory import LoraConfig
from vlrl.engine.lora_cpu import use_plain_products
from vlrl.errors import ConfigError, EngineError
from vlrl.model.hf_names import PublishedLayout
from vlrl.model.parts import VISION_PARTS, part_of

ADAPTER_ID = 1
"""vLLM counts from 1."""


def adapter_arguments(
    options: LoraConfig, targets: Sequence[str], arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments of vLLM's EngineArgs that give the layers named `targets` room for one adapter, and no other.

    Args:
        options: rank.
        targets: transformers' names.
        arguments: the others of EngineArgs.

    Raises:
        ConfigError: if the rank is larger than any that vLLM serves, or it serves none for the model.
    """
    from vllm import EngineArgs
    from vllm.config.lora import MaxLoRARanks
    from vllm.model_executor.model_loader.utils import get_model_cls
    from vllm.model_executor.models import supports_lora

    model_class = get_model_cls(EngineArgs(**arguments).create_model_config())
    if not supports_lora(model_class):
        require_places(targets, arguments["model"])

    ranks = sorted(get_args(MaxLoRARanks))
    room = next((rank for rank in ranks if rank >= options.rank), None)
    if room is None:
        raise ConfigError(
            f"lora.rank={options.rank}, but vLLM serves adapters of rank {ranks[-1]} at most; set "
            "lora.sync=merged, or a smaller rank"
        )
    return {
        "enable_lora": True,
        "max_loras": 1,
        "max_cpu_loras": 1,
        "max_lora_rank": room,
        # Each layer with room for an adapter multiplies with it, also where it is zero.
        "lora_target_modules": sorted(_names_in(model_class, targets)),
        "enable_tower_connector_lora": any(part_of(f"{name}.weight") in VISION_PARTS for name in targets),
    }


def adapter_request() -> Any:
    """What a request carries. vLLM wants a path to read the adapter from; it is there already."""
    from vllm.lora.request import LoRARequest

    return LoRARequest("trained", ADAPTER_ID, "held in memory, see vlrl/engine/lora.py")


def require_places(missing: Sequence[str], path: str) -> None:
    """Raise ConfigError if layers of the model at `path` have no place for an adapter in the engine."""
    if missing:
        raise ConfigError(
            f"lora.sync=adapter: vLLM gives no adapter to {len(missing)} layers of {path} that lora.targets "
            f"name, such as {missing[0]!r}; set lora.sync=merged, or leave them out of lora.targets"
        )


class AdapterSlot:
    """The adapter of one worker process of an engine, as vLLM holds it.

    Attributes:
        unknown_products: see `use_plain_products`; empty on a GPU, which has kernels of its own.
    """

    def __init__(self, model_runner: Any, layers: Sequence[str]) -> None:
        """Start with an adapter of zeros, which leaves the model as it is.

        Args:
            model_runner: vLLM's.
            layers: published names of those that every version brings an adapter for.
        """
        self._layers = layers
        self._worker, self._manager = model_runner.lora_manager, model_runner.lora_manager._adapter_manager
        self._mapper = _renames(model_runner.get_model())
        self._worker.add_dummy_lora(adapter_request(), rank=1)
        self._manager.activate_adapter(ADAPTER_ID)
        wrappers = self._manager.punica_wrapper_mapping.values()
        on_cpu = model_runner.device.type == "cpu"
        self.unknown_products = use_plain_products(wrappers) if on_cpu else ""

    def without_place(self) -> list[str]:
        """The layers that have no place for an adapter in this model."""
        packed = self._manager.packed_modules
        places = {p for name in self._manager.modules for p in packed.get(name, [name])}
        return [layer for layer in self._layers if _name_here(layer, self._mapper) not in places]

    def load(self, tensors: Mapping[str, torch.Tensor], options: LoraConfig) -> None:
        """Replace the adapter, whole.

        Args:
            tensors: A [rank, in] and B [out, rank] of every layer, by "LAYER.lora_A.weight" and "…lora_B.…";
                not kept.
            options: their rank, and alpha.

        Raises:
            EngineError: if it is not one adapter for each of the layers.
        """
        from vllm.lora.lora_model import LoRAModel
        from vllm.lora.peft_helper import PEFTHelper

        wanted = {f"{layer}.lora_{half}.weight" for layer in self._layers for half in "AB"}
        if strange := sorted(wanted ^ tensors.keys()):
            raise EngineError(
                f"{len(strange)} weights of the adapter that arrived are missing or of other layers, such as "
                f"{strange[0]!r}; trainer and engine must have the same model.path and lora.targets"
            )
        made = LoRAModel.from_lora_tensors(
            ADAPTER_ID,
            # Copies: vLLM multiplies B with alpha / rank in place, and these may be views of shared memory.
            {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()},
            PEFTHelper(r=options.rank, lora_alpha=options.alpha, target_modules=list(self._layers)),
            device="cpu",
            dtype=self._worker.lora_config.lora_dtype,
            weights_mapper=self._mapper,
        )
        self._manager.remove_adapter(ADAPTER_ID)
        self._manager.add_adapter(made)
        self._manager.activate_adapter(ADAPTER_ID)


def _names_in(model_class: Any, targets: Iterable[str]) -> Iterator[str]:
    """What target layers may be called in vLLM's model, alone or packed with others into one.

    Whole names, since vLLM takes the last part of one for the name of convolutions as well.
    """
    mapper, layouts = _renames(model_class), [PublishedLayout(False, nested) for nested in (False, True)]
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
