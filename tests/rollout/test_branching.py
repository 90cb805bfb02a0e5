"""Episodes that branch, against a scripted policy: what a tree shares, generates, and fails at."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, open_tiny, text_prompt

from vlrl.algorithm.credit import assign_credit
from vlrl.config import Config
from vlrl.errors import ConfigError
from vlrl.rollout.branch_points import try_branches
from vlrl.rollout.groups import RolloutResult, rollout_groups
from vlrl.rollout.session import Session
from vlrl.run.run import Run
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.group_numbers import num_generated_tokens, numbers_of
from vlrl.tracking.stats import episode_stats
from vlrl.types import EnvTask, Ledger, Sample, Sampling, Score, Trajectory

FILE = Path(__file__).parents[1] / "helpers" / "episodes.py"


def sample_of(task: dict[str, Any], *, id: str = "s", env: str = "Countdown", **options: Any) -> Sample:
    text = str(task.get("start", 4))
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    prompt = text_prompt([ord(c) for c in f"[user]{text}[assistant]"])
    return Sample(id, (message,), (), prompt, env=EnvTask(f"{FILE}:{env}", options, task, seed=7))


def config_of(at: int | str = "middle", *, branches: int = 2, size: int = 4, **sections: Any) -> Config:
    episodes = {"branching": {"num_branches": branches, "at": at}, **sections.pop("episodes", {})}
    rollout = {"prompts_per_step": 4, "group_size": size, "max_tokens": 4}
    return make_config(rollout=rollout, episodes=episodes, **sections)


def play(
    samples: list[Sample], policy: Any, config: Config, *, step: int = 0, processor: Any = None
) -> RolloutResult:
    async def run() -> RolloutResult:
        context = make_context(policy, processor or TextProcessor(), config)
        branching = config.episodes.branching
        with context.host:
            return await rollout_groups(samples, context, seed_path=(0, step), branching=branching)

    return asyncio.run(run())


def by_seed(session: Session, sampling: Sampling) -> list[int]:
    """Two times in three the action that counts down, else one that does nothing, by the seed alone."""
    return [ord("-" if sampling.seed % 3 else "abcd"[sampling.seed // 3 % 4])]


def texts(trajectory: Trajectory) -> str:
    return "".join(turn.text for turn in trajectory.turns)


def same(one: Ledger, other: Ledger) -> bool:
    """Whether two ledgers hold the same tokens at the same places, generated in the same turns."""
    arrays = ("token_ids", "position_ids", "loss_mask")
    alike = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    media = [[m.sha256 for m in ledger.media] for ledger in (one, other)]
    return alike and one.turns == other.turns and media[0] == media[1]


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
def test_branches_go_on_from_the_middle_of_their_trunk(isolation: str) -> None:
    policy = ScriptedPolicy(by_seed)
    generated = play([sample_of({"start": 4})], policy, config_of(env={"isolation": isolation}))
    [group] = generated.groups
    assert [(t.group_index, t.trunk) for t in group.trajectories] == [(0, 0), (1, 0), (2, 2), (3, 2)]
    assert not generated.counts
    for trunk, branch in (group.trajectories[:2], group.trajectories[2:]):
        shared = len(trunk.turns) // 2
        assert trunk.num_shared == branch.num_shared == shared > 0
        assert branch.turns[:shared] == trunk.turns[:shared]  # text, reward, state and spans
        end = trunk.turns[shared - 1].action[1]
        mine, its = branch.ledgers[0], trunk.ledgers[0]
        assert (mine.token_ids[:end] == its.token_ids[:end]).all()
        assert (mine.sampler_logprobs[:end] == its.sampler_logprobs[:end]).all()
        for one in (trunk, branch):
            assert texts(one).count("-") == 4  # the world went on from where it was
            assert (one.outcome, one.episode_return) == ("ok", 1.0)
    assert texts(group.trajectories[0]) != texts(group.trajectories[1])
    assert len(policy.asked) == sum(map(num_generated_tokens, generated.groups))  # an action is a token here
    assert episode_stats(numbers_of(generated.groups), generated.counts)["episode/branched_fraction"] == 1.0
    seeds = [sampling.seed for _, sampling in policy.asked]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize(
    "context",
    [{}, {"policy": "window", "num_turns": 1}, {"policy": "summary"}],
    ids=["full", "window", "summary"],
)
def test_a_branch_is_the_episode_that_its_actions_make_from_the_start(context: dict[str, Any]) -> None:
    """Law 1: nobody could tell from its ledgers that it began in the middle."""
    sample, episodes = sample_of({"start": 4}), {"context": context}
    [group] = play([sample], ScriptedPolicy(by_seed), config_of(3, episodes=episodes)).groups
    scripts = [texts(trajectory) for trajectory in group.trajectories]

    def again(session: Session, sampling: Sampling) -> list[int]:
        return [ord(scripts[session.group_index][session.num_turns])]

    [plain] = play([sample], ScriptedPolicy(again), config_of(branches=1, episodes=episodes)).groups
    for one, other in zip(group.trajectories, plain.trajectories, strict=True):
        assert (one.num_shared, other.num_shared, other.trunk) == (3, 0, None)
        assert len(one.ledgers) == len(other.ledgers)
        assert all(same(*pair) for pair in zip(one.ledgers, other.ledgers, strict=True))
        assert (one.outcome, one.info, one.completion) == (other.outcome, other.info, other.completion)


@pytest.mark.parametrize("policy", ["full", "last_images"])
def test_a_branch_with_images_is_token_for_token_what_it_would_be_from_the_start(
    tiny_model: Path, policy: str
) -> None:
    processor = open_tiny(tiny_model)
    words = [processor.encode_target(text) for text in ("left", "right", "up", "down")]

    def wander(session: Session, sampling: Sampling) -> list[int]:
        return [int(i) for i in words[sampling.seed % 4]]

    def again(session: Session, sampling: Sampling) -> list[int]:
        trajectory = scripts[session.group_index]
        ledger, turn = [(x, t) for x in trajectory.ledgers for t in x.turns][session.num_turns]
        return [int(i) for i in ledger.token_ids[slice(*turn.action)]]

    task = EnvTask("visual/frozen_lake", {"image_size": 112, "max_steps": 6}, {}, seed=3)
    message = {"role": "user", "content": [{"type": "text", "text": "?"}]}
    sample = replace(processor.sample({"id": "lake", "messages": [message]}), env=task)
    episodes = {"max_turns": 6, "context": {"policy": policy}}
    sections: dict[str, Any] = {"episodes": episodes, "generator": {"max_model_len": 2048}}
    sections["trainer"] = {"max_tokens_per_micro_batch": 2048}
    sections["rollout"] = {"max_tokens": 8, "group_size": 4, "prompts_per_step": 4}
    branching = {**sections, "episodes": {**episodes, "branching": {"num_branches": 2, "at": "middle"}}}
    [group] = play(
        [sample], ScriptedPolicy(wander), make_config(tiny_model, **branching), processor=processor
    ).groups
    scripts = group.trajectories
    [plain] = play(
        [sample], ScriptedPolicy(again), make_config(tiny_model, **sections), processor=processor
    ).groups
    assert any(t.num_shared > 0 for t in scripts)
    for one, other in zip(scripts, plain.trajectories, strict=True):
        assert all(same(*pair) for pair in zip(one.ledgers, other.ledgers, strict=True))


def test_where_it_branches() -> None:
    """A given turn, or any; and what is too short for it has no branches: the others begin again."""
    samples = [sample_of({"start": 4}, id=f"s{i}") for i in range(12)]
    for at in (1, 3):
        groups = play(samples, ScriptedPolicy(by_seed), config_of(at)).groups
        assert {t.num_shared for group in groups for t in group.trajectories} == {at}
    groups = play(samples, ScriptedPolicy(by_seed), config_of("random")).groups
    shares = {
        (t.num_shared, len(t.turns)) for g in groups for t in g.trajectories if t.trunk == t.group_index
    }
    assert all(0 < shared < turns for shared, turns in shares)
    assert len({shared for shared, _ in shares}) > 3
    again = play(samples, ScriptedPolicy(by_seed), config_of("random")).groups
    assert [texts(t) for g in groups for t in g.trajectories] == [
        texts(t) for g in again for t in g.trajectories
    ]

    minus = ScriptedPolicy(lambda session, sampling: [ord("-")])
    for at in (2, "middle", "random"):
        [group] = play([sample_of({"start": 1})], minus, config_of(at)).groups
        assert [(t.trunk, t.num_shared, texts(t)) for t in group.trajectories] == [(None, 0, "-")] * 4
    room = {"generator": {"max_model_len": 64}, "trainer": {"max_tokens_per_micro_batch": 64}}
    wordy = ScriptedPolicy(lambda session, sampling: [ord("?")] * 8)
    config = config_of(2, **room).model_copy(
        update={"rollout": make_config(rollout={"max_tokens": 8}).rollout}
    )
    [group] = play([sample_of({"start": 100})], wordy, config).groups
    assert [(t.trunk, len(t.turns)) for t in group.trajectories] == [
        (None, 2)
    ] * 4  # no room after the second
    # Its last turn is not a branch point: nothing would be left to do.
    [group] = play([sample_of({"start": 9})], minus, config_of(2, episodes={"max_turns": 3})).groups
    assert [(t.num_shared, len(t.turns)) for t in group.trajectories] == [(2, 3)] * 4


def test_in_lockstep_the_waves_do_not_hang_on_how_fast_environments_are() -> None:
    class Waves(ScriptedPolicy):
        """Notes who asks in the same turn of the event loop."""

        waves: list[list[tuple[str, int]]]

        async def generate(self, session: Session, sampling: Sampling) -> Any:
            if self.closed:
                self.waves.append([])
                self.closed = False
                asyncio.get_running_loop().call_soon(self.close)
            self.waves[-1].append((session.sample.id, session.group_index))
            await asyncio.sleep(0.001)
            return await super().generate(session, sampling)

        def close(self) -> None:
            self.closed = True

    seen = []
    for delays in ((0.0, 0.02), (0.02, 0.0)):
        policy = Waves(by_seed)
        policy.waves, policy.closed = [], True
        tasks = [{"start": 2 + i, "delay_s": delay} for i, delay in enumerate(delays)]
        samples = [sample_of(task, id=f"s{i}", env="SlowCountdown") for i, task in enumerate(tasks)]
        play(samples, policy, config_of())
        seen.append(policy.waves)
    assert seen[0] == seen[1]
    assert seen[0][0] == [("s0", 0), ("s0", 2), ("s1", 0), ("s1", 2)]


@pytest.mark.parametrize("lockstep", [True, False])
def test_a_tree_needs_no_more_places_than_there_are(lockstep: bool) -> None:
    samples = [sample_of({"start": 4}, id=f"s{i}") for i in range(4)]
    episodes = {"max_episodes": 3, "lockstep": lockstep}
    generated = play(samples, ScriptedPolicy(by_seed), config_of(episodes=episodes, size=6, branches=3))
    assert [len(group.trajectories) for group in generated.groups] == [6] * 4
    assert not generated.counts


# Law 7.


def test_a_branch_that_fails_once_is_played_again_from_the_branch_point_and_nobody_else(
    tmp_path: Path,
) -> None:
    config = config_of(2, env={"isolation": "process"})
    minus = ScriptedPolicy(lambda session, sampling: [ord("-")])
    # Steps are counted in the snapshot too, so the mark is made by the first to come to step 3: a trunk.
    task = {"start": 4, "fails": {"restored 3": "exit"}, "once": str(tmp_path)}
    generated = play([sample_of(task)], minus, config)
    assert generated.counts == Counter(env_died=1, replayed_episodes=1)
    [group] = generated.groups
    assert [(t.outcome, t.num_shared, texts(t)) for t in group.trajectories] == [("ok", 2, "----")] * 4
    # Trunks generate 4 each, branches 2 each; the one that died generates its first action twice.
    seeds = Counter(sampling.seed for _, sampling in minus.asked)
    assert sorted(seeds.values()) == [1] * 11 + [2]


@pytest.mark.parametrize(
    ("step", "outcomes", "num_trained"),
    [
        ("3", ["env_error"] * 2, 0),  # both trunks, so that nothing branches
        ("snapshot 2", ["env_error"] * 2, 0),
        ("restored 3", ["ok", "env_error"] * 2, 2),  # the trunks are left, to be compared with each other
    ],
)
def test_trees_that_fail_every_time_are_left_out_of_their_group_alone(
    step: str, outcomes: list[str], num_trained: int
) -> None:
    bad = sample_of({"start": 4, "fails": {step: "raise"}}, id="bad")
    minus = ScriptedPolicy(lambda session, sampling: [ord("-")])
    generated = play([bad, sample_of({"start": 4}, id="good")], minus, config_of(2))
    failed, good = generated.groups
    assert [t.outcome for t in failed.trajectories] == outcomes
    assert generated.counts == Counter(env_raised=4, failed_episodes=2)
    assert [t.outcome for t in good.trajectories] == ["ok"] * 4
    for number, trajectory in enumerate(t for t in failed.trajectories if not t.failed):
        trajectory.score = Score(float(number), {})
    assign_credit(generated.groups[:1], make_config().algorithm)
    assert failed.failed == (num_trained == 0)
    assert sum(a.any() for credit in failed.credits for a in credit.advantages) == num_trained


def test_a_single_tree_that_failures_left_is_compared_within_itself() -> None:
    group = play([sample_of({"start": 4})], ScriptedPolicy(by_seed), config_of(2)).groups[0]
    for trajectory, reward in zip(group.trajectories, (1.0, 0.0, None, None), strict=True):
        trajectory.score = None if reward is None else Score(reward, {})
    assign_credit([group], make_config(algorithm={"scale_by_std": False}).algorithm)
    for trajectory, credit, after in zip(group.trajectories, group.credits, (0.5, -0.5, 0, 0), strict=True):
        of_turns = [float(credit.advantages[0][turn.action[0]]) for turn in trajectory.turns]
        num_shared = trajectory.num_shared
        assert of_turns == [0.0] * num_shared + [after] * (len(of_turns) - num_shared)


# What is refused, before an engine starts.


def trying(sample: Sample) -> None:
    config = config_of()
    context = make_context(ScriptedPolicy(by_seed), TextProcessor(), config)
    with context.host:
        asyncio.run(try_branches([sample], context.host))


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        (
            sample_of({}, env="Plain"),
            r"Plain' has no snapshot and restore.*give it snapshot\(\) and restore\(\)",
        ),
        (
            sample_of({}, secret=True),
            r"in snapshot: its snapshot, a State, cannot be pickled.*num_branches=1",
        ),
        (sample_of({"fails": {"snapshot 0": "raise"}}), r"broken at step snapshot 0"),
        (replace(sample_of({}), env=EnvTask("agent", {})), r"an agent's episode does not branch"),
    ],
    ids=["none", "unpicklable", "raises", "agent"],
)
def test_an_environment_that_cannot_branch_is_named_with_the_remedy(sample: Sample, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        trying(sample)


def test_one_that_can_is_not_refused_and_neither_is_a_question() -> None:
    trying(sample_of({}))
    trying(replace(sample_of({}), env=None))


def test_a_run_says_so_before_an_engine_starts(tiny_model: Path, tmp_path: Path) -> None:
    config = config_of(
        model={"path": str(tiny_model)},
        data={"train": {"name": "env", "options": {"env": f"{FILE}:Plain", "num_rows": 8}}},
        run={"dir": str(tmp_path)},
    )
    with (
        pytest.raises(ConfigError, match="Plain' has no snapshot and restore"),
        TrainConsole("test", 1) as console,
        Run(config, console, train=True, generate=True),
    ):
        pass


def test_an_environment_found_out_later_ends_the_step() -> None:
    with pytest.raises(ConfigError, match="Plain' has no snapshot and restore"):
        play([sample_of({}, env="Plain")], ScriptedPolicy(by_seed), config_of())


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"size": 3}, "num_branches=2 must divide rollout.group_size=3 into two or more trees"),
        ({"size": 2}, "num_branches=2 must divide rollout.group_size=2 into two or more trees"),
        ({"at": 16}, "branching.at=16 leaves no turn after it within max_turns=16"),
        ({"at": 0}, "greater than or equal to 1"),
        ({"episodes": {"max_episodes": 1}}, "num_branches=2 is above max_episodes=1"),
        (
            {"episodes": {"lockstep": False, "stragglers": {"policy": "cut_off"}}},
            "stragglers.policy=cut_off with branching.num_branches",
        ),
        (
            {"env": {"isolation": "process", "num_processes": 1}},
            "num_branches=2 is above env.num_processes=1",
        ),
        ({"algorithm": {"credit": "discounted"}}, "set algorithm.credit=episode"),
    ],
)
def test_what_does_not_go_together_is_refused(sections: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        config_of(**sections)


def test_a_question_without_an_environment_is_answered_as_ever() -> None:
    question = replace(sample_of({}), env=None)
    [group] = play([question], ScriptedPolicy(by_seed), config_of()).groups
    assert [(t.group_index, t.trunk, len(t.turns)) for t in group.trajectories] == [
        (i, None, 1) for i in range(4)
    ]
