"""Both sides of a real PettingZoo game played by one policy: sessions, groups and rewards of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from builders import (
    ScriptedPolicy,
    TextProcessor,
    advantages_of,
    make_config,
    make_context,
    no_pixels,
    text_prompt,
)

from vlrl.algorithm.credit import assign_credit
from vlrl.algorithm.filters import zero_variance
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.learning.policies import untrained_agents
from vlrl.envs.tasks import EnvTasks
from vlrl.errors import ConfigError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import RolloutResult, rollout_groups
from vlrl.rollout.outcome import outcome_of
from vlrl.rollout.self_play import try_policies
from vlrl.rollout.session import Session
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import rollout_stats, stats_by_policy
from vlrl.types import EnvTask, Sample, Sampling, Score

OPTIONS = {"id": "classic/tictactoe_v3", "image": False, "text": True}


def play(
    policy: Any, *, options: dict[str, Any] | None = None, form: str = "", **sections: Any
) -> RolloutResult:
    rows = EnvTasks("pettingzoo", {**OPTIONS, **(options or {})}, num_rows=2)
    config = make_config(
        rollout={"prompts_per_step": 2, "group_size": 2, "max_tokens": 32}, generator={"max_model_len": 4096},
        trainer={"max_tokens_per_micro_batch": 4096}, **sections,
    )  # fmt: skip
    samples = [
        Sample(row["id"], tuple(row["messages"]), (), text_prompt([1]), env=EnvTask(**row["env"]), form=form)
        for row in (rows[0], rows[1])
    ]

    async def run() -> RolloutResult:
        context = make_context(policy, TextProcessor(), config)
        with context.host:
            return await rollout_groups(samples, context, seed_path=(0, 0))

    return asyncio.run(run())


def moves(first: list[int], second: list[int]) -> ScriptedPolicy:
    """Each side's fields in turn."""

    def answer(session: Session, sampling: Sampling) -> list[int]:
        mine = first if session.sample.id.endswith("player_1") else second
        return [ord(c) for c in f"<action>{mine[session.num_turns % len(mine)]}</action>"]

    return ScriptedPolicy(answer)


def test_each_side_is_a_group_of_its_own_with_its_own_reward() -> None:
    policy = moves([0, 1, 2], [3, 4])  # the first side fills the first column and wins
    generated = play(policy)
    assert [len(g.trajectories) for g in generated.groups] == [2, 2, 2, 2]
    sides = [g.trajectories[0].sample.id.rpartition("/")[2] for g in generated.groups]
    assert sides == ["player_1", "player_2"] * 2
    for winner, loser in zip(generated.groups[::2], generated.groups[1::2], strict=True):
        assert [(t.episode_return, len(t.turns), t.outcome) for t in winner.trajectories] == [
            (1.0, 3, "ok")
        ] * 2
        assert [(t.episode_return, len(t.turns), t.outcome) for t in loser.trajectories] == [
            (-1.0, 2, "ok")
        ] * 2
    # What a side's moves brought while the other moved is on its own last turn.
    assert [turn.reward for turn in generated.groups[1].trajectories[0].turns] == [0.0, -1.0]
    assert len({sampling.seed for _, sampling in policy.asked}) == len(policy.asked) == 2 * 2 * 5


def test_a_side_sees_its_own_conversation_alone() -> None:
    generated = play(moves([0, 1, 2], [3, 4]))
    for group in generated.groups[:2]:
        (ledger,) = group.trajectories[0].ledgers
        text = "".join(chr(i) for i in ledger.token_ids)
        mine, other = ("0", "3") if group.trajectories[0].sample.id.endswith("player_1") else ("3", "0")
        said = text.split("[system]")[-1].split("[user]", 1)[1]
        assert f"[assistant]<action>{mine}</action>" in said
        assert f"[assistant]<action>{other}</action>" not in said


@pytest.mark.parametrize("of_row", ["", '{"regex": "x"}'])
def test_a_side_has_the_form_of_its_policy_or_of_the_row(of_row: str) -> None:
    policies = {
        "one": {"agents": ["player_1"], "structured_outputs": {"choice": ["a"]}},
        "two": {"agents": ["player_2"]},
    }
    generated = play(moves([0, 1, 2], [3, 4]), form=of_row, policies=policies, lora={"sync": "adapter"})
    found = {
        trajectory.sample.agent: {turn.form for turn in trajectory.turns}
        for group in generated.groups
        for trajectory in group.trajectories
    }
    assert found == {"player_1": {'{"choice": ["a"]}'}, "player_2": {of_row}}


