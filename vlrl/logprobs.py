"""The trainer's forward pass: a micro-batch of prefix trees to one logprob per trained token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from vlrl.types import MicroBatch


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """A MicroBatch's arrays as tensors on the training device; shapes as in `vlrl.types.MicroBatch`."""

    input_ids: Tensor
    position_ids: Tensor
    branch_ids: Tensor
    pixel_values: Tensor
    image_grid_thw: Tensor
    source_index: Tensor
    target_ids: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    weights: Tensor

    @classmethod
    def of(cls, batch: MicroBatch, device: torch.device) -> DeviceBatch:
        """Move a micro-batch to a device."""
        # Copied: arrays that came through Ray are read-only memory shared with other processes.
        return cls(*(torch.tensor(getattr(batch, f.name), device=device) for f in fields(cls)))


class TreeLogprobs(nn.Module):
    """Wraps a vision-language model of transformers; `forward` gives logprobs of the trained tokens.

    The distribution is the sampler's: logits divided by the temperature, banned tokens impossible.
    """

    def __init__(self, model: nn.Module, *, temperature: float, banned_token_ids: Sequence[int]) -> None:
        super().__init__()
        self.model: Any = model
        self._temperature = temperature
        self._banned = list(banned_token_ids)

    def forward(self, batch: DeviceBatch) -> tuple[Tensor, Tensor]:
        """Logprobs and entropies of the trained tokens.

        Returns:
            (trainer_logprobs [M] float32 nats, entropy [M] float32 nats without gradient).
        """
        hidden = self._hidden(batch)
        picked = hidden.flatten(0, 1)[batch.source_index]
        logits = self.model.lm_head(picked).float()
        if self._banned:
            logits[:, self._banned] = float("-inf")
        logits = logits / self._temperature
        normalizer = torch.logsumexp(logits, dim=-1)
        target_logits = logits.gather(1, batch.target_ids[:, None]).squeeze(1)
        with torch.no_grad():
            probs = torch.softmax(logits, dim=-1)
            entropy = normalizer - (probs * logits.masked_fill(probs == 0, 0.0)).sum(-1)
        return target_logits - normalizer, entropy

    def _hidden(self, batch: DeviceBatch) -> Tensor:
        """Last hidden states [R, L, hidden_size].

        The tower is called exactly once whether or not the micro-batch has a picture, and always between
        the embedding and the first layer: under ZeRO-3 ranks whose calls differ wait for each other forever.
        """
        core: Any = self.model.model
        embeds = core.get_input_embeddings()(batch.input_ids)
        if len(batch.image_grid_thw):
            features = self._features(batch.pixel_values, batch.image_grid_thw).to(embeds.dtype)
            is_pad = (batch.input_ids == core.config.image_token_id).unsqueeze(-1)
            embeds = embeds.masked_scatter(is_pad, features)
        else:
            embeds = embeds + 0.0 * self._features(*self._blank_picture(embeds.device)).sum()
        output = core.language_model(
            inputs_embeds=embeds,
            position_ids=batch.position_ids,
            attention_mask=tree_attention_mask(batch.branch_ids, embeds.dtype),
            use_cache=False,
        )
        hidden: Tensor = output.last_hidden_state
        return hidden

    def _features(self, pixel_values: Tensor, image_grid_thw: Tensor) -> Tensor:
        out = self.model.model.get_image_features(pixel_values, image_grid_thw, return_dict=True)
        return torch.cat(out.pooler_output, dim=0)

    def _blank_picture(self, device: torch.device) -> tuple[Tensor, Tensor]:
        vision = self.model.config.vision_config
        side = 2 * vision.spatial_merge_size
        dim = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
        return (
            torch.zeros(side * side, dim, device=device),
            torch.tensor([[1, side, side]], device=device),
        )


def tree_attention_mask(branch_ids: Tensor, dtype: torch.dtype) -> Tensor:
    """Who sees whom: [R, L] branch ids to an additive [R, 1, L, L] mask of 0 and -inf-like.

    Query q sees key k if k ≤ q and k belongs to the prompt (0) or to q's own branch. Padding (-1) sees
    itself, as a softmax over nothing is NaN, and nobody sees padding.
    """
    length = branch_ids.shape[1]
    query, key = branch_ids[:, :, None], branch_ids[:, None, :]
    causal = torch.ones(length, length, dtype=torch.bool, device=branch_ids.device).tril()
    itself = torch.eye(length, dtype=torch.bool, device=branch_ids.device)
    allowed = (causal & ((key == 0) | (key == query)) & (key >= 0) & (query >= 0)) | itself
    mask = torch.zeros(allowed.shape, dtype=dtype, device=branch_ids.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min).unsqueeze(1)
