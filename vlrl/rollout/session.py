"""Law 1: the token ledger of one episode only grows. Nothing in it is decoded and encoded again."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vlrl.algorithm.mask import loss_mask
from vlrl.coordinates import Canvas
from vlrl.ledger import ExpertArray
from vlrl.types import Generation, Ledger, Media, Outcome, Prompt, Sample, Trajectory, Turn, VersionSpan


@dataclass(frozen=True, slots=True)
class MediaMessage:
    """A message of the conversation with its media.

    Attributes:
        message: {"role", "content"} as a chat template takes it, media parts as {"type": "image"}.
        media: of its parts, in order.
        summary: what an environment says of all that came before it.
        seen: hash of the observation that it is, see `Turn.seen`; without effect on what is shown.
        form: that an environment asks of the action that answers it; "" leaves it to the sample.
    """

    message: Mapping[str, Any]
    media: tuple[Media, ...] = ()
    summary: str = ""
    seen: str = field(default="", compare=False)
    form: str = field(default="", compare=False)


class Session:
    """What the policy has seen and generated so far.

    Attributes:
        sample: what was asked.
        group_index: which of the group's n.
        conversation: everything said, whatever the policy is shown of it.
        shown: the messages that the present ledger's tokens spell, up to its last action.
        state: names what the policy sees now, see `Turn.state`.
        token_ids: the present ledger, media placeholders expanded.
        engine_ids: the same with one placeholder per medium, as the engine takes it.
        media: in ledger order.
        next_position: rotary position of the next token.
        opened: what the template has written of the assistant's next message, see `Prompt.opened`.
    """

    def __init__(self, sample: Sample, group_index: int, seen: str = "", form: str = "") -> None:
        self.sample = sample
        self.group_index = group_index
        self.conversation = conversation_of(sample)
        if seen:
            answered = replace(self.conversation[-1], seen=seen, form=form)
            self.conversation = (*self.conversation[:-1], answered)
        self.state = "start"
        self._ledgers: list[Ledger] = []
        self._routed_experts: ExpertArray | None
        self._context_start: int
        self._num_media_seen: int
        self._begin(self.conversation, sample.prompt, sample.media)

    @property
    def num_turns(self) -> int:
        """Actions generated."""
        return sum(len(ledger.turns) for ledger in self._ledgers) + len(self._turns)

    @property
    def form(self) -> str:
        """What the next action is held to, see `Turn.form`."""
        return (self.conversation[-1].form if self.conversation else "") or self.sample.form

    @property
    def last_turn(self) -> Turn | None:
        """The present ledger's last exchange."""
        return self._turns[-1] if self._turns else None

    def append_observation(
        self, prompt: Prompt, media: Sequence[Media], shown: Sequence[MediaMessage] | None = None
    ) -> None:
        """Append tokens that the policy sees but did not generate, with their media.

        Args:
            prompt: the tokens.
            media: of their placeholders.
            shown: the messages that the ledger spells from now on.
        """
        starts = prompt.media_starts or (0,) * len(media)  # without placeholders: where the prompt begins
        self._media_starts += [len(self.token_ids) + start for start in starts]
        self.token_ids += prompt.token_ids.tolist()
        self.engine_ids += prompt.engine_ids.tolist()
        self.media += media
        self._position_ids.append(prompt.position_ids)
        self._logprobs += [0.0] * len(prompt.token_ids)
        self.next_position, self.opened = prompt.next_position, prompt.opened
        if shown is not None:
            self.shown = tuple(shown)

    def append_action(self, generation: Generation, text: str = "", said: str | None = None) -> None:
        """Append what the policy generated, exactly as generated.

        Args:
            generation: the tokens.
            text: the whole assistant message: what the template opened of it, and what the tokens say.
            said: the same as a message's content, if a chat template writes part of it by itself.
        """
        start, count = len(self.token_ids), len(generation.token_ids)
        action_ids = generation.token_ids.tolist()
        self.token_ids += action_ids
        self.engine_ids += action_ids
        positions = np.arange(self.next_position, self.next_position + count)
        self._position_ids.append(np.tile(positions, (3, 1)))
        self.next_position += count
        self._logprobs += generation.sampler_logprobs.tolist()
        self._routed_experts = _longer(self._routed_experts, generation.routed_experts)
        self._version_spans += [
            VersionSpan(s.version, start + s.start, start + s.end) for s in generation.version_spans
        ]
        spans = ((self._context_start, start), (start, start + count))
        num_media = len(self.media) - self._num_media_seen
        answered = self.conversation[-1] if self.conversation else MediaMessage({})
        self._turns.append(
            Turn(
                *spans,
                text,
                generation.finished,
                state=self.state,
                num_media=num_media,
                seen=answered.seen,
                canvases=tuple(Canvas.of(medium) for medium in answered.media),
                form=self.form,
            )
        )
        self._context_start = start + count
        self._num_media_seen = len(self.media)
        message = {"role": "assistant", "content": [{"type": "text", "text": text if said is None else said}]}
        self.conversation = (*self.conversation, MediaMessage(message))

    def append_message(self, said: MediaMessage, state: str) -> None:
        """Note what was said to the policy; `Processor.show` puts it into a ledger."""
        self.conversation = (*self.conversation, said)
        self.state = state

    def grade(self, reward: float, *, invalid: bool, info: Mapping[str, Any] | None = None) -> None:
        """Note what the environment made of the last action."""
        self._turns[-1] = replace(self._turns[-1], reward=reward, invalid=invalid, info=info or {})

    def fork(self, prompt: Prompt, media: Sequence[Media], shown: Sequence[MediaMessage]) -> None:
        """Go on in a new ledger, as what is shown now does not begin with what was shown before."""
        if self._turns:
            self._ledgers.append(self._freeze())
        self._begin(shown, prompt, media)

    def branch(self, group_index: int) -> Session:
        """A session that goes on from here by itself, token for token."""
        twin = copy.copy(self)
        twin.group_index = group_index
        for name, value in vars(self).items():
            if isinstance(value, list):
                setattr(twin, name, list(value))  # of values that never change
        return twin

    def trajectory(
        self,
        completion: str,
        outcome: Outcome,
        duration_s: float,
        *,
        info: Mapping[str, float] | None = None,
        failure: str = "",
        end: MediaMessage | None = None,
    ) -> Trajectory:
        """Freeze what was generated; what follows the last action is in no ledger.

        Args:
            completion: the last action.
            outcome: how it ended.
            duration_s: it took.
            info: the environment's last numbers.
            failure: what went wrong.
            end: what the environment showed after the last action.
        """
        last = [self._freeze()] if self._turns else []
        return Trajectory(
            sample=self.sample,
            group_index=self.group_index,
            ledgers=(*self._ledgers, *last),
            completion=completion,
            outcome=outcome,
            duration_s=duration_s,
            info=info or {},
            failure=failure,
            end_seen=end.seen if end else "",
            end_media=end.media if end else (),
        )

    def _begin(self, shown: Sequence[MediaMessage], prompt: Prompt, media: Sequence[Media]) -> None:
        self.token_ids: list[int] = []
        self.engine_ids: list[int] = []
        self.media: list[Media] = []
        self._media_starts: list[int] = []
        self._position_ids: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = []
        self._logprobs: list[float] = []
        self._version_spans: list[VersionSpan] = []
        self._turns: list[Turn] = []
        self._routed_experts = None
        self._context_start = 0
        self._num_media_seen = 0  # by the last action
        self.append_observation(prompt, media, shown)

    def _freeze(self) -> Ledger:
        num_tokens = self._turns[-1].action[1]
        return Ledger(
            token_ids=np.asarray(self.token_ids[:num_tokens], dtype=np.int64),
            position_ids=np.concatenate(self._position_ids, axis=1)[:, :num_tokens].astype(np.int64),
            loss_mask=loss_mask(self._turns, num_tokens),
            sampler_logprobs=np.asarray(self._logprobs[:num_tokens], dtype=np.float32),
            version_spans=tuple(self._version_spans),
            turns=tuple(self._turns),
            media=tuple(self.media[: self._num_media_seen]),
            media_starts=tuple(self._media_starts[: self._num_media_seen]),
            routed_experts=self._routed_experts,
        )


def _longer(known: ExpertArray | None, found: ExpertArray | None) -> ExpertArray | None:
    """Choices of experts with those of later tokens; a token keeps those under which it was first seen."""
    if known is None or found is None:
        return found
    return np.concatenate([known, found[len(known) :]])


def conversation_of(sample: Sample) -> tuple[MediaMessage, ...]:
    """A sample's messages, each with its own media."""
    said, cursor = [], 0
    for message in sample.messages:
        content = message["content"]
        count = 0 if isinstance(content, str) else sum(part["type"] != "text" for part in content)
        said.append(MediaMessage(message, sample.media[cursor : cursor + count]))
        cursor += count
    return tuple(said)
