"""Agents that speak OpenAI's API, unchanged, as episodes: functions, programs, and how they fail."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, make_sample
from endpoints import generated_in, spell
from open_files import left_open, open_files

from vlrl.algorithm.credit import assign_credit
from vlrl.errors import ConfigError
from vlrl.rollout.groups import RolloutResult, rollout_groups, score_groups
from vlrl.rollout.session import Session
from vlrl.run.run import Run
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import episode_stats
from vlrl.types import EnvTask, Generation, Sample, Sampling, Score

FILE = Path(__file__).parents[1] / "helpers" / "agents.py"
PROGRAM = {"command": [sys.executable, str(FILE)]}


def sample_of(agent: str | dict[str, Any], id: str = "s", **task: Any) -> Sample:
    options = {"agent": f"{FILE}:{agent}"} if isinstance(agent, str) else agent
    return replace(make_sample(), id=id, env=EnvTask("agent", options, {"start": 2, **task}, seed=9))


def play(samples: Sequence[Sample], policy: Any, *, size: int = 2, **sections: Any) -> RolloutResult:
    episodes = {"lockstep": False, **sections.pop("episodes", {})}
    rollout = {"prompts_per_step": 4, "group_size": 2, "max_tokens": 8}
    config = make_config(rollout=rollout, episodes=episodes, **sections)

    async def run() -> RolloutResult:
        context = make_context(policy, TextProcessor(), config)
        try:
            return await rollout_groups(samples, context, seed_path=(0, 0), group_size=size)
        finally:
            await context.endpoint.close()

    return asyncio.run(run())


def say(text: str) -> ScriptedPolicy:
    return ScriptedPolicy(lambda session, sampling: [ord(c) for c in text])


@pytest.mark.parametrize("agent", ["countdown", PROGRAM], ids=["function", "program"])
def test_an_episode_is_what_the_agent_was_shown_and_the_policy_drew(agent: Any) -> None:
    policy = say("-")
    [group] = (generated := play([sample_of(agent)], policy)).groups
    assert not generated.counts
    for trajectory in group.trajectories:
        [ledger] = trajectory.ledgers
        assert spell(ledger) == "[user]2[assistant]-[user]1[assistant]-"
        assert ledger.loss_mask.tolist() == [c == "-" for c in spell(ledger)]
        assert (trajectory.outcome, trajectory.completion, trajectory.episode_return) == ("ok", "-", 1.0)
        assert [turn.reward for turn in trajectory.turns] == [0.0, 1.0]
        assert trajectory.info == {"success": 1.0, "wrong": 0.0, "seed_low": 2.0}
    assert len({sampling.seed for _, sampling in policy.asked}) == len(policy.asked) == 4


def test_the_rewards_of_an_episode_score_it() -> None:
    generated = play([sample_of("countdown")], say("-"))
    config = make_config(rewards=[{"name": "episode_return"}, {"name": "success", "weight": 2.0}])

    async def score() -> None:
        reward = ComposedReward(config.rewards, {}, config.scoring)
        try:
            assert not await score_groups(generated.groups, reward.score_all)
        finally:
            reward.close()

    asyncio.run(score())
    assert [t.score.total for t in generated.groups[0].trajectories if t.score] == [3.0, 3.0]
    assert episode_stats(numbers_of(generated.groups), generated.counts)["episode/success"] == 1.0


def test_sub_agents_are_ledgers_of_one_trajectory() -> None:
    policy = say("-")
    [group] = play([sample_of("countdown_async")], policy).groups
    for trajectory in group.trajectories:
        assert {spell(ledger) for ledger in trajectory.ledgers} == {
            f"[system]{name}[user]2[assistant]-[user]1[assistant]-" for name in "AB"
        }
        assert [turn.reward for turn in trajectory.turns] == [0.0, 0.0, 0.0, 2.0]
        assert len(generated_in(trajectory.ledgers)) == 4
    # The same sub-agent in the same state generates apart in another member of the group.
    assert len({sampling.seed for _, sampling in policy.asked}) == len(policy.asked) == 8
    for number, trajectory in enumerate(group.trajectories):
        trajectory.score = Score(float(number), {})
    assign_credit([group], make_config().algorithm)
    assert [credit.num_trained for credit in group.credits] == [4, 4]


@pytest.mark.parametrize(
    ("result", "reward", "info"),
    [
        (None, 0.0, {}),
        (0.25, 0.25, {}),
        (True, 1.0, {}),
        ({"success": True}, 0.0, {"success": 1.0}),
        ({"reward": None, "steps": 3}, 0.0, {"steps": 3.0}),
    ],
)
def test_what_an_agent_may_say_of_its_episode(result: Any, reward: float, info: dict[str, float]) -> None:
    [group] = play([sample_of("says", result=result)], say("-"), size=1).groups
    assert (group.trajectories[0].episode_return, group.trajectories[0].info) == (reward, info)


@pytest.mark.parametrize("result", [float("nan"), "1", [1], {"reward": "much"}, {"reward": float("inf")}])
def test_a_result_that_is_none_is_the_agents_failure(result: Any) -> None:
    generated = play([sample_of("says", result=result)], say("-"), size=1)
    assert generated.counts == Counter(agent_raised=2, failed_episodes=1)
    assert "its result cannot be read" in generated.groups[0].trajectories[0].failure


# Law 7.


@pytest.mark.parametrize(
    ("agent", "task", "says"),
    [
        ("countdown", {"fails": "raise"}, "raised RuntimeError: broken scaffold"),
        ("countdown", {"fails": "leave"}, "raised SystemExit"),
        ("countdown", {"fails": "timeout"}, "raised TimeoutError: of its own"),
        ("idle", {}, "made no request to the model"),
        (PROGRAM, {"fails": "raise"}, "exited with code 1"),
        (PROGRAM, {"fails": "leave"}, "exited with code 3"),
        (PROGRAM, {"says": "fine"}, "its last line of output must be a JSON object"),
        ({"command": ["sh", "-c", "kill -9 $$"]}, {}, "died of SIGKILL"),
        ({"command": ["true"]}, {}, "not ''"),
    ],
)
def test_an_agent_that_fails_every_time_is_left_out_of_its_group(agent: Any, task: Any, says: str) -> None:
    samples = [sample_of(agent, id="bad", **task), sample_of("countdown", id="good")]
    generated = play(samples, say("-"), size=1)
    bad, good = generated.groups
    assert generated.counts == Counter(agent_raised=2, failed_episodes=1)
    assert [t.outcome for t in bad.trajectories] == ["agent_error"]
    assert says in bad.trajectories[0].failure
    assert bad.failed
    assert [t.outcome for t in good.trajectories] == ["ok"]
    assert episode_stats(numbers_of(generated.groups), generated.counts)["failures/agent_raised"] == 2.0


def test_the_traceback_names_the_scaffolds_line() -> None:
    [group] = play([sample_of("countdown", fails="raise")], say("-"), size=1).groups
    assert "agents.py" in group.trajectories[0].failure


def test_an_agent_that_fails_once_is_played_again_with_the_same_seeds(tmp_path: Path) -> None:
    policy = say("-")
    generated = play([sample_of("countdown", fails="raise", once=str(tmp_path))], policy, size=1)
    assert generated.counts == Counter(agent_raised=1, replayed_episodes=1)
    seeds = [sampling.seed for _, sampling in policy.asked]
    assert seeds[0] == seeds[1] != seeds[2]
    assert len(generated.groups[0].trajectories[0].turns) == 2


def hanging_program(pid: Path, id: str) -> Sample:
    """A program with a child, both of which sleep; it writes down its number first."""
    script = f"echo $$ > {pid}.part; mv {pid}.part {pid}; sleep 3600 & sleep 3600"
    return sample_of({"command": ["sh", "-c", script]}, id=id)


def test_a_program_over_its_time_is_killed_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    hanging = hanging_program(pid, "s")
    generated = play([hanging], say("-"), size=1, env={"attempts": 1}, episodes={"timeout_s": 3})
    assert generated.counts == Counter(episode_hung=1, failed_episodes=1)
    [trajectory] = generated.groups[0].trajectories
    assert trajectory.outcome == "timeout"
    assert "episodes.timeout_s=3" in trajectory.failure
    await_end_of_group(int(pid.read_text()))


def await_end_of_group(group: int) -> None:
    """Wait until its processes are gone; what is killed takes its time, and a zombie waits for init."""
    while running_in_group(group):
        time.sleep(0.01)


def running_in_group(group: int) -> list[str]:
    """The processes of a group that are not zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat[2]) == group and stat[0] != "Z":
                found.append(folder.name)
    return found


