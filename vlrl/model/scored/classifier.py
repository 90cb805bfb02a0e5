"""A vision-language model with a linear head on the last token: transformers' classifier of a family.

transformers has a classifier for text models only. This file makes one of any vision-language family, and
stands alone: a copy lies in the folder of every reward model, so that
`AutoModelForSequenceClassification.from_pretrained(folder, trust_remote_code=True)` loads it without vlrl.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import transformers
from transformers.conversion_mapping import (
    get_checkpoint_conversion_mapping,
    register_checkpoint_conversion_mapping,
)
from transformers.core_model_loading import WeightRenaming
from transformers.modeling_layers import GenericForSequenceClassification

GENERATES, CLASSIFIES = "ForConditionalGeneration", "ForSequenceClassification"
HEAD = r"^language_model\.score\."
"""Where the head's weight is in a file: vLLM gives the head to the language model inside the whole one."""


def classifier_class(generator_class: type[Any]) -> type[Any]:
    """The classifier beside a family's generating model: Qwen2_5_VLForSequenceClassification and so on.

    Its backbone is the same by name, and so are the conversions between files and parameters.
    """
    return _classifier_class(generator_class)


@lru_cache
def _classifier_class(generator_class: type[Any]) -> type[Any]:
    name = generator_class.__name__.removesuffix(GENERATES) + CLASSIFIES
    base = next(c for c in generator_class.__mro__ if c.__name__.endswith("PreTrainedModel"))
    made = type(
        name,
        (GenericForSequenceClassification, base),
        {"__module__": __name__, "_keys_to_ignore_on_load_unexpected": [r"(^|\.)lm_head\."]},
    )
    own = get_checkpoint_conversion_mapping(generator_class.__name__)
    if own is None:
        own = get_checkpoint_conversion_mapping(made.config_class.model_type) or []
    head = head_renaming(made.config_class.model_type)
    register_checkpoint_conversion_mapping(name, [head, *own], overwrite=True)
    return made


def head_renaming(model_type: str) -> WeightRenaming:
    """The head's name in a file to its name in the model."""
    return WeightRenaming(source_patterns=HEAD, target_patterns="score.")


def __getattr__(name: str) -> Any:
    """A classifier by its name, as a config's auto_map asks for it."""
    generator = name.removesuffix(CLASSIFIES) + GENERATES
    if not name.endswith(CLASSIFIES) or not hasattr(transformers, generator):
        raise AttributeError(name)
    return classifier_class(getattr(transformers, generator))
