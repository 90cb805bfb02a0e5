"""A vision-language model with a linear head on the last token: transformers' classifier of a family.

transformers has a classifier for text models only. This file makes one of any vision-language family, and
stands alone: a copy lies in the folder of every reward model, so that
`AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)` loads it without vlrl.
"""

from __future__ import annotations

from typing import Any

import transformers
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)
from transformers.core_model_loading import WeightRenaming
from transformers.modeling_layers import GenericForSequenceClassification

GENERATES, CLASSIFIES = "ForConditionalGeneration", "ForSequenceClassification"
HEADS_OUTSIDE = ("qwen3_vl", "qwen3_vl_moe", "smolvlm")
"""Families whose head is beside the language model in vLLM, and in a file; else it is inside."""

_MADE: dict[str, type[Any]] = {}


def classifier_class(generator_class: type[Any]) -> type[Any]:
    """The classifier beside a family's generating model: Qwen2_5_VLForSequenceClassification and so on.

    Its backbone is the same by name, and so are the conversions between files and parameters.
    """
    name = generator_class.__name__.removesuffix(GENERATES) + CLASSIFIES
    if name in _MADE:
        return _MADE[name]
    base: Any = next(c for c in generator_class.__mro__ if c.__name__.endswith("PreTrainedModel"))
    made = type(
        name,
        (GenericForSequenceClassification, base),
        {"__module__": __name__, "_keys_to_ignore_on_load_unexpected": [r"(^|\.)lm_head\."]},
    )
    own = get_checkpoint_conversion_mapping(generator_class.__name__)
    model_type = base.config_class.model_type
    if own is None:
        own = get_checkpoint_conversion_mapping(model_type) or []
    register_checkpoint_conversion_mapping(name, [*head_renaming(model_type), *own], overwrite=True)
    return _MADE.setdefault(name, made)


def head_renaming(model_type: str) -> list[WeightRenaming]:
    """The change of the head's name from a file to the model; none where they are the same."""
    if model_type in HEADS_OUTSIDE:
        return []
    inside = r"^language_model\.score\.weight"
    return [WeightRenaming(source_patterns=inside, target_patterns="score.weight")]


def __getattr__(name: str) -> Any:
    """A classifier by its name, as a config's auto_map asks for it."""
    generator = name.removesuffix(CLASSIFIES) + GENERATES
    if not name.endswith(CLASSIFIES) or not hasattr(transformers, generator):
        raise AttributeError(name)
    return classifier_class(getattr(transformers, generator))
