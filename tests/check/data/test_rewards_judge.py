"""A judge costs money: the check looks it up, and does not ask it about every row."""

from __future__ import annotations

import asyncio

from builders import make_sample

from vlrl.check.data.rewards import RewardTrial, encode_bytes
from vlrl.config.options import RewardConfig


def test_an_async_reward_is_not_called() -> None:
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}  # nobody answers there
    judge = RewardConfig(name="judge", options={"endpoint": endpoint})
    with asyncio.Runner() as runner:
        sample = make_sample(answer="8", target="<think>5+3</think><answer>8</answer>")
        assert list(RewardTrial([judge], runner, encode_bytes).problems(sample)) == []
        wrong = make_sample(answer="8", target="<think>5+3</think><answer>9</answer>")
        rewards = [judge, RewardConfig(name="answer_exact")]
        [problem] = RewardTrial(rewards, runner, encode_bytes).problems(wrong)
        assert problem.reason == "reference not rewarded"
