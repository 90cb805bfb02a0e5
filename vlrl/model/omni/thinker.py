"""The thinker of a Qwen-Omni model: what sees, hears and writes, trained without what speaks.

A published folder has thinker, talker and vocoder under one config. transformers loads the thinker alone from
it, and vLLM serves the thinker alone; what is saved is such a folder again, without the other two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

PREFIX = "thinker."
"""Of the thinker's weights in a published folder."""
THINKERS: Mapping[str, str] = {"qwen2_5_omni": "Qwen2_5OmniThinkerForConditionalGeneration"}
"""Type of a whole model → transformers' class of its thinker."""


def model_class(config: Any) -> Any:
    """Transformers' class that is trained of a model with this config: the auto class, or a thinker's."""
    import transformers

    return getattr(transformers, THINKERS.get(config.model_type, "AutoModelForImageTextToText"))


def trained_config(config: Any) -> Any:
    """The config of what is trained: a thinker's own in place of the whole model's."""
    return config.thinker_config if config.model_type in THINKERS else config


def is_thinker(model: Any) -> bool:
    """Whether a model of transformers is a thinker."""
    return type(model).__name__ in THINKERS.values()


def core_of(model: Any) -> Any:
    """What is called with tokens and features and answers with hidden states."""
    return _ThinkerCore(model) if is_thinker(model) else model.model


class _ThinkerCore:
    """A thinker, called as the inner models of other families: its own forward computes all logits."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.config = model.config
        self.get_image_features, self.get_audio_features = model.get_image_features, model.get_audio_features
        self.get_rope_index = model.get_rope_index

    def forward(
        self, input_ids: Tensor, mm_encoder_outputs: Mapping[str, Any] | None = None, **inputs: Any
    ) -> Any:
        """Hidden states; features of all media stand in the places of image tokens, in their order."""
        embeds: Tensor = self._model.get_input_embeddings()(input_ids)
        if mm_encoder_outputs:
            features = torch.cat(tuple(mm_encoder_outputs["image"].pooler_output)).to(embeds.dtype)
            places = input_ids == self.config.image_token_id
            embeds = embeds.masked_scatter(places[..., None].expand_as(embeds), features)
        return self._model.model(inputs_embeds=embeds, **inputs)

    __call__ = forward


def save_thinker(model: Any, path: str, state: Mapping[str, Tensor]) -> None:
    """Write a thinker as a whole model without a talker, which transformers and vLLM load as they do others.

    Args:
        model: the thinker.
        path: of the folder.
        state: its whole weights.
    """
    from transformers import CONFIG_MAPPING

    model.save_pretrained(path, state_dict={f"{PREFIX}{name}": tensor for name, tensor in state.items()})
    [whole] = [kind for kind, name in THINKERS.items() if name == type(model).__name__]
    config = CONFIG_MAPPING[whole](
        thinker_config=model.config.to_dict(), enable_audio_output=False, dtype=model.config.dtype
    )
    config.architectures = [type(model).__name__.replace("Thinker", "")]
    config.save_pretrained(path)
