"""Small groups as they are kept: a question that was answered twice, an episode of two ledgers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.types import (
    Credit,
    EnvTask,
    Group,
    Ledger,
    Media,
    Prompt,
    Sample,
    Score,
    Trajectory,
    Turn,
    VersionSpan,
)


class FakeProcessor:
    """Spells token 5 as <5>."""

    def token_texts(self, token_ids: Iterable[int]) -> list[str]:
        return [f"<{i}>" for i in token_ids]


def make_media(pixels: Any, fill: str = "a") -> Media:
    return Media("image", fill * 64, np.asarray(pixels, np.uint8)[None], (56, 56), (1, 4, 4), 4)


def make_group(scored: bool = True) -> Group:
    row = DigitSum("heldout", num_rows=1)[0]
    parts = row["messages"][0]["content"]
    media = tuple(make_media(p["image"], fill) for p, fill in zip(parts[:2], "ab", strict=True))
    prompt = Prompt(np.arange(3), np.arange(3), np.zeros((3, 3), np.int64), 3)
    # The processor keeps the row's messages; whatever pixels they carry must not reach the JSON.
    sample = Sample(row["id"], tuple(row["messages"]), media, prompt, answer=row["answer"])
    trajectories = [
        Trajectory(
            sample=sample,
            group_index=index,
            ledgers=(
                Ledger(
                    token_ids=np.array([1, 2, 3, 4, 5]),
                    position_ids=np.zeros((3, 5), np.int64),
                    loss_mask=np.array([0, 0, 0, 1, 1], bool),
                    sampler_logprobs=np.array([0, 0, 0, -0.5, -np.inf], np.float32),
                    version_spans=(VersionSpan(6, 3, 4), VersionSpan(7, 4, 5)),
                    turns=(Turn((0, 3), (3, 5), text="<answer>7</answer>", num_media=2),),
                    media=media,
                ),
            ),
            completion="<answer>7</answer>",
            outcome="ok",
            score=Score(1.5, {"exact": 1.0, "format": 0.5}, (), {"exact": "both are 7"}) if scored else None,
        )
        for index in range(2)
    ]
    mask = np.array([0, 0, 0, 1, 1], bool)
    credits = [Credit((np.full(5, value, np.float32),), (mask,)) for value in (0.5, -0.5)]
    return Group(trajectories, credits if scored else [])


def make_ledger(turns: Sequence[Turn], media: Sequence[Media]) -> Ledger:
    count = turns[-1].action[1]
    mask = np.zeros(count, bool)
    for turn in turns:
        mask[slice(*turn.action)] = True
    return Ledger(
        np.arange(count),
        np.zeros((3, count), np.int64),
        mask,
        np.where(mask, -1.0, 0.0).astype(np.float32),
        (VersionSpan(1, turns[0].action[0], count),),
        tuple(turns),
        tuple(media),
    )


def make_episode() -> Group:
    """An episode of three turns, the last one under a context that was written again."""
    a, b, c = (make_media(np.full((56, 56, 3), v), name) for v, name in ((1, "a"), (2, "b"), (3, "c")))
    one = make_ledger(
        [
            Turn((0, 2), (2, 3), text="left", num_media=1, state="s0"),
            Turn((3, 4), (4, 6), text="??", num_media=1, reward=-0.5, invalid=True, state="s0"),
        ],
        [a, a],
    )
    # The context was written again: the opening's image again, then two that are new.
    two = make_ledger([Turn((0, 3), (3, 4), text="up", num_media=3, reward=1.0, finished=False)], [a, b, c])
    prompt = Prompt(np.arange(2), np.arange(2), np.zeros((3, 2), np.int64), 2)
    env = EnvTask("visual/mazes", {"level": 2}, {}, 7)
    sample = Sample("m", (), (a,), prompt, env=env)
    trajectory = Trajectory(
        sample, 0, (one, two), "up", "truncated", info={"success": 1.0}, duration_s=1.23456
    )
    advantages = tuple(np.arange(n, dtype=np.float32) for n in (6, 4))
    credit = Credit(advantages, (one.loss_mask & (np.arange(6) != 2), two.loss_mask))
    return Group([trajectory], [credit])
