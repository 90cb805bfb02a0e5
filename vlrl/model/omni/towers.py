"""What the towers of a model make of a micro-batch's images, videos and audios, in the media's own order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

PLACES, NUM_TOKENS = "audio_places", "audio_num_tokens"
AUDIO = (PLACES, NUM_TOKENS, "input_features", "feature_attention_mask", "input_features_mask")
"""What a processor's `pixels` adds to the vision tower's arrays where there is an audio: which of the media
it is (-1: silence, which stands in no prompt), its number of tokens, what `get_audio_features` takes."""


def media_features(core: Any, inputs: Mapping[str, Tensor], num_media: int) -> Any:
    """The vision tower's output; with audios, pieces of all media in their order.

    The audio tower is frozen: it runs without gradient. Where there is nothing to see, the vision tower has
    run on a blank image, which is kept as `blank`: ZeRO-3 must find it in the loss.

    Args:
        core: see `vlrl.model.omni.thinker.core_of`.
        inputs: what the processor's `pixels` returns.
        num_media: that the inputs are of, without blank ones.
    """
    seen = core.get_image_features(
        **{name: tensor for name, tensor in inputs.items() if name not in AUDIO}, return_dict=True
    )
    if PLACES not in inputs:
        return seen
    with torch.no_grad():
        heard = _audio_features(core, inputs)
    pieces = {place: piece for place, piece in zip(inputs[PLACES].tolist(), heard, strict=True) if place >= 0}
    if len(pieces) == num_media:
        return SimpleNamespace(pooler_output=tuple(pieces[n] for n in range(num_media)), blank=seen)
    images = iter(seen.pooler_output)
    joined = tuple(pieces[n] if n in pieces else next(images) for n in range(num_media))
    return SimpleNamespace(pooler_output=joined)


def _audio_features(core: Any, inputs: Mapping[str, Tensor]) -> Sequence[Tensor]:
    """Features [num_tokens, hidden_size] of each audio."""
    given = {name: inputs[name] for name in AUDIO if name in inputs and name not in (PLACES, NUM_TOKENS)}
    output = core.get_audio_features(**given, return_dict=True)
    if getattr(output, "attention_mask", None) is not None:  # Gemma 4's, padded to the longest
        rows = zip(output.pooler_output, output.attention_mask, strict=True)
        return [row[mask.bool()] for row, mask in rows]
    return torch.split(output.last_hidden_state, inputs[NUM_TOKENS].tolist())
