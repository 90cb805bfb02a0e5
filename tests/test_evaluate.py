"""Held-out accuracy of a scripted policy, as a whole and by what the rows say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from builders import (
    ScriptedPolicy,
    TextProcessor,
    in_process,
    make_config,
    make_context,
    make_generation,
    make_sample,
)

from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.evaluate import Evaluation, evaluate
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.metrics import describe
from vlrl.types import Generation, Sample, Sampling

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
    summary = whole.summary()
    assert set(summary.pop("estimates")) == {"greedy", "mean@1"}
    assert summary == {"accuracy_greedy": 1.0, "accuracy_sampled": 1.0, "num_samples": 1}
    names = {"heldout/accuracy_greedy", "heldout/accuracy_sampled", "heldout/num_samples"}
    assert set(whole.metrics()) == names


def in_set(name: str, number: int, answer: str = "4", **metadata: str) -> Sample:
    return replace(
        make_sample([1, 2], id=f"s{number}", answer=answer, metadata=metadata), source=f"heldout/{name}"
    )


def test_each_set_is_measured_by_its_own_reward_and_has_its_own_categories() -> None:
    config = make_config(
        rewards=[{"name": "answer_normalized"}], eval={"group_by": ["level"]}, data={"pass_threshold": 1.0}
    )
    own = {"heldout/b": make_config(rewards=[{"name": "think_answer_format"}]).rewards}
    samples = [in_set("a", 0, level="easy"), in_set("a", 1, level="hard"), in_set("b", 0, level="hard")]
    policy = ScriptedPolicy(
        lambda session, sampling: [ord(c) for c in ANSWERED[session.sample.metadata["level"]]]
    )
    with ComposedReward(config.rewards, own, config.scoring, inline=True) as reward:
        rollouts = in_process(make_context(policy, TextProcessor(), config), reward)
        whole = asyncio.run(evaluate(samples, rollouts, reward, config))
    assert {name: (part.accuracy_greedy, part.num_samples) for name, part in whole.parts.items()} == {
        "set=a": (0.5, 2),
        "set=a/level=easy": (1.0, 1),
        "set=a/level=hard": (0.0, 1),
        "set=b": (1.0, 1),
        "set=b/level=hard": (1.0, 1),
        "level=easy": (1.0, 1),
        "level=hard": (0.5, 2),
    }
    assert whole.metrics()["heldout/accuracy_greedy/set=b"] == 1.0
    assert describe("heldout/accuracy_greedy/set=b").endswith("of set=b (fraction)")


def test_several_answers_of_a_row_give_pass_and_majority() -> None:
    config = make_config(rewards=[{"name": "answer_normalized"}], eval={"num_answers": 4})
    said = {"s0": "4455", "s1": "5666"}  # by the order in which they are asked

    def answer(session: Session, sampling: Sampling) -> list[int]:
        number = 4 if not sampling.temperature else int(said[session.sample.id][session.group_index])
        return [ord(c) for c in f"<think>.</think><answer>{number}</answer>"]

    policy = ScriptedPolicy(answer)
    with ComposedReward(config.rewards, {}, config.scoring, inline=True) as reward:
        rollouts = in_process(make_context(policy, TextProcessor(), config), reward)
        whole = asyncio.run(evaluate([row(0), row(1)], rollouts, reward, config))
    assert whole.values() == {
        "greedy": 1.0,
        "mean@4": 0.25,
        "pass@1": 0.25,
        "pass@2": pytest.approx((1 - 1 / 6) / 2),
        "pass@4": 0.5,
        "majority@4": 0.25,  # a tie of right and wrong, then three that are wrong
    }
    assert whole.metrics()["heldout/pass@4"] == 0.5 and describe("heldout/pass@4")
    assert len({sampling.seed for _, sampling in policy.asked if sampling.temperature}) == 8


def test_all_rows_are_asked_at_once() -> None:
    class Waiting:
        """Answers nobody before all have asked."""

        def __init__(self, expected: int) -> None:
            self.expected, self.asked, self.all_in = expected, 0, asyncio.Event()

        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            self.asked += 1
            if self.asked % self.expected == 0:
                self.all_in.set()
            await asyncio.wait_for(self.all_in.wait(), 30)
            return make_generation([65])

    config = make_config(rewards=[{"name": "answer_normalized"}])
    with ComposedReward(config.rewards, {}, config.scoring, inline=True) as reward:
        rollouts = in_process(make_context(Waiting(200), TextProcessor(), config), reward)
        asyncio.run(evaluate([row(number) for number in range(200)], rollouts, reward, config))


def test_a_key_that_no_row_has_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no held-out row has 'size' in its metadata; there is level"):
        evaluated([row(0, level="easy")], configured("size"))
