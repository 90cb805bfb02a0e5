"""The records that flow through vlrl. Read this file first, then `vlrl.ledger`; nothing here imports torch.

    Row ──processor──► Sample ──rollout──► Trajectory ×n = Group ──pack──► MicroBatch ──► trainer

MicroBatch is in `vlrl.batch`.

Every array field states its shape and dtype; `num_` starts a count, `_s` ends seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.ledger import Credit as Credit
from vlrl.ledger import FloatArray as FloatArray
from vlrl.ledger import Generation as Generation
from vlrl.ledger import IntArray as IntArray
from vlrl.ledger import Ledger as Ledger
from vlrl.ledger import Turn as Turn
from vlrl.ledger import VersionSpan as VersionSpan
from vlrl.rounding import summed

ByteArray: TypeAlias = npt.NDArray[np.uint8]

SMALLEST_GROUP = 2
"""Trajectories that can be a baseline for each other."""

Outcome = Literal["ok", "truncated", "agent_error", "env_error", "timeout"]
Row: TypeAlias = Mapping[str, Any]
"""A dataset row: `id`, `messages`, and optionally `answer`, `target`, `rejected`, `label`, `metadata`, `env`,
`tools`, `structured_outputs`.

`messages` is a list of `{"role", "content"}`; content is a string or a list of parts:
`{"type": "text", "text": str}`, `{"type": "image", "image": source}`, `{"type": "video", "video": source}`
with, if wanted, its own fps, num_frames, start_s and end_s, or `{"type": "audio", "audio": source}` with
start_s and end_s. `vlrl.processors.media.sources` says what a source is.
"""


MediaKind: TypeAlias = Literal["image", "video", "audio"]


@dataclass(frozen=True, slots=True)
class MediaShape:
    """All that a prompt needs to know of a medium: read from its headers, before anything is decoded.

    Attributes:
        kind: of the medium.
        size: (height, width) in pixels as the model will see it; (0, 0) of an audio.
        num_frames: frames taken; 1 for an image; samples of an audio.
        timestamps_s: [num_frames] seconds of each frame of a video; empty for others.
        fps: frames, or samples, per second; None for an image.
    """

    kind: MediaKind
    size: tuple[int, int]
    num_frames: int = 1
    timestamps_s: tuple[float, ...] = ()
    fps: float | None = None


@dataclass(frozen=True, slots=True)
class Media:
    """One image, video or audio, decoded and resized or resampled once; every reader of it reads this record.

    Attributes:
        kind: of the medium.
        sha256: hash of the frames and their timing, the key of every cache.
        frames: [num_frames, height, width, 3] uint8 RGB, as the model sees them; of an audio
            [num_samples, 2] uint8, one channel of little-endian 16-bit samples. Read-only.
        original_size: (height, width) in pixels before resizing; (0, 0) of an audio.
        grid_thw: (time, height, width) of the vision tower's patch grid; (num_tiles, 1, 1) where a family
            cuts images into tiles; (1, 1, num_tokens) of an audio.
        num_tokens: tokens that its placeholder expands to in the prompt.
        timestamps_s: [num_frames] seconds of each frame of a video; empty for others.
        fps: frames, or samples, per second; None for an image.
        coordinate_frame: in which its model's family writes places on it, one of
            `vlrl.coordinates.FRAMES`; "" where none is documented.

    What is read by token alone needs no pixels: `without_frames` leaves them out of what is sent.

    Example: a 100×60 image resized to 112×56 with 14-pixel patches merged 2×2 has
    grid_thw (1, 8, 4) and num_tokens 8; its pixel (x=30, y=50) is (x=28, y=56) to the model.
    """

    kind: MediaKind
    sha256: str
    frames: ByteArray
    original_size: tuple[int, int]
    grid_thw: tuple[int, int, int]
    num_tokens: int
    timestamps_s: tuple[float, ...] = ()
    fps: float | None = None
    coordinate_frame: str = ""

    @property
    def size(self) -> tuple[int, int]:
        """(height, width) in pixels as the model sees it; (0, 0) of an audio."""
        return (0, 0) if self.kind == "audio" else (int(self.frames.shape[1]), int(self.frames.shape[2]))

    @property
    def samples(self) -> FloatArray:
        """[num_samples] float32 between -1 and 1, of an audio."""
        return np.ascontiguousarray(self.frames).view("<i2")[:, 0].astype(np.float32) / np.float32(32768)

    @property
    def shape(self) -> MediaShape:
        """The medium without its pixels."""
        return MediaShape(self.kind, self.size, len(self.frames), self.timestamps_s, self.fps)

    @property
    def has_frames(self) -> bool:
        """Whether the frames are here, and not their shape alone."""
        return any(self.frames.strides)

    def without_frames(self) -> Media:
        """The medium with the shape of its frames alone, of which it is pickled in a few bytes."""
        return replace(self, frames=np.broadcast_to(np.uint8(0), self.frames.shape))

    def __getstate__(self) -> list[Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return list((values if self.has_frames else values | {"frames": self.frames.shape}).values())

    def __setstate__(self, state: list[Any]) -> None:
        for field_, value in zip(fields(self), state, strict=True):
            if field_.name == "frames" and isinstance(value, tuple):
                value = np.broadcast_to(np.uint8(0), value)
            object.__setattr__(self, field_.name, value)

    def to_model(self, x: float, y: float) -> tuple[float, float]:
        """Map a point in original pixels to resized pixels."""
        return x * self.size[1] / self.original_size[1], y * self.size[0] / self.original_size[0]

    def to_original(self, x: float, y: float) -> tuple[float, float]:
        """Map a point in resized pixels back to original pixels."""
        return x * self.original_size[1] / self.size[1], y * self.original_size[0] / self.size[0]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered conversation as tokens, in the two forms of law 3 (one expansion).

    Attributes:
        token_ids: [num_tokens] int64, media placeholders expanded: what the trainer sees.
        engine_ids: int64, one placeholder per medium: what the engine is given.
        position_ids: [3, num_tokens] int64, mRoPE time, height and width; equal rows in a family without it.
        next_position: position of the token that follows the prompt.
        media_starts: of each medium the index in token_ids where its placeholder begins.
        opened: what the chat template has written of the assistant's message, such as "<think>"; "" for
            most templates. The tokens hold it; the text that rewards and environments get begins with it.

    Example: "<v><img></v>Hi" with a 2-token image has engine_ids [v, img, /v, Hi] and token_ids
    [v, img, img, /v, Hi].
    """

    token_ids: IntArray
    engine_ids: IntArray
    position_ids: IntArray
    next_position: int
    media_starts: tuple[int, ...] = ()
    opened: str = ""


