"""A program's own loop before any process starts: what is refused, and which token gets which advantage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_generation, make_sample, no_pixels, text_prompt

from vlrl import TrainingClient
from vlrl.errors import ConfigError
from vlrl.library.advantages import by_episode, with_advantages
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.types import Group, Trajectory


def score(completion: str, answer: str) -> float:
    return float(completion == answer)


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"num_steps": 3}, "num_steps: a TrainingClient does not read it"),
        (
            {"batch": {"max_dropped_share": 0.5}, "eval": {"every": 2}},
            "batch, eval: a TrainingClient does not",
        ),
        ({"asynchronous": {"mode": "async"}, "episodes": {"lockstep": False}}, "asynchronous: a Training"),
        ({"optim": {"lr": 1e-6, "warmup_steps": 3}}, "optim.warmup_steps: a TrainingClient does not read it"),
        ({"algorithm": "ppo"}, "algorithm.critic is trained by vlrl's own loop alone"),
        (
            {"algorithm": {"correction": {"kind": "decoupled"}}},
            "kind=decoupled needs the logprobs from before",
        ),
        ({"rollout": {"num_workers": 1}}, "rollout.num_workers=1: a TrainingClient plays episodes in the"),
        ({"data": {"train": "rows.jsonl"}}, r"data.train is given, and rows are given to sample\(\)"),
        ({"rollout": {"groupsize": 4}}, "unknown key 'rollout.groupsize'; did you mean 'rollout.group_size'"),
        ({"lr": 1e-6}, "TrainingClient: unknown key 'lr'; did you mean 'optim.lr'"),
    ],
)
def test_what_a_loop_of_ones_own_has_no_use_for_is_refused(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingClient("m", score, **sections)


def test_arguments_are_the_keys_of_a_config_and_nothing_has_started() -> None:
    client = TrainingClient("m", score, rollout={"group_size": 4}, data={"max_prompt_tokens": 64})
    assert client.config.rollout.group_size == 4 and client.config.data.max_prompt_tokens == 64
    assert client.config.rollout.num_workers == 0 and client.num_updates == 0
    assert [reward.weight for reward in client.config.rewards] == [1.0]
    with pytest.raises(ConfigError, match=r"follows forward_backward\(\)"):
        client.optim_step()
    client.close()
    assert not Path("runs").exists()
    with pytest.raises(ConfigError, match="is closed"):
        client.sample([{"prompt": "a", "answer": "b"}])


@pytest.mark.parametrize("method", ["save_state", "export"])
def test_what_lies_in_a_folder_is_not_replaced(method: str) -> None:
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("all of it")
    for folder in ("mine", "mine/thesis.tex", "."):
        with pytest.raises(ConfigError, match="with other files than are to be written"):
            getattr(TrainingClient("m"), method)(folder)
    assert Path("mine/thesis.tex").read_text() == "all of it"


def test_rows_of_a_file_are_read_as_for_training() -> None:
    Path("rows.jsonl").write_text('{"prompt": "1+1?", "answer": "2"}\n' * 3)
    rows = TrainingClient("m").rows("rows.jsonl")
    assert [row["answer"] for row in rows] == ["2"] * 3


def episode(index: int, turns: list[list[int]], *, forks: bool = False, failed: bool = False) -> Trajectory:
    """An episode of turns of these tokens; with forks each lies in a ledger of its own."""
    session = Session(make_sample([1, 2]), index)
    for number, ids in enumerate(turns):
        if number and forks:
            session.fork(text_prompt([1, 2, 3]), (), ())
        elif number:
            session.append_observation(text_prompt([7], session.next_position), ())
        session.append_action(make_generation(ids, finished=True))
    return session.trajectory("", "env_error" if failed else "ok", 0.0)


def advantages_of(group: Group) -> list[list[float]]:
    return [
        [float(v) for of, on in zip(c.advantages, c.trained, strict=True) for v in of[on]]
        for c in group.credits
    ]


@pytest.mark.parametrize("forks", [False, True])
def test_an_advantage_is_a_number_or_one_a_turn_or_one_a_token(forks: bool) -> None:
    episodes = [episode(index, [[5, 6, 7], [8, 9]], forks=forks) for index in range(3)]
    (group,) = with_advantages([Group(episodes)], [[2.0, [1.0, -1.0], np.arange(5.0)]])
    assert advantages_of(group) == [[2.0] * 5, [1.0] * 3 + [-1.0] * 2, [0.0, 1.0, 2.0, 3.0, 4.0]]
    assert all(credit.counts for credit in group.credits)


def test_masks_hold_for_given_advantages_and_failed_episodes_do_not_count() -> None:
    def but_first(trajectory: Trajectory) -> list[Any]:
        masks = [ledger.loss_mask.copy() for ledger in trajectory.ledgers]
        for mask in masks:
            mask[np.flatnonzero(mask)[:1]] = False
        return masks

    group = Group([episode(0, [[5, 6]]), episode(1, [[5, 6]], failed=True)])
    (found,) = with_advantages([group], [[[1.0, 2.0], 3.0]], [but_first])
    assert advantages_of(found)[0] == [2.0]
    assert [credit.counts for credit in found.credits] == [True, False]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "there are 1 groups, and advantages of 0"),
        ([[1.0]], "group 0 has 2 episodes, and 1 advantages"),
        ([[1.0, float("nan")]], "group 0, episode 1: its advantage is not finite: nan"),
        (
            [[1.0, [1.0] * 3]],
            r"episode 1: its advantage has the shape \(3,\); give one number, one for each of its 2",
        ),
    ],
)
def test_advantages_that_do_not_fit_are_refused(given: Any, message: str) -> None:
    group = Group([episode(0, [[5, 6], [7, 8]]), episode(1, [[5, 6], [7, 8]])])
    with pytest.raises(ConfigError, match=message):
        with_advantages([group], given)


@pytest.mark.parametrize("num_ranks", [1, 2])
def test_logprobs_are_found_again_by_episode(num_ranks: int) -> None:
    groups = [
        Group([episode(0, [[5, 6], [7]]), episode(3, [[5, 8]])]),
        Group([episode(0, [[9, 5], [6]], forks=True), episode(1, [[4]], failed=True)]),
    ]
    probes = with_advantages(groups, [[1.0, 1.0], [1.0, 1.0]])
    options = PackOptions(num_ranks=num_ranks, max_tokens=64, max_completion_tokens=8, keeps_origins=True)
    batch = pack(probes, no_pixels, options)
    logprobs = [[-m.target_ids.astype(np.float32) for m in of_rank] for of_rank in batch]
    found = by_episode(probes, batch, logprobs)
    assert [[values.tolist() for values in of_group] for of_group in found[:1]] == [[[-5, -6, -7], [-5, -8]]]
    assert found[1][0].tolist() == [-9, -5, -6] and np.isnan(found[1][1]).all()
