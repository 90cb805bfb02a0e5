"""The input of a trainer rank: a packed sequence of prefix trees, with everything the loss needs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from vlrl.errors import InternalError
from vlrl.types import ByteArray, FloatArray, IntArray, Media

MediaInputs: TypeAlias = Mapping[str, npt.NDArray[Any]] | tuple[Media, ...]
"""The vision tower's arrays by the names that transformers gives them; or the media, of which a rank makes
them itself: uint8 pixels are a quarter of float32 patches, and an eighth where these have an image twice."""

Frames: TypeAlias = Mapping[str, ByteArray]
"""Frames of media by their sha256, as in `vlrl.types.Media`."""

A = TypeVar("A")
"""NumPy's arrays, or torch's tensors."""


@dataclass(slots=True, kw_only=True)
class TrainedTokens(Generic[A]):
    """An array for everything that the loss takes of a trained token; M of them, ledger by ledger.

    A further one is a field here, is filled by `vlrl.packing.targets`, and is read by the loss; all that lies
    between goes by the fields' names.

    Attributes:
        source_index: [M] int64, the token whose logits predict the target. Where branches share a trained
            token it is there once for each of them, with its own weight and advantage.
        target_ids: [M] int64, the trained tokens.
        sampler_logprobs: [M] float32, nats.
        advantages: [M] float32.
        weights: [M] float32, share of each token in the loss of the whole batch (they sum to 1 over
            all ranks' micro-batches of one optimizer step, see `vlrl.packing.pack`).
        token_staleness: [M] int64, updates between the weights that generated a token and this step's first.
        sequence_ids: [M] int64, which of the micro-batch's ledgers a trained token is of.
        proximal_logprobs: [M] float32, nats, of the weights this step begins with, if they were asked for;
            None for a step's first update, which computes them anyway.
        group_ids: [M] int64, which of the micro-batch's groups a trained token is of, where losses are those
            of whole groups; None where they are not.
        origins: [M, 4] int64, which token of the step's rollouts it is, see `TokenValues`; None where
            nobody asks.
        steps: [M, 3] int64, where a trained token is in its episode, for a critic: number of the episode
            among those of the optimizer step, of the turn in it, and of the token in it. None without a
            critic; with one, `advantages` are rewards of whole turns, until the ranks know the values.
        action_places: [M, 2] int64, number of a trained token's action among `MicroBatch.actions`, and its
            place in that; None where no action has a form.
    """

    source_index: A
    target_ids: A
    sampler_logprobs: A
    advantages: A
    weights: A
    token_staleness: A
    sequence_ids: A
    proximal_logprobs: A | None = None
    group_ids: A | None = None
    steps: A | None = None
    origins: A | None = None
    action_places: A | None = None

    def trained_tokens(self) -> dict[str, A]:
        """The arrays by name, without those that are None."""
        arrays = {field.name: getattr(self, field.name) for field in fields(TrainedTokens)}
        return {name: array for name, array in arrays.items() if array is not None}


@dataclass(slots=True, kw_only=True)
class MicroBatch(TrainedTokens[npt.NDArray[Any]]):
    """Prefix trees for one forward pass, one after the other: T tokens without padding; M trained ones.

    Ledgers that begin alike are one tree: what they share stands there once, and each goes on from it as a
    branch. The nodes of a tree lie in preorder, so everything beneath a node follows it without a gap.
    Mask rule: q sees k if k ≤ q < seen_until[k]: if k is before q on q's own path, or is q.

    Attributes:
        input_ids: [T] int64.
        position_ids: [3, T] int64, mRoPE; each branch goes on from what it shares.
        seen_until: [T] int32, the end of what lies beneath the token's node. Of ranks that share a sequence
            each has that of all tokens, and a slice of all else; places are counted from the slice's start.
        media_inputs: the vision tower's, each distinct image or video once, in the order in which they
            first occur; of a blank image, or no media at all, if there is none; None if no
            rank has any in its micro-batch of this number. Without those that a later micro-batch of the
            rank shows too, see `vlrl.model.features`.
        media_keys: [num_distinct] the content key of each; none if there is no image.
        media_order: [num_media] int64, which of them stands at each placeholder; empty for none.
        media_here: [num_here] int64, which of the distinct ones are in media_inputs.
        media_ahead: [num_ahead] int64, which of them are in ahead_inputs. What is in neither was computed
            ahead in an earlier micro-batch.
        ahead_inputs: arrays as in media_inputs of those that are shown here first and later again, to be
            computed without gradient; None if no rank has any in its micro-batch of this number.
        media_parts: [num_distinct] int64, what each counts where a family cuts images into tiles.
        token_sample_ids: [num_ledgers] ids of their samples, for error messages.
        slice_lengths: tokens of each rank that has a slice of the sequence; one entry if it is not shared.
        policy_ids: [T] int64, number of the policy whose adapter acts on a token, -1 for none; None where
            there is one policy, and without a ledger. A tree is of one policy.
        routed_experts: [T, num_layers, top_k] int16, the experts that the engine chose, -1 where it is not
            known; None where nothing is. Where branches share a token, it has the first one's.
        actions: token ids of each action that `action_places` names: what was generated before a token
            decides which ones could follow.
        action_forms: number of the form of each among `forms`.
        forms: each of theirs once, see `Turn.form`.

    The last token of a completion is predicted but predicts nothing: it is a target, and no input.

    Example: prompt P0 P1, completions A0 A1 A2, A0 B1 B2 and C0 C1:
        input_ids   P0 P1 A0 A1 B1 C0
        seen_until   6  6  5  4  5  6
        positions    0  1  2  3  3  2
        source       1  2  3  1  2  4  1  5   (P1 predicts A0, A0 predicts A1, A1 predicts A2, and so on)
        target      A0 A1 A2 A0 B1 B2 C0 C1
        sequence_ids 0  0  0  1  1  1  2  2
    """

    input_ids: IntArray
    position_ids: IntArray
    seen_until: npt.NDArray[np.int32]
    media_inputs: MediaInputs | None
    media_keys: tuple[str, ...]
    media_order: IntArray
    media_parts: IntArray
    media_here: IntArray
    media_ahead: IntArray
    ahead_inputs: MediaInputs | None
    token_sample_ids: tuple[str, ...]
    slice_lengths: tuple[int, ...]
    policy_ids: IntArray | None = None
    routed_experts: npt.NDArray[np.int16] | None = None
    actions: tuple[IntArray, ...] = ()
    action_forms: tuple[int, ...] = ()
    forms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenValues:
    """What a trainer computed of trained tokens, before the update that they are for.

    Attributes:
        origins: [N, 4] int64: number of the group among the step's trained ones, index of the trajectory in
            the group (`Trajectory.group_index`), number of its ledger, index of the token in that.
        trainer_logprobs: [N] float32, nats.
        entropies: [N] float32, nats, of the distribution that the token was sampled from.
    """

    origins: IntArray
    trainer_logprobs: FloatArray
    entropies: FloatArray

    @classmethod
    def joined(cls, parts: Iterable[TokenValues]) -> TokenValues:
        """Those of several ranks or updates as one."""
        parts = [cls(np.zeros((0, 4), np.int64), *(np.zeros(0, np.float32) for _ in range(2))), *parts]
        return cls(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(cls)))


Batch: TypeAlias = list[list[MicroBatch]]
"""One optimizer step: for each rank its micro-batches; every rank has the same number of them."""


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One optimizer step that lies in the cluster's shared memory.

    Attributes:
        ranks: a reference for each rank, which fetches its own part.
        frames: for each rank references of `Frames`: of the media in its part, which are there without.
        num_targets: trained tokens of all ranks.
    """

    ranks: tuple[Any, ...]
    frames: tuple[tuple[Any, ...], ...]
    num_targets: int


StepBatch: TypeAlias = Batch | StoredBatch
"""What the trainer is given: the micro-batches themselves, or where they lie."""


def parts_of(batch: StepBatch) -> list[tuple[Any, ...]]:
    """What is sent to each rank: its part, and the frames of the media in it that are there without."""
    if isinstance(batch, StoredBatch):
        return [(part, *frames) for part, frames in zip(batch.ranks, batch.frames, strict=True)]
    return [(part,) for part in batch]


def with_frames(media: Iterable[Media], frames: Iterable[Frames]) -> tuple[Media, ...]:
    """Media with their frames, from wherever they are.

    Raises:
        InternalError: if they are nowhere.
    """
    known = ChainMap(*map(dict, frames))

    def whole(medium: Media) -> Media:
        if medium.has_frames:
            return medium
        if medium.sha256 not in known:
            raise InternalError(f"the frames of {medium.kind} {medium.sha256} were not sent with its tokens")
        return replace(medium, frames=known[medium.sha256])

    return tuple(map(whole, media))


def media_in(part: Iterable[MicroBatch]) -> list[Media]:
    """The media of a rank's part whose patches the rank makes itself."""
    inputs = [given for batch in part for given in (batch.media_inputs, batch.ahead_inputs)]
    return [medium for given in inputs if isinstance(given, tuple) for medium in given]


def num_targets(batch: StepBatch) -> int:
    """Trained tokens of all ranks."""
    if isinstance(batch, StoredBatch):
        return batch.num_targets
    return sum(len(micro_batch.target_ids) for of_rank in batch for micro_batch in of_rank)
