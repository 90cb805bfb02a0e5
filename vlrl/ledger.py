"""What was seen and generated in an episode, as tokens: the records that a Session writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from vlrl.coordinates import Canvas
    from vlrl.types import Media

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ExpertArray: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class VersionSpan:
    """Tokens [start, end) were generated under weight version `version`."""

    version: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Generation:
    """What the engine generated.

    Attributes:
        token_ids: [num_tokens] int64, the stop token included.
        sampler_logprobs: [num_tokens] float32, log-probability of each token under the distribution it
            was sampled from (temperature and banned tokens applied), in nats.
        version_spans: weight versions, covering [0, num_tokens).
        finished: True if it ended by a stop token, False if cut at max_tokens.
        routed_experts: [num_inputs, num_layers, top_k], the experts chosen for each token of the prompt and
            for those generated but the last, which was no input; None without generator.routing_replay.
    """

    token_ids: IntArray
    sampler_logprobs: FloatArray
    version_spans: tuple[VersionSpan, ...]
    finished: bool
    routed_experts: ExpertArray | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange, as half-open spans of its ledger: prompt or observation, then the action.

    Attributes:
        context: span of what was seen since the last action.
        action: span of what was generated.
        text: the assistant's whole message, which is the decoded action after what the chat template opened
            (`Prompt.opened`), for environments, rewards and people; never re-encoded to train on.
        finished: False if the action was cut at rollout.max_tokens.
        reward: what the environment gave for it.
        invalid: the environment could not read it as an action.
        state: names what the policy saw; equal names are the same state of the same task (GiGPO's anchor).
        num_media: media of `context`; those of a ledger's turns, one after the other, are its media.
        seen: hash of the observation that it answers, as the environment gave it (`envs.observe.digest_of`);
            "" outside environments.
        canvases: how that observation's images were shown; what the action's coordinates refer to.
        info: what the environment said of the action, numbers and texts.
        form: what the action was held to while it was generated, see `vlrl.model.structured.forms`; turns
            share one string. "" where every token was possible.

    Example: prompt of 3 tokens, action of 2: Turn(context=(0, 3), action=(3, 5)).
    """

    context: tuple[int, int]
    action: tuple[int, int]
    text: str = ""
    finished: bool = True
    reward: float = 0.0
    invalid: bool = False
    state: str = ""
    num_media: int = 0
    seen: str = ""
    canvases: tuple[Canvas, ...] = ()
    info: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    form: str = ""


@dataclass(frozen=True, slots=True)
class Ledger:
    """Tokens in the order in which they were seen and generated; append-only while it grew (law 1).

    An episode has one, or several if what the policy was shown did not always begin with what it had seen
    before: a context policy that forgets, or a chat template that rewrites earlier turns. Then each turn lies
    in the ledger under which it was generated, and what a later ledger repeats of it is context.

    Attributes:
        token_ids: [num_tokens] int64, placeholders expanded.
        position_ids: [3, num_tokens] int64, mRoPE; equal rows in a family without it.
        loss_mask: [num_tokens] bool, True where the policy generated the token.
        sampler_logprobs: [num_tokens] float32 in nats, 0 where loss_mask is False.
        version_spans: weight versions over the action tokens.
        turns: spans of each exchange; they tile the ledger.
        media: in the order of their placeholders.
        media_starts: of each medium the index of its placeholder's first token.
        routed_experts: [num_tokens - 1, num_layers, top_k], see `Generation`.

    Example: prompt P0 P1, action A0 A1, observation O0, action A2:
        token_ids  P0 P1 A0 A1 O0 A2
        loss_mask   0  0  1  1  0  1
        turns      (0,2)-(2,4), (4,5)-(5,6)
    """

    token_ids: IntArray
    position_ids: IntArray
    loss_mask: BoolArray
    sampler_logprobs: FloatArray
    version_spans: tuple[VersionSpan, ...]
    turns: tuple[Turn, ...]
    media: tuple[Media, ...]
    media_starts: tuple[int, ...] = ()
    routed_experts: ExpertArray | None = None

    @property
    def versions(self) -> IntArray:
        """[num_tokens] int64: under which weights each token was generated; -1 where none was."""
        versions = np.full(len(self.token_ids), -1, dtype=np.int64)
        for span in self.version_spans:
            versions[span.start : span.end] = span.version
        return versions


@dataclass(frozen=True, slots=True)
class Credit:
    """What each token of a trajectory is trained towards, ledger by ledger.

    Attributes:
        advantages: [num_ledgers] of [num_tokens] float32.
        trained: [num_ledgers] of [num_tokens] bool; only where the policy generated the token.
        counts: False for a trajectory that could not be scored or has nobody to be compared with: it is no
            sequence of the batch's averages (law 7), while one whose tokens are all masked is.
    """

    advantages: tuple[FloatArray, ...]
    trained: tuple[BoolArray, ...]
    counts: bool = True

    @property
    def num_trained(self) -> int:
        """Tokens that are trained."""
        return sum(int(mask.sum()) for mask in self.trained)
