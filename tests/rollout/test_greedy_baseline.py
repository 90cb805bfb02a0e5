"""A greedy episode beside each group (ReMax): played, scored and counted, but no member and not trained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
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
    make_sample,
    no_pixels,
    text_prompt,
)

from vlrl.algorithm.credit import assign_credit
from vlrl.algorithm.filters import failed, zero_variance
from vlrl.config import Config
from vlrl.config.rollout import StragglerConfig
from vlrl.envs.tasks import EnvTasks
from vlrl.errors import ConfigError, EnvError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.collector import CollectedBatch, require_healthy
from vlrl.rollout.groups import RolloutResult, rollout_groups, score_groups
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import rollout_stats
from vlrl.types import EnvTask, Generation, Group, Sample, Sampling, Score, Trajectory

GREEDY = 9
"""What the scripted policy says where it is greedy."""


def config_of(size: int = 3, **sections: Any) -> Config:
    rollout = {"prompts_per_step": 2, "group_size": size, "max_tokens": 32}
    return make_config(rollout=rollout, algorithm="remax", **sections)


def say(session: Session, sampling: Sampling) -> list[int]:
    """A digit that follows from the seed; the greedy answer has another length."""
    return [ord("0") + GREEDY] * 3 if sampling.temperature == 0 else [ord("0") + sampling.seed % 8]


async def score(
    trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]
) -> list[Score | RewardFailure]:
    """The digit."""
    return [Score(float(t.completion[-1]), {}) for t in trajectories]


def play(policy: Any, config: Config, samples: Sequence[Sample] = (), **options: Any) -> RolloutResult:
    chosen = samples or [make_sample([1, 2], id=f"s{number}") for number in range(2)]

    async def run() -> RolloutResult:
        context = make_context(policy, TextProcessor(), config)
        with context.host:
            return await rollout_groups(
                chosen, context, seed_path=(0, 0), **{"greedy_beside": True, **options}
            )

    return asyncio.run(run())


def scored(config: Config, result: RolloutResult) -> list[Group]:
    asyncio.run(score_groups(result.groups, score))
    assign_credit(result.groups, config.algorithm)
    return result.groups


@pytest.mark.parametrize("size", [1, 3])
def test_members_are_compared_with_the_greedy_completion(size: int) -> None:
    config = config_of(size)
    groups = scored(config, play(ScriptedPolicy(say), config))
    for group in groups:
        assert group.greedy is not None and not group.failed
        assert [t.completion for t in group.greedy] == [str(GREEDY) * 3]
        digits = [float(t.completion) for t in group.trajectories]
        assert len(digits) == size
        assert advantages_of(group) == [digit - GREEDY for digit in digits]


def test_it_changes_nothing_of_the_members_and_costs_one_request_a_sample() -> None:
    """Tokens and seeds are those of a run without it; twice the same (law 8)."""
    config = config_of()
    alone, beside, again = ScriptedPolicy(say), ScriptedPolicy(say), ScriptedPolicy(say)
    without = play(alone, config, greedy_beside=False)
    with_it, repeated = play(beside, config), play(again, config)
    said = [[[t.action_ids for t in g.trajectories] for g in r.groups] for r in (without, with_it, repeated)]
    assert said[0] == said[1] == said[2]
    assert all(group.greedy is None for group in without.groups)
    assert len(beside.asked) == len(alone.asked) + 2
    assert [s.temperature for _, s in beside.asked].count(0.0) == 2
    assert [s for _, s in beside.asked] == [s for _, s in again.asked]
    assert len({s.seed for _, s in beside.asked}) == len(beside.asked)


def test_its_tokens_are_generated_and_not_trained_and_its_reward_is_told_apart() -> None:
    config = config_of()
    groups = scored(config, play(ScriptedPolicy(say), config))
    options = PackOptions(
        num_ranks=1, max_tokens=99, max_completion_tokens=32, keep_zero_advantage=True, normalize="none"
    )
    [micro_batches] = pack(groups, no_pixels, options)
    trained = [token for batch in micro_batches for token in batch.target_ids.tolist()]
    assert len(trained) == 2 * 3 and ord("0") + GREEDY not in trained
    numbers = numbers_of(groups)
    assert [each.num_generated_tokens for each in numbers] == [3 + 3, 3 + 3]
    stats = rollout_stats(numbers, [])
    digits = [float(t.completion) for group in groups for t in group.trajectories]
    assert stats["baseline/greedy_reward"] == GREEDY
    assert stats["reward/mean"] == pytest.approx(np.mean(digits))
    assert stats["completion/num_tokens_mean"] == 1.0
    assert stats["reward/zero_variance_groups"] == 0.0  # equal members too would differ from the greedy one


def test_a_group_has_a_signal_where_the_greedy_completion_alone_is_different() -> None:
    config = config_of()
    same, other = [ord("1")], [ord("2")]

    def sure(session: Session, sampling: Sampling) -> list[int]:
        differs = session.sample.id == "s1" and sampling.temperature == 0
        return other if differs else same

    groups = scored(config, play(ScriptedPolicy(sure), config))
    assert advantages_of(groups[0]) == [0.0] * 3 and advantages_of(groups[1]) == [-1.0] * 3
    assert [zero_variance(group) for group in groups] == [False, True]
    for group in groups:
        for t in (*group.trajectories, *(group.greedy or ())):
            t.score = Score(0.0 if t.score is None else t.score.total, {"accuracy": float(t.completion)})
    assert [zero_variance(group, reward="accuracy") for group in groups] == [False, True]
    assert rollout_stats(numbers_of(groups), [])["reward/zero_variance_groups"] == 0.5


# Law 7: a failure is not a reward.


def test_without_a_greedy_reward_a_group_is_left_out_and_counted() -> None:
    config = config_of()
    result = play(ScriptedPolicy(say), config)

    async def breaks(
        trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]
    ) -> list[Score | RewardFailure]:
        assert len(set(groups)) == 4  # a greedy completion is no member of its group
        return [
            RewardFailure("x", "s0", "broken")
            if t.completion[0] == str(GREEDY) and t.sample.id == "s0"
            else Score(1.0, {})
            for t in trajectories
        ]

    failures = asyncio.run(score_groups(result.groups, breaks))
    assign_credit(result.groups, config.algorithm)
    first, second = result.groups
    assert first.failed and not second.failed
    assert [credit.counts for credit in first.credits] == [False] * 3
    assert not failed(first) and failed(second)  # the filter's word: it keeps the second
    numbers = numbers_of(result.groups)
    stats = rollout_stats(numbers, failures)
    assert (stats["groups/num_without_baseline"], stats["failures/reward"]) == (1.0, 1.0)
    assert stats["baseline/greedy_reward"] == 1.0


def test_one_member_is_enough_and_none_is_too_few() -> None:
    config = config_of()
    groups = scored(config, play(ScriptedPolicy(say), config))
    for member in groups[0].trajectories[1:]:
        member.score = None
    for member in groups[1].trajectories:
        member.score = None
    assign_credit(groups, config.algorithm)
    assert [group.failed for group in groups] == [False, True]
    assert [[credit.counts for credit in group.credits] for group in groups] == [
        [True, False, False],
        [False] * 3,
    ]


def test_a_greedy_episode_that_fails_is_played_again_and_then_counts_as_a_failure(tmp_path: Path) -> None:
    """The environment breaks for the greedy episode alone: it is told by what it answers."""
    file = tmp_path / "env.py"
    file.write_text(
        "from vlrl.protocols import Observation, StepResult\n"
        "class Breaks:\n"
        "    def reset(self, task, seed):\n        return Observation('go')\n"
        "    def step(self, action):\n"
        f"        if action.startswith('{GREEDY}'):\n            raise RuntimeError('no nines')\n"
        "        return StepResult(Observation(), float(action), True, False)\n"
        "    def close(self):\n        pass\n"
    )
    config = config_of(env={"isolation": "inline", "attempts": 2}, episodes={"max_failed_share": 0.2})
    task = EnvTask(f"{file}:Breaks")
    result = play(
        ScriptedPolicy(say),
        config,
        [make_sample([1], messages=({"role": "user", "content": "go"},), env=task)],
    )
    [group] = scored(config, result)
    assert group.failed and [t.failed for t in group.greedy or ()] == [True]
    assert (result.counts["env_raised"], result.counts["failed_episodes"]) == (2, 1)
    batch = CollectedBatch(generated=numbers_of([group]))
    with pytest.raises(EnvError, match="1 of 4 episodes failed"):
        require_healthy(config, batch)


# Several turns, several agents, slow episodes.


def test_an_episode_of_several_turns_is_greedy_in_all_of_them_and_has_the_same_task() -> None:
    rows = EnvTasks("visual/frozen_lake", {"level": 1, "image_size": 96}, num_rows=1)
    config = config_of(2, episodes={"max_turns": 3}, generator={"max_model_len": 2048})
    seen: list[tuple[float, str]] = []

    class Looks(TextProcessor):
        def message(self, role: str, parts: Any, where: str) -> Any:
            return super().message(role, [part for part in parts if part["type"] == "text"], where)

    def walk(session: Session, sampling: Sampling) -> list[int]:
        turns = session.trajectory("", "ok", 0.0).turns
        seen.append((sampling.temperature, turns[0].seen if turns else ""))
        return [ord(c) for c in "<action>up</action>"]

    sample = Sample("maze", tuple(rows[0]["messages"]), (), text_prompt([1]), env=EnvTask(**rows[0]["env"]))

    async def run() -> RolloutResult:
        context = make_context(ScriptedPolicy(walk), Looks(), config)
        with context.host:
            return await rollout_groups([sample], context, seed_path=(0, 0), greedy_beside=True)

    [group] = asyncio.run(run()).groups
    assert group.greedy is not None
    [greedy] = group.greedy
    assert len(greedy.turns) == 3
    assert [temperature for temperature, _ in seen].count(0.0) == 3
    assert {t.turns[0].seen for t in (greedy, *group.trajectories)} == {greedy.turns[0].seen}


def test_each_agent_is_compared_with_itself_in_the_greedy_episode() -> None:
    """Tic-tac-toe: greedily the first side wins, else the second does."""
    options = {"id": "classic/tictactoe_v3", "image": False, "text": True}
    row = EnvTasks("pettingzoo", options, num_rows=1)[0]
    config = config_of(2, generator={"max_model_len": 4096}, trainer={"max_tokens_per_micro_batch": 4096})
    sample = Sample(row["id"], tuple(row["messages"]), (), text_prompt([1]), env=EnvTask(**row["env"]))

    def moves(session: Session, sampling: Sampling) -> list[int]:
        first = session.sample.id.endswith("player_1")
        wins = first == (sampling.temperature == 0)
        mine = [0, 1, 2] if wins else [3, 4, 8]
        return [ord(c) for c in f"<action>{mine[session.num_turns]}</action>"]

    async def returns(trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]) -> list[Score]:
        return [Score(t.episode_return, {}) for t in trajectories]

    result = play(ScriptedPolicy(moves), config, [sample])
    asyncio.run(score_groups(result.groups, returns))
    assign_credit(result.groups, config.algorithm)
    assert [g.trajectories[0].sample.id.rpartition("/")[2] for g in result.groups] == ["player_1", "player_2"]
    assert [[t.sample.id for t in g.greedy or ()] for g in result.groups] == [
        [g.trajectories[0].sample.id] for g in result.groups
    ]
    assert [advantages_of(group) for group in result.groups] == [[-2.0, -2.0], [2.0, 2.0]]


def test_an_agent_that_had_no_part_in_the_greedy_episode_has_no_baseline() -> None:
    group = Group([make_group_member(1.0), make_group_member(0.0)], greedy=())
    assert group.failed
    assign_credit([group], config_of().algorithm)
    assert [credit.counts for credit in group.credits] == [False, False]


def make_group_member(total: float) -> Trajectory:
    session = Session(make_sample([1, 2]), 0)
    session.append_action(make_generation([5, 6]))
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(total, {})
    return trajectory


class Slow(ScriptedPolicy):
    """Whoever it names does not end."""

    def __init__(self, *, greedy: bool) -> None:
        super().__init__(say)
        self.greedy, self.cancelled = greedy, 0

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        if self.greedy == (sampling.temperature == 0) and (self.greedy or session.group_index == 0):
            try:
                await asyncio.sleep(0.05 if self.greedy else 60.0)
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await super().generate(session, sampling)


def test_redundant_members_are_left_out_but_the_greedy_episode_is_waited_for() -> None:
    config = config_of(2, episodes={"lockstep": False})
    stragglers = StragglerConfig(policy="redundancy", num_extra=1)
    late = play(Slow(greedy=True), config, stragglers=stragglers)
    assert [len(g.greedy or ()) for g in late.groups] == [1, 1]
    assert late.counts["surplus_episodes"] == 2
    policy = Slow(greedy=False)
    groups = play(policy, config, stragglers=stragglers).groups
    assert [[t.group_index for t in g.trajectories] for g in groups] == [[1, 2], [1, 2]]
    assert [len(g.greedy or ()) for g in groups] == [1, 1] and policy.cancelled == 2


def test_a_group_whose_greedy_episode_is_cut_off_is_left_out() -> None:
    config = config_of(2, episodes={"lockstep": False})
    stragglers = StragglerConfig(policy="cut_off", cut_off_share=0.5, cut_off_s=0.0)
    result = play(Slow(greedy=True), config, stragglers=stragglers)
    assert result.of_samples == [[], []]
    assert result.counts["cut_off_episodes"] == 2


def test_a_reward_of_whole_groups_is_refused_beside_it() -> None:
    rewards: list[dict[str, Any]] = [{"name": "answer_exact"}, {"name": "group_diversity"}]
    config = config_of(rewards=rewards)
    with pytest.raises(ConfigError, match=r"reward 'group_diversity' compares .* algorithm.credit=remax"):
        ComposedReward.of_run(config, {"": ()})
    ComposedReward.of_run(make_config(rewards=rewards), {"": ()}).close()
    rewards[1]["weight"] = 0
    ComposedReward.of_run(config_of(rewards=rewards), {"": ()}).close()