def test_an_invalid_move_is_answered_to_the_side_that_made_it() -> None:
    generated = play(moves([0, 0, 1, 2], [3, 4]))
    first = generated.groups[0].trajectories[0]
    assert [turn.invalid for turn in first.turns] == [False, True, False, False]
    assert first.episode_return == 1.0


def test_a_side_without_turns_left_ends_the_game_for_both() -> None:
    generated = play(moves([0, 1, 2], [3, 4]), episodes={"max_turns": 2})
    assert {t.outcome for g in generated.groups for t in g.trajectories} == {"truncated"}


DUEL = """
from vlrl.protocols import Observation, StepResult

class Duel:
    agents = ("first", "second")

    def reset(self, task, seed):
        self._num = 0
        return {"first": Observation("begin")}

    def step(self, actions):
        [(agent, text)] = actions.items()
        self._num += 1
        other = "second" if agent == "first" else "first"
        if text == "stop" or self._num == 4:  # who did not act yet has ended, too
            return {each: StepResult(Observation(), 1.0, True, False) for each in self.agents}
        return {other: StepResult(Observation("go on"), 0.5, False, False)}

    def close(self):
        pass
"""


@pytest.mark.parametrize("credit", ["episode", "discounted", "turn_groups", "state_groups"])
@pytest.mark.parametrize("num_stopped", [1, 2, 3])
def test_an_agent_that_acted_in_one_episode_or_none_has_no_baseline_and_the_run_goes_on(
    num_stopped: int, credit: Any, tmp_path: Path
) -> None:
    """The first agent ends some of the three episodes before the second one's turn has come."""
    (tmp_path / "duel.py").write_text(DUEL)
    policy = ScriptedPolicy(
        lambda session, sampling: [ord(c) for c in ("stop" if session.group_index < num_stopped else "go")]
    )
    sample = Sample("d", (), (), text_prompt([1]), env=EnvTask(f"{tmp_path / 'duel.py'}:Duel"))
    config = make_config(
        rollout={"prompts_per_step": 2, "group_size": 3, "max_tokens": 32},
        generator={"max_model_len": 4096}, trainer={"max_tokens_per_micro_batch": 4096},
    )  # fmt: skip

    async def run() -> RolloutResult:
        context = make_context(policy, TextProcessor(), config)
        with context.host:
            return await rollout_groups([sample], context, seed_path=(0, 0))

    groups = asyncio.run(run()).groups
    for group in groups:
        for trajectory in group.trajectories:
            trajectory.score = Score(trajectory.episode_return + trajectory.group_index, {})
    assert [len(g.trajectories) for g in groups] == [3, 3 - num_stopped][: 2 - (num_stopped == 3)]
    assign_credit(groups, AlgorithmConfig(credit=credit))
    first, *second = groups
    assert not first.failed
    for group in second:
        assert group.failed == (len(group.trajectories) < 2)
        assert any(advantages_of(group)) != group.failed
    [micro_batches] = pack(
        groups,
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=4096,
            aggregation="token",
            max_completion_tokens=5,
            keep_zero_advantage=True,
        ),
    )
    trained = {name for m in micro_batches for name in m.token_sample_ids}
    assert trained == {g.trajectories[0].sample.id for g in groups if not g.failed}
    assert rollout_stats(numbers_of(groups), [])["groups/num_without_baseline"] == float(num_stopped == 2)


GROWING = """
from vlrl.protocols import Observation, StepResult

class Growing:
    agents = ("first", "second")

    def reset(self, task, seed):
        self._num = 0
        return {"first": Observation("begin")}

    def step(self, actions):
        [agent] = actions
        self._num += 1
        other = "second" if agent == "first" else "first"
        text = "long " * 1000 if self._num == 4 else "go on"  # too long for the first agent's third turn
        return {other: StepResult(Observation(text), 0.5, False, False)}

    def close(self):
        pass
"""