def test_functions_over_their_time_are_given_up(tmp_path: Path) -> None:
    mark = tmp_path / "told"
    samples = [sample_of("hangs_async", id="async", mark=str(mark)), sample_of("countdown", fails="hang")]
    generated = play(samples, say("-"), size=1, env={"attempts": 1}, episodes={"timeout_s": 2})
    assert generated.counts == Counter(episode_hung=2, failed_episodes=2)
    assert [t.outcome for g in generated.groups for t in g.trajectories] == ["timeout"] * 2
    while not mark.exists():  # its own thread is told to stop, and does
        time.sleep(0.01)
    left = [thread for thread in threading.enumerate() if "hangs_async" in thread.name]
    for thread in left:
        thread.join(30)
        assert not thread.is_alive()
    assert all(thread.daemon for thread in threading.enumerate() if thread.name.startswith("agent "))


def test_an_agent_that_outgrows_the_models_room_is_truncated_and_no_failure() -> None:
    endless = sample_of("countdown", start=100)
    [group] = play([endless], say("-"), episodes={"max_turns": 3}).groups
    assert [(len(t.turns), t.outcome, t.episode_return) for t in group.trajectories] == [
        (3, "truncated", 0)
    ] * 2
    room = {"max_model_len": 64}
    generated = play([endless], say("?"), generator=room, trainer={"max_tokens_per_micro_batch": 64})
    assert not generated.counts
    assert {t.outcome for t in generated.groups[0].trajectories} == {"truncated"}
    assert all(len(t.ledgers[0].token_ids) <= 64 for t in generated.groups[0].trajectories)


