"""The trainer's forward pass: a micro-batch of prefix trees to one logprob per trained token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor, nn

from vlrl.batch import MicroBatch


@dataclass(frozen=True, slots=True)
class DeviceBatch:
    """A MicroBatch's arrays as tensors on the training device; shapes as in `vlrl.batch.MicroBatch`."""

    input_ids: Tensor
    position_ids: Tensor
    branch_ids: Tensor
    media_inputs: Mapping[str, Tensor]
    num_media: int
    source_index: Tensor
    target_ids: Tensor
    sampler_logprobs: Tensor
    advantages: Tensor
    weights: Tensor

    @classmethod
    def of(cls, batch: MicroBatch, device: torch.device) -> DeviceBatch:
        """Move a micro-batch to a device."""
        # Copied: arrays that came through Ray are read-only memory shared with other processes.
        media_inputs = {k: torch.tensor(v, device=device) for k, v in batch.media_inputs.items()}
        arrays = (f.name for f in fields(cls) if f.name not in ("media_inputs", "num_media"))
        tensors = {name: torch.tensor(getattr(batch, name), device=device) for name in arrays}
        return cls(**tensors, media_inputs=media_inputs, num_media=batch.num_media)


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

        The tower is called exactly once, whether or not the micro-batch has a picture and whatever it has
        of videos, and always before the rest: under ZeRO-3 ranks whose calls differ wait for each other
        forever. A video's patches are a picture's with more time, so its pads may stand for a picture's.
        """
        core: Any = self.model.model
        features = core.get_image_features(**batch.media_inputs, return_dict=True)
        ids, video_token_id = batch.input_ids, getattr(core.config, "video_token_id", None)
        if video_token_id is not None:
            ids = ids.masked_fill(ids == video_token_id, core.config.image_token_id)
        output = core(
            input_ids=ids,
            position_ids=batch.position_ids if hasattr(core, "get_rope_index") else batch.position_ids[0],
            attention_mask=tree_attention_mask(batch.branch_ids, self.model.dtype),
            mm_encoder_outputs={"image": features} if batch.num_media else None,
            use_cache=False,
        )
        hidden: Tensor = output.last_hidden_state
        return hidden if batch.num_media else hidden + 0.0 * _sum(features).to(hidden.dtype)


def _sum(features: Any) -> Tensor:
    """Of everything the tower gave to the language model, deepstack included."""
    outputs = (features.pooler_output, getattr(features, "deepstack_features", None))
    total: Tensor = sum(tensor.float().sum() for tensor in _tensors(outputs))  # type: ignore[assignment]
    return total


def _tensors(tree: Any) -> Iterator[Tensor]:
    if isinstance(tree, Tensor):
        yield tree
    for item in tree if isinstance(tree, list | tuple) else ():
        yield from _tensors(item)


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