@dataclass(frozen=True, slots=True)
class EnvTask:
    """An episode to be played: the same values give the same episode, up to the policy's actions.

    Attributes:
        name: of the environment in the registry, such as "visual/mazes".
        options: its constructor's arguments.
        task: what `reset` is given; the environment says which keys it knows.
        seed: of everything random in the environment.
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """A dataset row made ready: media resolved, prompt rendered.

    Attributes:
        id: unique in its dataset; named in every error about this sample.
        messages: the conversation up to the answer, media parts as {"type": "image"}.
        media: in the order in which the prompt mentions them.
        prompt: the rendered tokens.
        answer: what the rewards compare with.
        target: the last assistant turn's text for supervised training; None for RL-only rows. Of a pair the
            chosen one.
        rejected: the text that the target is preferred to; None for rows that are no pairs.
        label: whether the target is a good one, for rows that say so.
        source: name of the data source it came from, which decides its rewards; "" if there is but one.
        env: where its episodes are played; None for single-turn question answering.
        tools: JSON schemas of the functions that the chat template offers to the model.
        metadata: anything else from the row; passed to rewards by name.
        agent: that is asked, of an environment of several; "" of any other.
        form: of its actions for which the environment gives none, see `vlrl.model.structured.forms`; "" where
            every token is possible.
        prepared: (start, end) of that work, by time.perf_counter of the process that did it.
    """

    id: str
    messages: tuple[Mapping[str, Any], ...]
    media: tuple[Media, ...]
    prompt: Prompt
    answer: Any = None
    target: str | None = None
    rejected: str | None = None
    label: bool | None = None
    source: str = ""
    env: EnvTask | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    agent: str = ""
    form: str = ""
    prepared: tuple[float, float] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ReferenceTurn:
    """One assistant's turn of a given conversation, with what came before it since the last one.

    Attributes:
        context: tokens the assistant answers to.
        media: of the context.
        action_ids: [num_tokens] int64, the assistant's tokens and the one that ends the turn.
    """

    context: Prompt
    media: tuple[Media, ...]
    action_ids: IntArray


@dataclass(frozen=True, slots=True)
class Sampling:
    """How one completion is generated.

    Attributes:
        temperature: divides the logits; 0 is greedy.
        max_tokens: most tokens generated.
        seed: of this request alone; see `vlrl.seeds`.
    """

    temperature: float
    max_tokens: int
    seed: int


@dataclass(frozen=True, slots=True)
class Score:
    """A reward and its named parts. `total` is what the advantage sees.

    Attributes:
        total: of the episode.
        parts: name → value, as the rewards returned them.
        turns: [num_turns] what of the total process rewards and the environment gave to each turn; empty if
            the run's rewards name neither.
        explanations: reward's label → why, for people, of those that say so.
    """

    total: float
    parts: Mapping[str, float]
    turns: tuple[float, ...] = ()
    explanations: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Trajectory:
    """One finished episode and its outcome.

    Attributes:
        sample: what was asked.
        group_index: which of the group's n trajectories.
        ledgers: what was seen and generated; more than one if the context was rewritten on the way.
        completion: the last assistant message, for rewards and people; never re-encoded. It is the decoded
            last action after what the chat template opened of the message (`Prompt.opened`).
        outcome: how it ended.
        score: None until rewarded; stays None when env or reward failed (law 7).
        duration_s: wall time of the episode.
        info: numbers the environment gave with its last step, such as success; empty without one.
        failure: what went wrong, if the outcome is agent_error, env_error or timeout.
        end_seen: hash of what the environment showed when it had ended the episode, see `Turn.seen`.
        end_media: images of that, for people, if there were several turns; the policy never saw them.
        trunk: group index of the episode that it branched off, its own if others branched off it.
        num_shared: its first turns, which the trunk and all its branches have in common.
        trace: the W3C traceparent of its episode's span; "" without traces.
    """

    sample: Sample
    group_index: int
    ledgers: tuple[Ledger, ...]
    completion: str
    outcome: Outcome
    score: Score | None = None
    duration_s: float = 0.0
    info: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""
    end_seen: str = ""
    end_media: tuple[Media, ...] = ()
    trunk: int | None = None
    num_shared: int = 0
    trace: str = field(default="", compare=False)

    @property
    def failed(self) -> bool:
        """True if the environment or the agent failed: it is never scored (law 7)."""
        return self.outcome not in ("ok", "truncated")

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every exchange, in the order of time; the spans are of each one's own ledger."""
        return tuple(turn for ledger in self.ledgers for turn in ledger.turns)

    @property
    def media(self) -> tuple[Media, ...]:
        """Everything the policy saw, once, in the order in which it first saw it."""
        seen = {medium.sha256: medium for ledger in self.ledgers for medium in ledger.media}
        return tuple(seen.values())

    @property
    def action_ids(self) -> list[int]:
        """Tokens generated by the policy, all turns'."""
        return [token for ledger in self.ledgers for token in ledger.token_ids[ledger.loss_mask].tolist()]

    @property
    def num_action_tokens(self) -> int:
        """How many they are."""
        return sum(int(ledger.loss_mask.sum()) for ledger in self.ledgers)

    @property
    def episode_return(self) -> float:
        """Sum of what the environment gave."""
        return summed(turn.reward for turn in self.turns)


