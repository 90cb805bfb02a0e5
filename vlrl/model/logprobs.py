"""The trainer's forward pass: a micro-batch of prefix trees to one logprob per trained token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributed import ProcessGroup

from vlrl.algorithm.ordered import rows_of
from vlrl.batch import MicroBatch, TrainedTokens
from vlrl.ledger import IntArray
from vlrl.model.attention import KINDS, Kind, install
from vlrl.model.features import StepFeatures, of_each, sum_of, tower_features
from vlrl.model.head_logprobs import CHUNK_BYTES, HeadLogprobs
from vlrl.model.kernels import interpolation, patches, tiles, videos
from vlrl.model.kernels.spans import SpanKind
from vlrl.model.kernels.spans import install as install_spans
from vlrl.model.mixture.balance import RouterBalance
from vlrl.model.mixture.replay import RoutingReplay
from vlrl.model.omni.thinker import core_of
from vlrl.model.policies.masks import PolicyMasks
from vlrl.model.recurrent import layers as recurrent_layers
from vlrl.model.recurrent.shared import SharedRecurrence
from vlrl.model.recurrent.tree import RecurrentTree
from vlrl.model.scored.files import is_scored
from vlrl.model.scored.head import ScoreHead
from vlrl.model.sequence_parallel import Exchange, SharedAttention
from vlrl.packing.layout import PixelsFn

AllowedFn = Callable[[Sequence[IntArray], Sequence[str], IntArray], Tensor]
"""Actions, the form of each, and the places [M, 2] of trained tokens in them, to [M, words] int32, see
`DeviceBatch`."""


@dataclass(slots=True, kw_only=True)
class DeviceBatch(TrainedTokens[Tensor]):
    """A MicroBatch's arrays as tensors on the training device; shapes as in `vlrl.batch.MicroBatch`.

    Attributes:
        allowed: [M, words] int32, a bit for each token that the engine could sample in the place of a trained
            one, see `vlrl.model.structured.allowed`; None if it could sample them all.
    """

    input_ids: Tensor
    position_ids: Tensor
    seen_until: Tensor
    media_inputs: Mapping[str, Tensor] | None
    media_keys: tuple[str, ...]
    slice_lengths: tuple[int, ...]
    media_order: Sequence[int]
    media_parts: Sequence[int]
    media_here: Sequence[int]
    media_ahead: Sequence[int]
    ahead_inputs: Mapping[str, Tensor] | None
    policy_ids: Tensor | None = None
    routed_experts: Tensor | None = None
    allowed: Tensor | None = None

    @classmethod
    def of(
        cls,
        batch: MicroBatch,
        device: torch.device,
        pixels: PixelsFn | None = None,
        allowed: AllowedFn | None = None,
    ) -> DeviceBatch:
        """Move a micro-batch to a device.

        Args:
            batch: the micro-batch.
            device: where to.
            pixels: the processor's function, for one that has media.
            allowed: which tokens could be sampled, for one that has `action_places`.
        """
        # Copied: arrays that came through Ray are read-only memory shared with other processes.
        values: dict[str, Any] = {name: getattr(batch, name) for name in ("media_keys", "slice_lengths")}
        values |= {"media_inputs": None, "ahead_inputs": None}
        values |= {"origins": None, "action_places": None}  # read on the host alone
        values["allowed"] = None
        if batch.action_places is not None:
            assert allowed is not None, (
                "a micro-batch with action_places needs to know which tokens are allowed"
            )
            forms = [batch.forms[number] for number in batch.action_forms]
            values["allowed"] = allowed(batch.actions, forms, batch.action_places).to(device)
        for name in ("media_inputs", "ahead_inputs"):
            inputs = getattr(batch, name)
            if isinstance(inputs, tuple):
                assert pixels is not None, "a micro-batch with media needs the processor's pixel function"
                inputs = pixels(inputs)
            if inputs is not None:
                values[name] = {k: torch.tensor(v, device=device) for k, v in inputs.items()}
        for name in (f.name for f in fields(cls) if f.name not in values):
            array = getattr(batch, name)
            values[name] = array.tolist() if name.startswith("media_") else array
            if isinstance(values[name], np.ndarray):
                values[name] = torch.tensor(array, device=device)
        return cls(**values)


class TreeModel(nn.Module):
    """Wraps a vision-language model of transformers, to be called with micro-batches of prefix trees.

    Attributes:
        balance: the auxiliary loss of its routers, which its backward pass has; None without one.
    """

    def __init__(
        self,
        model: Any,
        *,
        attention: Kind = "blocks",
        spans: SpanKind = "each",
        features: Callable[[Any, DeviceBatch, StepFeatures], Any] = tower_features,
        sharers: ProcessGroup | None = None,
        replays_routing: bool = False,
        router_aux_coef: float = 0.0,
    ) -> None:
        super().__init__()
        self.model: Any = model
        install(model)
        install_spans(model, spans)
        interpolation.install(model)
        patches.install(model)
        tiles.install(model)
        videos.install(model)
        self._has_state = recurrent_layers.has_state(model.get_decoder().config)
        if self._has_state:
            recurrent_layers.install(model)
        self._attention = KINDS[attention]
        self._features, self._sharers = features, sharers
        self._masks = PolicyMasks.of(model)
        self._replay = RoutingReplay(model) if replays_routing else None
        self.balance = RouterBalance(model, router_aux_coef) if router_aux_coef > 0 else None

    def predicting(self, batch: DeviceBatch, kept: StepFeatures | None) -> Tensor:
        """Last hidden states [M, hidden_size] of the tokens that predict the trained ones.

        Args:
            batch: the micro-batch.
            kept: what earlier micro-batches of the step left of images that this one shows again; only
                batches packed with `images_once` need it.
        """
        hidden = self._hidden(batch, kept or StepFeatures())
        return rows_of(hidden[0], batch.source_index)

    def _hidden(self, batch: DeviceBatch, kept: StepFeatures) -> Tensor:
        """Last hidden states [1, T, hidden_size].

        If any rank's micro-batch of this number has an image or a video, the tower is called once with
        gradient, whatever this one has, and always before the rest: under ZeRO-3 ranks whose calls differ
        wait for each other forever. The features of all media come in their order, so the pads of a video or
        an audio may stand for an image's.
        """
        core: Any = core_of(self.model)
        if self._masks is not None:
            self._masks.set(batch.policy_ids, len(batch.input_ids), len(batch.target_ids))
        if self._replay is not None:
            self._replay.set(batch.routed_experts)
        if self.balance is not None:
            self.balance.set(batch.weights.sum())
        features = self._features(core, batch, kept)
        ids = batch.input_ids[None]
        for kind in ("video", "audio"):
            if (token_id := getattr(core.config, f"{kind}_token_id", None)) is not None:
                ids = ids.masked_fill(ids == token_id, core.config.image_token_id)
        positions = batch.position_ids[:, None]  # [3, 1, T]
        no_mask = ids.new_zeros(1, 1, 1, 1)  # of four dimensions: transformers makes none itself
        with _images_given(core, _placed(features, batch) if batch.media_order else None) as images:
            output = core(
                input_ids=ids,
                position_ids=positions if hasattr(core, "get_rope_index") else positions[0],
                attention_mask=no_mask,
                use_cache=False,
                **self._trees(batch),
                **images,
            )
        hidden: Tensor = output.last_hidden_state
        unused = getattr(features, "blank", None if batch.media_order else features)
        return hidden if unused is None else hidden + 0.0 * sum_of(unused).to(hidden.dtype)

    def _trees(self, batch: DeviceBatch) -> dict[str, Any]:
        """What layers that attend, and layers with a state, take by keyword."""
        trees: dict[str, Any] = {"tree": self._attention(batch.seen_until)}
        if self._has_state:
            trees["states"] = RecurrentTree(batch.seen_until)
        if self._sharers is None:
            return trees
        exchange = Exchange(batch.slice_lengths, self._sharers)
        shared = {"tree": SharedAttention, "states": SharedRecurrence}
        return {name: shared[name](whole, exchange) for name, whole in trees.items()}


class TreeLogprobs(TreeModel):
    """A policy; `forward` gives logprobs of the trained tokens.

    The distribution is the sampler's: logits divided by the temperature, banned tokens impossible.
    """

    def __init__(
        self,
        model: Any,
        *,
        temperature: float,
        banned_token_ids: Sequence[int],
        chunk_bytes: int = CHUNK_BYTES,
        **options: Any,
    ) -> None:
        super().__init__(model, **options)
        self.head: nn.Module = (
            ScoreHead(model.score)
            if is_scored(model)
            else HeadLogprobs(
                model.lm_head,
                temperature=temperature,
                banned_token_ids=banned_token_ids,
                chunk_bytes=chunk_bytes,
                cap=getattr(model.config.get_text_config(), "final_logit_softcapping", None),
            )
        )

    def forward(self, batch: DeviceBatch, kept: StepFeatures | None = None) -> tuple[Tensor, Tensor]:
        """Logprobs and entropies of the trained tokens; arguments as `predicting` has them.

        Returns:
            (trainer_logprobs [M] float32 nats, entropy [M] float32 nats).
        """
        logprobs, entropy = self.head(self.predicting(batch, kept), batch.target_ids, batch.allowed)
        return logprobs, entropy


@contextmanager
def _images_given(core: Any, features: Any) -> Iterator[dict[str, Any]]:
    """The keywords with which the model's forward takes these features in place of calling its tower.

    transformers has a keyword for them from 5.18 on. Before, it would be dropped silently, and they stand
    in for the tower's call.
    """
    if features is None:
        yield {}
    elif "mm_encoder_outputs" in signature(core.forward).parameters:
        yield {"mm_encoder_outputs": {"image": features}}
    else:
        core.get_image_features = lambda *_, **__: features
        try:
            yield {"pixel_values": torch.empty(0)}  # that there are some: nothing reads them
        finally:
            del core.get_image_features


def _placed(features: Any, batch: DeviceBatch) -> Any:
    """The features of distinct images, each at every place where the sequence shows it."""
    if list(batch.media_order) == list(range(len(batch.media_parts))):
        return features
    pooled = features.pooler_output  # of each image, or of all tiles in one tensor
    pieces = of_each(pooled, batch.media_parts)
    placed = [pieces[place] for place in batch.media_order]
    features.pooler_output = torch.cat(placed) if isinstance(pooled, Tensor) else tuple(placed)
    if deepstack := getattr(features, "deepstack_features", None):
        features.deepstack_features = [tuple(level[i] for i in batch.media_order) for level in deepstack]
    return features
