"""A reward that changes what it is given changes nothing for another call, however many workers there are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.scoring.compose import ComposedReward
from vlrl.scoring.isolated import isolated

GREEDY = """
def plain(completion, answer, *, boxes):
    boxes.append(0)
    answer["seen"] = True
    return float(len(boxes) + 10 * len(answer))

async def waits(completion, answer, *, boxes):
    return plain(completion, answer, boxes=boxes)

from vlrl.rewards import reward

@reward(batched=True)
def batch(completions, answers, *, boxes):
    return [plain(c, a, boxes=b) for c, a, b in zip(completions, answers, boxes)]
"""


@pytest.mark.parametrize("name", ["plain", "waits", "batch"])
@pytest.mark.parametrize(("workers", "inline"), [(1, False), (2, False), (1, True)])
def test_scores_do_not_depend_on_what_a_reward_changes(
    tmp_path: Path, name: str, workers: int, inline: bool
) -> None:
    (tmp_path / "greedy.py").write_text(GREEDY)
    sample = make_sample(answer={"box": [1, 2]}, metadata={"boxes": [1, 2, 3]})  # shared by the group
    group = [make_trajectory(sample, [7], completion="x") for _ in range(8)]
    config = RewardConfig(name=f"{tmp_path}/greedy.py:{name}")
    with ComposedReward([config], scoring=ScoringConfig(num_workers=workers), inline=inline) as reward:
        scores: list[Any] = asyncio.run(reward.score_all(group))
    assert [score.total for score in scores] == [24.0] * 8
    assert sample.answer == {"box": [1, 2]} and sample.metadata == {"boxes": [1, 2, 3]}


def test_copies_share_arrays_that_cannot_be_written_to() -> None:
    pixels = np.zeros((2, 2), np.uint8)
    sample = make_sample(metadata={"pixels": pixels, "list": [{"a": (1, [2])}], "set": {3}})
    twin = isolated(sample)
    twin.metadata["list"][0]["a"][1].append(9)
    twin.metadata["set"].add(4)
    assert sample.metadata["list"] == [{"a": (1, [2])}] and sample.metadata["set"] == {3}
    assert np.shares_memory(twin.metadata["pixels"], pixels)
    with pytest.raises(ValueError, match="read-only"):
        twin.metadata["pixels"][0, 0] = 1
    pixels[0, 0] = 1  # ours is as it was
