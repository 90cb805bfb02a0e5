"""DAPO's settings (arXiv 2503.14476) on the page of recipes: they load, and groups are kept by accuracy."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
import yaml
from builders import make_config, make_sample, make_trajectory

from vlrl.algorithm.credit import assign_credit
from vlrl.algorithm.filters import zero_variance
from vlrl.config import Config
from vlrl.rollout.groups import score_groups
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Group

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
THOUGHT = "<think>Counted.</think>"


@pytest.fixture
def config() -> Config:
    [section] = re.findall(r"^## DAPO$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    [block] = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    return make_config(**yaml.safe_load(block))


def group_of(config: Config, said: str) -> Group:
    """Completions of one question whose answer is 8, scored by the rewards; the last one fills its budget."""
    lengths = [8] * (len(said) - 1) + [config.rollout.max_tokens]
    group = Group(
        [
            make_trajectory(
                make_sample(answer="8"),
                range(length),
                index=i,
                reward=None,
                completion=THOUGHT + f"<answer>{one}</answer>",
            )
            for i, (one, length) in enumerate(zip(said, lengths, strict=True))
        ]
    )
    with ComposedReward(config.rewards, inline=True) as reward:
        assert asyncio.run(score_groups([group], reward.score_all)) == []
    assign_credit([group], config.algorithm)
    return group


def test_the_loss_is_dapos(config: Config) -> None:
    algorithm = config.algorithm
    assert (algorithm.clip_low, algorithm.clip_high, algorithm.aggregation) == (0.2, 0.28, "token")
    assert algorithm.kl_coef == 0 and algorithm.scale_by_std


def test_right_answers_one_of_them_too_long_are_dropped_and_mixed_ones_kept(config: Config) -> None:
    [found] = config.batch.filters
    assert found.name == "zero_variance"
    all_right = group_of(config, "8888")
    assert zero_variance(all_right)  # its total differs
    assert not zero_variance(all_right, **found.options)
    assert zero_variance(group_of(config, "8887"), **found.options)
    assert not zero_variance(group_of(config, "7777"), **found.options)
