"""Held-out accuracy of a scripted policy, as a whole and by what the rows say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from builders import ScriptedPolicy, TextProcessor, in_process, make_config, make_context, make_sample

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.evaluate import Evaluation, evaluate
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Sample

ANSWERED = {level: f"<think>.</think><answer>{n}</answer>" for level, n in (("easy", 4), ("hard", 5))}


def row(number: int, **metadata: str) -> Sample:
    return make_sample([1, 2], id=f"s{number}", answer="4", metadata=metadata)


def evaluated(samples: Sequence[Sample], config: Config) -> Evaluation:
    policy = ScriptedPolicy(
        lambda session, sampling: [ord(c) for c in ANSWERED[session.sample.metadata["level"]]]
    )
    reward = ComposedReward(config.rewards, {}, config.scoring)
    try:
        return asyncio.run(
            evaluate(
                samples, in_process(make_context(policy, TextProcessor(), config), reward), reward, config
            )
        )
    finally:
        reward.close()


def configured(*keys: str) -> Config:
    return make_config(rewards=[{"name": "answer_normalized"}], eval={"group_by": list(keys)})


def test_accuracy_is_reported_for_each_value_of_a_key() -> None:
    rows = [row(0, level="easy", on="web"), row(1, level="hard", on="web"), row(2, level="hard")]
    whole = evaluated(rows, configured("level", "on"))
    assert whole.accuracy_greedy == pytest.approx(1 / 3)
    told = {name: (part.accuracy_sampled, part.num_samples) for name, part in whole.parts.items()}
    assert told == {"level=easy": (1.0, 1), "level=hard": (0.0, 2), "on=web": (0.5, 2)}
    assert whole.metrics()["heldout/accuracy_greedy/on=web"] == 0.5
    assert whole.summary()["parts"]["level=easy"]["accuracy_greedy"] == 1.0


def test_a_row_held_out_twice_is_sampled_twice_and_every_evaluation_alike() -> None:
    policy = ScriptedPolicy(lambda session, sampling: [65])
    config = configured()
    setting = make_context(policy, TextProcessor(), config)
    rows = [row(0), row(0), row(1)]
    seeds = []
    for of_them in (rows, rows, rows[:2]):  # the last as an evaluation of fewer rows in between
        policy.asked.clear()
        with ComposedReward(config.rewards, inline=True) as reward:
            asyncio.run(evaluate(of_them, in_process(setting, reward), reward, config))
        seeds.append([sampling.seed for _, sampling in policy.asked if sampling.temperature > 0])
    assert seeds[0] == seeds[1]
    assert seeds[2] == seeds[0][:2]
    assert len(set(seeds[0])) == 3


def test_without_keys_there_is_one_number() -> None:
    whole = evaluated([row(0, level="easy")], configured())
    assert whole.summary() == {"accuracy_greedy": 1.0, "accuracy_sampled": 1.0, "num_samples": 1}


def test_a_key_that_no_row_has_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no held-out row has 'size' in its metadata; there is level"):
        evaluated([row(0, level="easy")], configured("size"))
