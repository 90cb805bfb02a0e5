"""Trained tokens know where they are in their episodes, in whichever ledger or slice they lie."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from builders import (
    ScriptedPolicy,
    TextProcessor,
    make_config,
    make_context,
    make_generation,
    make_sample,
    no_pixels,
    text_prompt,
)

from vlrl.algorithm.credit import assign_credit
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.types import Group, Score, Trajectory

PPO = AlgorithmConfig.model_validate("ppo")


def episode(
    index: int, turns: Sequence[Sequence[int]], rewards: Sequence[float], forked: int = -1
) -> Trajectory:
    """Actions of these tokens, an observation of one token before each but the first; one turn may fork."""
    session = Session(make_sample([1, 2]), index)
    for number, ids in enumerate(turns):
        if number == forked:
            session.fork(text_prompt([1, 9]), (), ())
        elif number:
            session.append_observation(text_prompt([7], session.next_position), ())
        session.append_action(make_generation(list(ids)))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(sum(rewards), {}, tuple(rewards))
    return trajectory


def groups() -> list[Group]:
    """Episodes 0 and 2 are alike, so a tree shares their tokens; 1 forks, and is alone in a later group."""
    first = Group([episode(0, [[3, 4], [5]], [0.5, 1.0]), episode(1, [[3], [6, 5]], [0.0, 2.0], forked=1)])
    second = Group([episode(0, [[3, 4], [5]], [0.5, -1.0])], smallest=1)
    assign_credit([first, second], PPO)
    return [first, second]


EXPECTED = [
    # episode, turn, place, token, reward of the turn
    (0, 0, 2, 3, 0.5), (0, 0, 3, 4, 0.5), (0, 1, 5, 5, 1.0),
    (1, 0, 2, 3, 0.0), (1, 1, 5, 6, 2.0), (1, 1, 6, 5, 2.0),
    (2, 0, 2, 3, 0.5), (2, 0, 3, 4, 0.5), (2, 1, 5, 5, -1.0),
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_tokens": 4},
        {"num_ranks": 3},
        {"num_ranks": 2, "sequence_parallel": 2},
        {"num_ranks": 4, "sequence_parallel": 2, "max_tokens": 6},
    ],
)
def test_a_token_is_found_wherever_it_is_packed(options: dict[str, Any]) -> None:
    defaults: dict[str, Any] = {"num_ranks": 1, "max_tokens": 100, "max_completion_tokens": 8}
    batch = pack(groups(), no_pixels, PackOptions(**{**defaults, **options}, numbers_steps=True))
    found = [
        (*steps.tolist(), int(token), float(reward))
        for of_rank in batch
        for micro_batch in of_rank
        for steps, token, reward in zip(
            micro_batch.steps, micro_batch.target_ids, micro_batch.advantages, strict=True
        )
    ]
    assert sorted(found) == EXPECTED
    assert all(m.steps.shape == (len(m.target_ids), 3) for of_rank in batch for m in of_rank)


def test_without_a_critic_nobody_asks() -> None:
    batch = pack(groups(), no_pixels, PackOptions(num_ranks=1, max_tokens=100, max_completion_tokens=8))
    assert batch[0][0].steps is None


def test_a_step_without_tokens_has_none() -> None:
    [[empty]] = pack([], no_pixels, PackOptions(1, 100, 8, numbers_steps=True))
    assert len(empty.target_ids) == 0 and (empty.steps is None or empty.steps.shape == (0, 3))


def test_groups_of_one_count_only_where_a_critic_is_their_baseline() -> None:
    alone = Group([episode(0, [[3]], [1.0])])
    assign_credit([alone], PPO)
    assert alone.failed and not alone.credits[0].counts
    alone.smallest = 1
    assign_credit([alone], PPO)
    assert alone.credits[0].counts and alone.credits[0].advantages[0].tolist() == [0, 0, 1]
    unscored = episode(0, [[3]], [1.0])
    unscored.score = None
    failed = Group([unscored], smallest=1)
    assign_credit([failed], PPO)
    assert failed.failed and not failed.credits[0].counts and not np.any(failed.credits[0].trained[0])


def test_one_completion_of_each_prompt_is_rolled_out_credited_and_packed() -> None:
    """Groups are as they were played, sent pickled by a worker, up to the micro-batch."""
    config = make_config(algorithm="ppo", rollout={"group_size": 1, "max_tokens": 5})
    context = make_context(ScriptedPolicy(lambda *_: [5, 6]), TextProcessor(), config)
    samples = [make_sample([1, 2], id=name) for name in "ab"]
    rolled_out = asyncio.run(rollout_groups(samples, context, seed_path=(0, 0))).groups
    for group in rolled_out:
        assert len(group.trajectories) == 1
        group.trajectories[0].score = Score(1.0, {})
    assign_credit(rolled_out, config.algorithm)
    sent: list[Group] = pickle.loads(pickle.dumps(rolled_out))
    assert not any(group.failed for group in sent)
    [[micro_batch]] = pack(sent, no_pixels, PackOptions.of(config, config.algorithm))
    assert sorted(micro_batch.steps[:, 0].tolist()) == [0, 0, 1, 1]
    assert micro_batch.advantages.tolist() == [1, 1, 1, 1]
