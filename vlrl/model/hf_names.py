"""Published weights against transformers' parameters: names and shapes differ in some families.

transformers converts when it loads a model. Engines are written for the published files, so what leaves a
trainer, into an engine or into a folder, is converted back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from vlrl.model.omni.thinker import PREFIX


@dataclass(frozen=True, slots=True)
class PublishedLayout:
    """How the weights that an engine reads differ from transformers' parameters."""

    transposed_experts: bool
    """Fused experts lie [num_experts, in, out] instead of [num_experts, out, in] (Qwen3-VL-MoE)."""
    nested_tower: bool
    """The tower's names go through one more module, `vision_model` (SigLIP towers)."""
    prefix: str = ""
    """Before every name: the thinker's in a Qwen-Omni model."""

    @classmethod
    def read_by(cls, model: Any) -> PublishedLayout:
        """The layout that vLLM's `model` reads."""
        return cls(
            any(getattr(m, "is_fused_checkpoint_transposed", False) for m in model.modules()),
            any(name.startswith("vision_tower.vision_model.") for name, _ in model.named_parameters()),
            prefix_of(model),
        )

    def of(self, name: str, tensor: Tensor) -> tuple[str, Tensor]:
        """The published name and tensor of a parameter of transformers'."""
        if self.transposed_experts and ".mlp.experts." in name:
            tensor = tensor.transpose(1, 2).contiguous()
        return self.name_of(name), tensor

    def name_of(self, name: str) -> str:
        """The published name of a parameter or module of transformers'."""
        if self.nested_tower:
            name = name.replace("vision_tower.", "vision_tower.vision_model.", 1)
        return self.prefix + name


def prefix_of(model: Any) -> str:
    """What all names of vLLM's model, or class of one, begin with in published files: a thinker's, or ""."""
    renames = getattr(getattr(model, "hf_to_vllm_mapper", None), "orig_to_new_prefix", None) or ()
    return PREFIX if PREFIX in renames else ""


def save_as_published(model: Any) -> None:
    """Make `save_pretrained` of a transformers model undo every conversion that loading does.

    Left alone it leaves out a name's prefix for a model that was not loaded from a folder, and for any model
    a transposition: the shape fits already, so it is taken for done. vLLM can read neither.
    """
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.core_model_loading import Transpose

    conversions = getattr(model, "_weight_conversions", None)
    if conversions is None:
        conversions = list(get_model_conversion_mapping(model, add_legacy=False))
    for operation in (o for c in conversions for o in getattr(c, "operations", ())):
        if isinstance(operation, Transpose):
            operation.check_dims = False
    model._weight_conversions = conversions
