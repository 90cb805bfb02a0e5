"""Both sides of a real PettingZoo game played by one policy: sessions, groups and rewards of their own."""

from __future__ import annotations

import asyncio
from typing import Any

from builders import ScriptedPolicy, TextProcessor, make_config, make_setting, text_prompt

from vlrl.envs.tasks import EnvTasks
from vlrl.rollout import Drawn, rollout_groups
from vlrl.session import Session
from vlrl.types import EnvTask, Sample, Sampling

OPTIONS = {"id": "classic/tictactoe_v3", "image": False, "text": True}


def play(policy: Any, *, options: dict[str, Any] | None = None, **sections: Any) -> Drawn:
    rows = EnvTasks("pettingzoo", {**OPTIONS, **(options or {})}, num_rows=2)
    config = make_config(
        rollout={"prompts_per_step": 2, "group_size": 2, "max_tokens": 32}, generator={"max_model_len": 4096},
        trainer={"max_tokens_per_micro_batch": 4096}, **sections,
    )  # fmt: skip
    samples = [
        Sample(row["id"], tuple(row["messages"]), (), text_prompt([1]), env=EnvTask(**row["env"]))
        for row in (rows[0], rows[1])
    ]

    async def run() -> Drawn:
        setting = make_setting(policy, TextProcessor(), config)
        with setting.host:
            return await rollout_groups(samples, setting, seed_path=(0, 0))

    return asyncio.run(run())


def moves(first: list[int], second: list[int]) -> ScriptedPolicy:
    """Each side's fields in turn."""

    def answer(session: Session, sampling: Sampling) -> list[int]:
        mine = first if session.sample.id.endswith("player_1") else second
        return [ord(c) for c in f"<action>{mine[session.num_turns % len(mine)]}</action>"]

    return ScriptedPolicy(answer)


def test_each_side_is_a_group_of_its_own_with_its_own_reward() -> None:
    policy = moves([0, 1, 2], [3, 4])  # the first side fills the first column and wins
    drawn = play(policy)
    assert [len(g.trajectories) for g in drawn.groups] == [2, 2, 2, 2]
    sides = [g.trajectories[0].sample.id.rpartition("/")[2] for g in drawn.groups]
    assert sides == ["player_1", "player_2"] * 2
    for winner, loser in zip(drawn.groups[::2], drawn.groups[1::2], strict=True):
        assert [(t.episode_return, len(t.turns), t.outcome) for t in winner.trajectories] == [
            (1.0, 3, "ok")
        ] * 2
        assert [(t.episode_return, len(t.turns), t.outcome) for t in loser.trajectories] == [
            (-1.0, 2, "ok")
        ] * 2
    # What a side's moves brought while the other moved is on its own last turn.
    assert [turn.reward for turn in drawn.groups[1].trajectories[0].turns] == [0.0, -1.0]
    assert len({sampling.seed for _, sampling in policy.asked}) == len(policy.asked) == 2 * 2 * 5


def test_a_side_sees_its_own_conversation_alone() -> None:
    drawn = play(moves([0, 1, 2], [3, 4]))
    for group in drawn.groups[:2]:
        (ledger,) = group.trajectories[0].ledgers
        text = "".join(chr(i) for i in ledger.token_ids)
        mine, other = ("0", "3") if group.trajectories[0].sample.id.endswith("player_1") else ("3", "0")
        said = text.split("[system]")[-1].split("[user]", 1)[1]
        assert f"[assistant]<action>{mine}</action>" in said
        assert f"[assistant]<action>{other}</action>" not in said


def test_an_invalid_move_is_answered_to_the_side_that_made_it() -> None:
    drawn = play(moves([0, 0, 1, 2], [3, 4]))
    first = drawn.groups[0].trajectories[0]
    assert [turn.invalid for turn in first.turns] == [False, True, False, False]
    assert first.episode_return == 1.0


def test_a_side_without_turns_left_ends_the_game_for_both() -> None:
    drawn = play(moves([0, 1, 2], [3, 4]), episodes={"max_turns": 2})
    assert {t.outcome for g in drawn.groups for t in g.trajectories} == {"truncated"}


def test_with_an_opponent_inside_it_is_an_episode_of_one() -> None:
    drawn = play(moves([], list(range(9))), options={"opponents": {"player_2": "random"}})
    assert len(drawn.groups) == 2
    assert all(t.turns for g in drawn.groups for t in g.trajectories)