def test_an_agent_whose_context_forked_and_then_had_no_room_keeps_its_turns(tmp_path: Path) -> None:
    (tmp_path / "growing.py").write_text(GROWING)
    sample = Sample("d", (), (), text_prompt([1]), env=EnvTask(f"{tmp_path / 'growing.py'}:Growing"))
    config = make_config(
        rollout={"prompts_per_step": 2, "group_size": 2, "max_tokens": 32},
        generator={"max_model_len": 512}, trainer={"max_tokens_per_micro_batch": 4096},
        episodes={"context": {"policy": "window", "num_turns": 1}},
    )  # fmt: skip

    async def run() -> RolloutResult:
        context = make_context(ScriptedPolicy(lambda *_: [ord("x")]), TextProcessor(), config)
        with context.host:
            return await rollout_groups([sample], context, seed_path=(0, 0))

    first, second = asyncio.run(run()).groups
    for group in (first, second):
        assert [(len(t.turns), t.outcome) for t in group.trajectories] == [(2, "truncated")] * 2


def test_with_an_opponent_inside_it_is_an_episode_of_one() -> None:
    generated = play(moves([], list(range(9))), options={"opponents": {"player_2": "random"}})
    assert len(generated.groups) == 2
    assert all(t.turns for g in generated.groups for t in g.trajectories)


OLDER: dict[str, Any] = {
    "lora": {"sync": "adapter"},
    "policies": {
        "learner": {"agents": ["player_1"]},
        "older": {"agents": ["player_2"], "copies": "learner", "every": 2},
    },
}


def test_an_older_self_plays_and_is_not_trained() -> None:
    generated = play(moves([0, 1, 2], [3, 4]), **OLDER)
    for group in generated.groups:
        for trajectory in group.trajectories:
            trajectory.score = Score(float(trajectory.group_index), {})
    assert [group.agent for group in generated.groups] == ["player_1", "player_2"] * 2
    config = make_config(**OLDER)
    assign_credit(generated.groups, config.algorithm, untrained=untrained_agents(config))
    assert [any(advantages_of(group)) for group in generated.groups] == [True, False] * 2
    [[batch]] = pack(generated.groups, no_pixels, PackOptions.of(config))
    assert {name.rpartition("/")[2] for name in batch.token_sample_ids} == {"player_1"}
    assert batch.weights.sum() == pytest.approx(1.0)  # the older self's tokens are in no mean
    assert batch.policy_ids is not None and set(batch.policy_ids.tolist()) == {0}
    stats = stats_by_policy(numbers_of(generated.groups), config)
    assert stats == {"policies/learner/reward_mean": 0.5, "policies/older/reward_mean": 0.5}


def test_what_an_older_self_did_is_kept_with_what_is_trained_beside_it() -> None:
    """A filter judges the learner's groups; of a sample with none left the ticket is empty."""
    generated = play(moves([0, 1, 2], [3, 4]), **OLDER)
    for number, group in enumerate(generated.groups):
        for trajectory in group.trajectories:
            trajectory.score = Score(float(trajectory.group_index if number < 2 else 0), {})
    config = make_config(**OLDER)
    assign_credit(generated.groups, config.algorithm, untrained=untrained_agents(config))
    filters = [("zero_variance", zero_variance)]
    first, second = (
        outcome_of(groups, filters, untrained=untrained_agents(config))
        for groups in (generated.groups[:2], generated.groups[2:])
    )
    assert [len(first.kept), len(first.dropped)] == [2, 0]
    assert [len(second.kept), len(second.dropped), second.reason] == [0, 2, "zero_variance"]


@pytest.mark.parametrize(
    ("env", "policies", "said"),
    [
        (EnvTask("pettingzoo", OPTIONS), {"player_1": 0}, "nobody plays player_2; name each agent"),
        (EnvTask("visual/mazes"), {"player_1": 0}, "env 'visual/mazes' has one agent"),
        (None, {"player_1": 0}, "sample 'd' has no environment, and policies name player_1"),
        (EnvTask("pettingzoo", OPTIONS), {"player_1": 0, "player_2": 1}, ""),
    ],
)
def test_an_agent_whom_no_policy_plays_is_named_before_engines_start(
    env: EnvTask | None, policies: dict[str, int], said: str
) -> None:
    sample = Sample("d", (), (), text_prompt([1]), env=env)

    async def run() -> None:
        context = make_context(moves([0], [1]), TextProcessor(), make_config())
        with context.host:
            await try_policies([sample, sample], context.host, policies)

    if not said:
        asyncio.run(run())
        return
    with pytest.raises(ConfigError, match=said):
        asyncio.run(run())
