"""Episodes against a scripted policy: seeds, order, outcomes, failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from builders import (
    ScriptedPolicy,
    TextProcessor,
    advantages_of,
    make_config,
    make_context,
    make_generation,
    make_group,
    make_sample,
    no_pixels,
)

from vlrl.algorithm.credit import assign_credit
from vlrl.algorithm.filters import failed, zero_variance
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.rollout import StragglerConfig
from vlrl.envs.visual.games.frozen_lake import FrozenLake
from vlrl.errors import DataError, ScoringError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import ScoreFn, require_room, require_scored, rollout_groups, score_groups
from vlrl.rollout.session import Session
from vlrl.scoring.compose import RewardFailure
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import rollout_stats
from vlrl.types import Generation, Group, Sampling, Score, Trajectory

CONFIG = make_config(rollout={"prompts_per_step": 3, "group_size": 4, "max_tokens": 5, "temperature": 0.7})
SAMPLES = [make_sample([1, 2, 3], id=f"s{i}") for i in range(3)]


def say(text: str) -> Callable[[Session, Sampling], list[int]]:
    return lambda session, sampling: [ord(c) for c in text]


def generate(policy: ScriptedPolicy, step: int = 0, **options: object) -> list[Group]:
    context = make_context(policy, TextProcessor(), CONFIG)
    return asyncio.run(rollout_groups(SAMPLES, context, seed_path=(0, step), **options)).groups  # type: ignore[arg-type]


def test_no_two_requests_of_a_run_are_given_the_same_seed() -> None:
    policy = ScriptedPolicy(say("x"))
    for step in range(3):
        generate(policy, step)
    seeds = [sampling.seed for _, sampling in policy.asked]
    assert len(seeds) == 3 * 3 * 4
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("options", [{}, {"stragglers": StragglerConfig(policy="redundancy", num_extra=1)}])
def test_a_row_that_appears_twice_in_a_step_is_sampled_with_other_seeds(options: Any) -> None:
    twice = [SAMPLES[0], SAMPLES[1], SAMPLES[0]]
    policy = ScriptedPolicy(lambda session, sampling: [65 + sampling.seed % 26 for _ in range(8)])
    context = make_context(policy, TextProcessor(), CONFIG)
    first, again = (
        asyncio.run(rollout_groups(twice, context, seed_path=(0, 4), **options)).groups for _ in range(2)
    )
    num_asked = len(policy.asked) // 2
    assert len({sampling.seed for _, sampling in policy.asked[:num_asked]}) == num_asked
    said = [[t.completion for t in group.trajectories] for group in first]
    assert said[0] != said[2]
    assert said == [[t.completion for t in group.trajectories] for group in again]


def test_the_same_step_of_the_same_run_is_given_the_same_seeds() -> None:
    first, second = ScriptedPolicy(say("x")), ScriptedPolicy(say("x"))
    generate(first, 7)
    generate(second, 7)
    assert [s.seed for _, s in first.asked] == [s.seed for _, s in second.asked]


def test_another_run_seed_gives_other_seeds() -> None:
    policy = ScriptedPolicy(say("x"))
    for run_seed in (0, 1):
        context = make_context(policy, TextProcessor(), CONFIG)
        asyncio.run(rollout_groups(SAMPLES, context, seed_path=(run_seed, 0)))
    assert len({s.seed for _, s in policy.asked}) == 2 * 3 * 4


def test_groups_come_in_the_order_of_the_samples_whatever_finishes_first() -> None:
    class SlowFirst(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            await asyncio.sleep(0.02 if session.sample.id == "s0" else 0.0)
            return await super().generate(session, sampling)

    policy = SlowFirst(lambda session, _: [ord(session.sample.id[1]), ord(str(session.group_index))])
    groups = generate(policy)
    assert [[t.completion for t in g.trajectories] for g in groups] == [
        [f"{i}{k}" for k in range(4)] for i in range(3)
    ]
    assert [[t.group_index for t in g.trajectories] for g in groups] == [[0, 1, 2, 3]] * 3


def test_sampling_follows_the_config_and_greedy_sets_the_temperature_to_zero() -> None:
    policy = ScriptedPolicy(say("x"))
    generate(policy)
    generate(policy, greedy=True, group_size=1)
    sampled, greedy = policy.asked[0][1], policy.asked[-1][1]
    assert (sampled.temperature, sampled.max_tokens) == (0.7, 5)
    assert greedy.temperature == 0.0
    assert len(policy.asked) == 3 * 4 + 3


def test_a_completion_cut_at_max_tokens_is_truncated() -> None:
    class Cut(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            return make_generation([65], finished=session.group_index != 2)

    groups = generate(Cut(say("")))
    assert [t.outcome for t in groups[0].trajectories] == ["ok", "ok", "truncated", "ok"]


def test_episodes_of_frozen_lake_that_failed_alike_teach_nothing() -> None:
    """Nineteen moves at -0.01 each, one or several an action: eight equal failures have no advantages."""
    trajectories = []
    for index in range(8):
        env = FrozenLake(level=1, step_penalty=0.01, max_steps=19, max_moves=3, image_size=96)
        env.reset({}, 0)
        session, ended, rng = Session(make_sample([1]), index), False, np.random.default_rng(index)
        while not ended:
            moves = ",".join(["up"] * int(rng.integers(1, 4)))  # against the wall: nothing moves
            session.append_action(make_generation([65]))
            result = env.step(f"<action>{moves}</action>")
            session.grade(result.reward, invalid=False)
            ended = result.terminated or result.truncated
        trajectories.append(session.trajectory("", "truncated", 0.0))
    assert len({sum(turn.reward for turn in t.turns) for t in trajectories}) > 1  # rounding does differ
    for trajectory in trajectories:
        trajectory.score = Score(trajectory.episode_return, {})
    group = Group(trajectories)
    assign_credit([group], CONFIG.algorithm)
    assert not any(advantages_of(group))
    assert not zero_variance(group)
    assert rollout_stats(numbers_of([group]), [])["reward/zero_variance_groups"] == 1.0


# Law 7: a failure is not a reward.


def failing(sample_id: str, group_index: int) -> ScoreFn:
    """A score that is the group index, but for one trajectory that has none."""

    async def score(
        trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]
    ) -> list[Score | RewardFailure]:
        return [
            RewardFailure("x", sample_id, f"broken at step {step}", "Traceback: line 1")
            if (t.sample.id, t.group_index) == (sample_id, group_index)
            else Score(float(t.group_index), {})
            for t in trajectories
        ]

    return score


@pytest.mark.parametrize("aggregation", ["token", "sequence", "constant"])
@pytest.mark.parametrize("credit", ["episode", "discounted", "turn_groups", "state_groups"])
def test_a_completion_that_cannot_be_scored_is_left_out_and_the_others_are_a_group(
    aggregation: Any, credit: Any
) -> None:
    """Rewards 0, none, 2, 3: the three have the advantages and weights of a group of three."""
    options = AlgorithmConfig(scale_by_std=False, credit=credit)
    groups = generate(ScriptedPolicy(say("xy")))
    failures = asyncio.run(score_groups(groups, failing("s1", 1), step=3))
    assert [str(failure) for failure in failures] == ["reward 'x', sample 's1': broken at step 3"]
    assert [g.failed for g in groups] == [False, False, False]
    assign_credit(groups, options)
    times = 2 if credit == "state_groups" else 1  # all are in one state: both of its summands are the same
    assert np.allclose(advantages_of(groups[1]), times * np.array([-5 / 3, 0.0, 1 / 3, 4 / 3]))
    assert [credit.num_trained for credit in groups[1].credits] == [2, 0, 2, 2]
    assert all(failed(groups[i]) == (i != 1) for i in range(3))  # the filter drops such a group, if wanted
    without = [*groups[:1], Group([t for t in groups[1].trajectories if t.score]), *groups[2:]]
    assign_credit(without, options)
    weights = []
    for batch_of in (groups, without):
        [micro_batches] = pack(
            batch_of,
            no_pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=1000,
                aggregation=aggregation,
                max_completion_tokens=5,
                keep_zero_advantage=True,
            ),
        )
        weights.append([m.weights.tolist() for m in micro_batches])
    assert weights[0] == weights[1]


@pytest.mark.parametrize("num_scored", [0, 1])
def test_a_group_of_fewer_than_two_scores_has_no_baseline_and_does_not_count(num_scored: int) -> None:
    groups = generate(ScriptedPolicy(say("xy")))
    asyncio.run(score_groups(groups, failing("", 0)))
    for trajectory in groups[1].trajectories[num_scored:]:
        trajectory.score = None
    assert [g.failed for g in groups] == [False, True, False]
    for credit in ("episode", "discounted", "turn_groups", "state_groups"):
        assign_credit(groups, AlgorithmConfig(credit=credit))
        assert not any(advantages_of(groups[1]))
        [micro_batches] = pack(
            groups,
            no_pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=1000,
                aggregation="sequence",
                max_completion_tokens=5,
                keep_zero_advantage=True,
            ),
        )
        assert {i for m in micro_batches for i in m.token_sample_ids} == {"s0", "s2"}
        assert np.isclose(sum(m.weights.sum() for m in micro_batches), 1.0)


def test_too_many_failures_end_the_run_with_the_first_tracebacks() -> None:
    failures = [RewardFailure("x", f"s{i}", "broken", f"Traceback {i}") for i in range(5)]
    require_scored(failures, 25, 0.2)
    require_scored(failures, 5, 1.0)
    require_scored([], 5, 0.0)
    with pytest.raises(ScoringError) as caught:
        require_scored(failures, 24, 0.2)
    text = str(caught.value)
    assert "5 of 24 completions could not be scored, more than scoring.max_failed_share=0.2" in text
    assert [f"Traceback {i}" in text for i in range(5)] == [True, True, True, False, False]
    assert "reward 'x', sample 's2': broken" in text
    with pytest.raises(ScoringError):
        require_scored(failures[:1], 1000, 0.0)


def test_an_error_of_our_own_is_not_swallowed_as_a_failure() -> None:
    async def score(
        trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]
    ) -> list[Score | RewardFailure]:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        asyncio.run(score_groups([make_group([1, 1])], score))


def test_truncated_sampling_is_refused_as_the_trainer_does_not_compute_it() -> None:
    for option in ({"top_p": 0.9}, {"top_k": 50}):
        with pytest.raises(Exception, match="the one that the trainer computes"):
            make_config(rollout=option)


def test_a_prompt_that_leaves_no_room_is_refused_by_name_and_number() -> None:
    require_room("fits", num_prompt_tokens=90, max_tokens=10, max_model_len=100)
    with pytest.raises(DataError, match=r"'long' needs 101 tokens .*max_model_len=100"):
        require_room("long", num_prompt_tokens=91, max_tokens=10, max_model_len=100)