def test_an_agent_whose_first_request_has_no_room_has_failed() -> None:
    room = {"max_model_len": 64}
    huge = sample_of("countdown", start=10**60)
    generated = play([huge], say("-"), size=1, generator=room, trainer={"max_tokens_per_micro_batch": 64})
    assert generated.counts == Counter(agent_raised=2, failed_episodes=1)
    assert "max_model_len=64" in generated.groups[0].trajectories[0].failure


def test_an_error_of_the_engine_is_no_failure_of_the_agent() -> None:
    class Broken(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            raise KeyError("engine")

    with pytest.raises(KeyError, match="engine"):
        play([sample_of("countdown"), sample_of(PROGRAM, id="p")], Broken(lambda *_: []))


def test_stragglers_that_are_cut_off_leave_nothing(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    samples = [sample_of("waits", id="fast", file=str(pid)), hanging_program(pid, "slow")]
    stragglers = {"policy": "cut_off", "cut_off_share": 0.5, "cut_off_s": 0}
    config = make_config(episodes={"lockstep": False, "stragglers": stragglers})

    async def run() -> RolloutResult:
        context = make_context(say("-"), TextProcessor(), config)
        options = config.episodes.stragglers
        try:
            return await rollout_groups(samples, context, seed_path=(0, 0), group_size=1, stragglers=options)
        finally:
            await context.endpoint.close()

    generated = asyncio.run(run())
    assert [t.sample.id for g in generated.groups for t in g.trajectories] == ["fast"]
    assert generated.counts == Counter(cut_off_episodes=1)
    await_end_of_group(int(pid.read_text()))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "must be either agent"),
        ({"agent": "a", "command": ["b"]}, "must be either agent"),
        ({"agent": "a", "colour": "b"}, "colour"),
        ({"command": "true"}, "a list of words"),
        ({"command": []}, "a list of words"),
        ({"command": ["/no/such/program"]}, "cannot be started"),
        ({"agent": f"{FILE}:nothing"}, "has no 'nothing'"),
        ({"agent": f"{FILE}:__name__"}, "is not a function"),
        ({"agent": "unheard_of"}, "no agent is named"),
    ],
)
def test_a_wrong_option_ends_the_run(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        play([sample_of(options)], say("-"))


def test_an_agent_and_lockstep_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match=r"sample 's'.*episodes\.lockstep=false"):
        play([sample_of("countdown")], say("-"), episodes={"lockstep": True})


def test_a_run_says_so_before_an_engine_starts(tiny_model: Path, tmp_path: Path) -> None:
    rows = [{"id": "1", "messages": [{"role": "user", "content": "x"}]}]
    rows[0]["env"] = {"name": "agent", "options": {"agent": f"{FILE}:countdown"}, "task": {"start": 2}}
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    config = make_config(
        tiny_model, data={"train": {"name": str(tmp_path / "rows.jsonl")}}, run={"dir": str(tmp_path)}
    )
    with (
        pytest.raises(ConfigError, match=r"episodes\.lockstep=false"),
        TrainConsole("test", 1) as console,
        Run(config, console, train=False, generate=True),
    ):
        pass


def test_no_descriptor_is_left() -> None:
    samples = [sample_of("countdown"), sample_of(PROGRAM, id="p")]

    play(samples, say("-"))  # what is loaded once
    gc.collect()
    before = open_files()
    play(samples, say("-"))
    gc.collect()  # the scaffold does not close its clients
    assert left_open(before) == {}
