"""Law 1: the append-only token ledger of one episode. Nothing in it is decoded and encoded again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.mask import loss_mask
from vlrl.types import Generation, Media, Outcome, Prompt, Sample, Trajectory, Turn, VersionSpan


class Session:
    """What the policy has seen and drawn so far.

    Attributes:
        sample: what was asked.
        group_index: which of the group's n.
        token_ids: the ledger, media placeholders expanded.
        engine_ids: the same with one placeholder per medium, as the engine takes it.
        media: in ledger order.
        next_position: rotary position of the next token.
    """

    def __init__(self, sample: Sample, group_index: int) -> None:
        self.sample = sample
        self.group_index = group_index
        self.token_ids: list[int] = []
        self.engine_ids: list[int] = []
        self.media: list[Media] = []
        self.next_position = 0
        self._position_ids: list[np.ndarray[tuple[int, int], np.dtype[np.int64]]] = []
        self._logprobs: list[float] = []
        self._version_spans: list[VersionSpan] = []
        self._turns: list[Turn] = []
        self._context_start = 0
        self._num_media_seen = 0  # by the last action
        self.append_observation(sample.prompt, sample.media)

    def append_observation(self, prompt: Prompt, media: Sequence[Media]) -> None:
        """Append tokens that the policy sees but did not draw, with their media."""
        self.token_ids += prompt.token_ids.tolist()
        self.engine_ids += prompt.engine_ids.tolist()
        self.media += media
        self._position_ids.append(prompt.position_ids)
        self._logprobs += [0.0] * len(prompt.token_ids)
        self.next_position = prompt.next_position

    def append_action(self, generation: Generation) -> None:
        """Append what the policy drew, exactly as drawn."""
        start, count = len(self.token_ids), len(generation.token_ids)
        drawn = generation.token_ids.tolist()
        self.token_ids += drawn
        self.engine_ids += drawn
        positions = np.arange(self.next_position, self.next_position + count)
        self._position_ids.append(np.tile(positions, (3, 1)))
        self.next_position += count
        self._logprobs += generation.sampler_logprobs.tolist()
        self._version_spans += [
            VersionSpan(s.version, start + s.start, start + s.end) for s in generation.version_spans
        ]
        self._turns.append(Turn((self._context_start, start), (start, start + count)))
        self._context_start = start + count
        self._num_media_seen = len(self.media)

    def trajectory(self, completion: str, outcome: Outcome, duration_s: float) -> Trajectory:
        """Freeze the ledger; what follows the last action is dropped, as nothing was drawn after it."""
        num_tokens = self._turns[-1].action[1] if self._turns else 0
        return Trajectory(
            sample=self.sample,
            group_index=self.group_index,
            token_ids=np.asarray(self.token_ids[:num_tokens], dtype=np.int64),
            position_ids=np.concatenate(self._position_ids, axis=1)[:, :num_tokens].astype(np.int64),
            loss_mask=loss_mask(self._turns, num_tokens),
            sampler_logprobs=np.asarray(self._logprobs[:num_tokens], dtype=np.float32),
            version_spans=tuple(self._version_spans),
            turns=tuple(self._turns),
            media=tuple(self.media[: self._num_media_seen]),
            completion=completion,
            outcome=outcome,
            duration_s=duration_s,
        )