@dataclass(slots=True)
class Group:
    """The n trajectories of one sample, with their credit once assigned.

    Attributes:
        trajectories: [n].
        credits: [n]; empty until `vlrl.algorithm.credit` fills it.
        greedy: the greedy episode that the members are compared with, which is not trained: one trajectory,
            or none if this agent had no part in it. None if they are compared with each other.
        smallest: members that must have a score where they are compared with each other; 1 where a critic is
            the baseline.
        refusal: why it is not trained: the filter that refused it; "" if it is.
    """

    trajectories: list[Trajectory]
    credits: list[Credit] = field(default_factory=list)
    greedy: tuple[Trajectory, ...] | None = None
    smallest: int = SMALLEST_GROUP
    refusal: str = ""

    @property
    def failed(self) -> bool:
        """True if there is no baseline, so that nothing of it is trained (law 7).

        That is if too few members have a score, or of a group with a greedy episode if that has none, or no
        member.
        """
        if self.greedy is None:
            return len(self.scored) < self.smallest
        return not self.scored or all(t.score is None for t in self.greedy)

    @property
    def agent(self) -> str:
        """The agent that its members are of; "" if there is but one, or none is known as all failed."""
        return next((t.sample.agent for t in self.trajectories if not t.failed), "")

    @property
    def scored(self) -> list[Trajectory]:
        """The members that have a score; the others failed, and have no part in the group's baseline."""
        return [t for t in self.trajectories if t.score is not None]
