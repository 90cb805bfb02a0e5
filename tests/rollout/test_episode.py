"""Episodes of several turns against a scripted policy: what is seen, what ends them, what fails."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, make_generation, text_prompt

from vlrl.algorithm.credit import assign_credit
from vlrl.errors import EnvError
from vlrl.rollout.groups import RolloutResult, require_played, rollout_groups
from vlrl.rollout.session import Session
from vlrl.tracking.group_numbers import numbers_of
from vlrl.tracking.stats import episode_stats
from vlrl.types import EnvTask, Generation, Sample, Sampling, Trajectory

FILE = Path(__file__).parents[1] / "helpers" / "episodes.py"
COUNTDOWN, SLOW = f"{FILE}:Countdown", f"{FILE}:SlowCountdown"


def sample_of(task: dict[str, Any], *, id: str = "s", env: str = COUNTDOWN, **options: Any) -> Sample:
    """An episode as EnvTasks would write it: the prompt is what reset shows."""
    text = str(task.get("start", 3))
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    prompt = text_prompt([ord(c) for c in f"[user]{text}[assistant]"])
    return Sample(id, (message,), (), prompt, env=EnvTask(env, options, task, seed=7))


def play(
    samples: Sequence[Sample],
    policy: Any,
    *,
    step: int = 0,
    generate: dict[str, Any] | None = None,
    **sections: Any,
) -> RolloutResult:
    config = make_config(**{"rollout": {"prompts_per_step": 4, "group_size": 2, "max_tokens": 8}, **sections})

    async def run() -> RolloutResult:
        context = make_context(policy, TextProcessor(), config)
        with context.host:
            return await rollout_groups(samples, context, seed_path=(0, step), **(generate or {}))

    return asyncio.run(run())


def say(text: str) -> ScriptedPolicy:
    return ScriptedPolicy(lambda session, sampling: [ord(c) for c in text])


def spell(trajectory: Trajectory, ledger: int = 0) -> str:
    return "".join(chr(i) for i in trajectory.ledgers[ledger].token_ids)


def test_an_episode_is_the_conversation_as_it_was_generated_and_shown() -> None:
    [group] = play([sample_of({"start": 2})], say("-")).groups
    first = group.trajectories[0]
    assert spell(first) == "[user]2[assistant]-[user]1[assistant]-"
    assert first.ledgers[0].loss_mask.tolist() == [c == "-" for c in spell(first)]
    assert (first.outcome, first.completion, first.episode_return) == ("ok", "-", 1.0)
    assert [(t.text, t.reward, t.invalid, t.state) for t in first.turns] == [
        ("-", 0.0, False, "start"),
        ("-", 1.0, False, "1"),
    ]
    assert first.info == {"success": 1.0, "invalid": 0.0, "left": 0.0}


def test_every_turn_of_every_episode_is_given_a_seed_of_its_own() -> None:
    policy = say("-")
    play([sample_of({"start": 3}, id=f"s{i}") for i in range(2)], policy)
    play([sample_of({"start": 3}, id=f"s{i}") for i in range(2)], policy, step=1)
    assert len({sampling.seed for _, sampling in policy.asked}) == len(policy.asked) == 2 * 2 * 2 * 3


@pytest.mark.parametrize(
    ("policy", "ledgers"),
    [
        ({}, ["[user]3[assistant]-[user]2[assistant]-[user]1[assistant]-"]),
        (
            {"policy": "window", "num_turns": 1},
            ["[user]3[assistant]-[user]2[assistant]-", "[user]3[assistant]-[user]1[assistant]-"],
        ),
        (
            {"policy": "summary"},
            ["[user]3[assistant]-", "[user]after 1: 2[assistant]-", "[user]after 2: 1[assistant]-"],
        ),
    ],
    ids=["full", "window", "summary"],
)
def test_what_is_generated_under_a_context_policy_is_kept_under_it(
    policy: dict[str, Any], ledgers: list[str]
) -> None:
    generated = play([sample_of({"start": 3})], say("-"), episodes={"context": policy})
    trajectory = generated.groups[0].trajectories[0]
    assert [spell(trajectory, i) for i in range(len(trajectory.ledgers))] == ledgers
    assert trajectory.num_action_tokens == 3
    # A later ledger repeats an action as context: it is trained where it was generated, and nowhere else.
    assert [ledger.loss_mask.sum() for ledger in trajectory.ledgers] == [
        len(ledger.turns) for ledger in trajectory.ledgers
    ]
    stats = episode_stats(numbers_of(generated.groups), generated.counts)
    assert stats["episode/num_ledgers_mean"] == len(ledgers)
    assert (stats["episode/num_turns_mean"], stats["episode/success"]) == (3.0, 1.0)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("ab</think>-", "-"),
        ("<think>ab</think>\nc", "c"),
        ("Thought: ab\nAction: c", "Action: c"),
        ("-", "-"),
        ("<think>ab", "<think>ab"),  # cut within its thought: there is nothing else to show
    ],
)
def test_thoughts_of_earlier_turns_may_be_dropped(said: str, shown: str) -> None:
    """Each turn is generated, and trained, under what was shown: a ledger of its own."""
    endless, context = sample_of({"start": 100}), {"thoughts": "drop"}
    [group] = play([endless], say(said), episodes={"max_turns": 2, "context": context}).groups
    trajectory = group.trajectories[0]
    spelled = [spell(trajectory, i) for i in range(len(trajectory.ledgers))]
    if said == shown:
        assert len(spelled) == 1
        return
    assert spelled[0] == f"[user]100[assistant]{said}"
    assert spelled[1].startswith(f"[user]100[assistant]{shown}[user]") and spelled[1].endswith(said)
    trained = ["".join(chr(t) for t in ledger.token_ids[ledger.loss_mask]) for ledger in trajectory.ledgers]
    assert trained == [said, said]


def test_an_episode_ends_at_max_turns_and_where_no_action_fits_any_more() -> None:
    endless = sample_of({"start": 100})
    [group] = play([endless], say("?"), episodes={"max_turns": 3}).groups
    assert [(len(t.turns), t.outcome) for t in group.trajectories] == [(3, "truncated")] * 2
    assert all(turn.invalid for turn in group.trajectories[0].turns)

    room = {"max_model_len": 64}
    policy = say("12345678")
    [group] = play([endless], policy, generator=room, trainer={"max_tokens_per_micro_batch": 64}).groups
    assert group.trajectories[0].outcome == "truncated"
    assert len(group.trajectories[0].turns) == 2  # [user]100[assistant] + 8, [user]100[assistant] + 8
    assert len(group.trajectories[0].ledgers[0].token_ids) <= 64


def test_a_group_whose_reset_shows_something_else_is_generated_under_that() -> None:
    """The row may be old, or a desktop's clock have gone on: law 1 goes by what was shown."""
    stale = replace(sample_of({"start": 2}), prompt=text_prompt([1, 2, 3]), messages=())
    message = {"role": "user", "content": [{"type": "text", "text": "9"}]}
    stale = replace(stale, messages=(message,))
    [group] = play([stale], say("-")).groups
    assert spell(group.trajectories[0]).startswith("[user]2[assistant]-")
    assert group.trajectories[0].sample.prompt.token_ids.tolist() == [ord(c) for c in "[user]2[assistant]"]


# Forms.

FORMED = """
from vlrl.protocols import Observation, StepResult

class Formed:
    forms = ({"choice": ["a", "b"]}, None, {"regex": "[0-9"})

    def __init__(self, begins, shows):
        self._at, self._shows = begins, shows

    def _see(self):
        return Observation("see" if self._shows else "", structured_outputs=self.forms[self._at])

    def reset(self, task, seed):
        return self._see()

    def step(self, action):
        self._at += 1
        return StepResult(self._see() if self._at < 2 else Observation(), 1.0, self._at == 2, False)

    def close(self):
        pass
"""


@pytest.mark.parametrize("shows", [True, False])
def test_a_turn_is_of_the_form_that_the_environment_asks_for_or_of_its_row_s(
    shows: bool, tmp_path: Path
) -> None:
    (tmp_path / "formed.py").write_text(FORMED)
    env, of_row = f"{tmp_path / 'formed.py'}:Formed", '{"regex": "x+"}'
    asked: list[str] = []

    def answer(session: Session, sampling: Sampling) -> list[int]:
        asked.append(session.form)
        return [ord("a")]

    sample = replace(sample_of({}, env=env, begins=0, shows=shows), form=of_row)
    [group] = play([sample], ScriptedPolicy(answer)).groups
    wanted = ['{"choice": ["a", "b"]}', of_row]
    assert [[turn.form for turn in t.turns] for t in group.trajectories] == [wanted, wanted]
    assert sorted(asked) == sorted(2 * wanted), "what the engine is asked is what the trainer is told"


def test_a_form_that_an_environment_spells_wrongly_is_its_failure(tmp_path: Path) -> None:
    (tmp_path / "formed.py").write_text(FORMED)
    env = f"{tmp_path / 'formed.py'}:Formed"
    sample = sample_of({}, env=env, begins=2, shows=True)
    generated = play([sample], say("a"), episodes={"max_failed_share": 1.0})
    assert generated.counts["env_raised"]
    assert "structured_outputs.regex: " in generated.groups[0].trajectories[0].failure


# Law 7.


@pytest.mark.parametrize("isolation", ["thread", "process"])
@pytest.mark.parametrize(
    ("what", "kind", "outcome"), [("raise", "env_raised", "env_error"), ("hang", "env_hung", "timeout")]
)
def test_an_environment_that_fails_every_time_leaves_its_episodes_out(
    what: str, kind: str, outcome: str, isolation: str
) -> None:
    samples = [sample_of({"start": 2, "fails": {"2": what}}, id="bad"), sample_of({"start": 2}, id="good")]
    generated = play(samples, say("-"), env={"isolation": isolation, "step_timeout_s": 0.5})
    bad, good = generated.groups
    assert [t.outcome for t in bad.trajectories] == [outcome] * 2
    assert all("Countdown" in t.failure and "step 2" in t.failure for t in bad.trajectories)
    assert generated.counts == Counter({kind: 4, "failed_episodes": 2})  # two attempts each
    assert bad.failed
    assert [t.outcome for t in good.trajectories] == ["ok"] * 2


def test_an_environment_that_fails_once_is_played_again_with_the_same_seeds(tmp_path: Path) -> None:
    policy = say("-")
    task = {"start": 3, "fails": {"2": "exit"}, "once": str(tmp_path)}
    generated = play([sample_of(task)], policy, env={"isolation": "process"}, generate={"group_size": 1})
    assert generated.counts == Counter(env_died=1, replayed_episodes=1)
    assert generated.groups[0].trajectories[0].outcome == "ok"
    seeds = [sampling.seed for _, sampling in policy.asked]
    assert seeds[:2] == seeds[2:4]
    assert len(seeds) == 5


def test_an_episode_over_its_own_limit_is_ended() -> None:
    slow = sample_of({"start": 50, "delay_s": 0.1}, env=SLOW)
    begin = time.monotonic()
    generated = play([slow], say("-"), episodes={"timeout_s": 0.5, "max_turns": 50})
    assert time.monotonic() - begin < 30
    assert generated.counts == Counter({"episode_hung": 4, "failed_episodes": 2})
    assert all("episodes.timeout_s=0.5" in t.failure for t in generated.groups[0].trajectories)


def test_too_many_failed_episodes_end_the_run() -> None:
    samples = [sample_of({"fails": {"reset": "raise"}}, id="bad"), sample_of({}, id="good")]
    generated = play(samples, say("-"))
    failures = [t.failure for group in generated.groups for t in group.trajectories if t.failed]
    require_played(failures, 4, 0.5)
    with pytest.raises(EnvError, match=r"2 of 4 episodes failed.*\n.*broken at step reset"):
        require_played(failures, 4, 0.4)


def test_an_error_of_the_engine_is_no_failure_of_the_environment() -> None:
    class Broken(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            raise KeyError("engine")

    with pytest.raises(KeyError, match="engine"):
        play([sample_of({})], Broken(lambda *_: []))


# When actions are generated.


class Waves(ScriptedPolicy):
    """Notes which episodes ask in the same turn of the event loop."""

    def __init__(self) -> None:
        super().__init__(lambda session, sampling: [ord("-")])
        self.waves: list[list[tuple[str, int]]] = []

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        if not self.waves or self.waves[-1] is not getattr(self, "_open", None):
            self._open: list[tuple[str, int]] = []
            self.waves.append(self._open)
            asyncio.get_running_loop().call_soon(self._shut)
        self.waves[-1].append((session.sample.id, session.group_index))
        await asyncio.sleep(0.001)
        return make_generation([ord("-")])

    def _shut(self) -> None:
        self._open = []


def test_in_lockstep_the_waves_do_not_hang_on_how_fast_environments_are() -> None:
    seen = []
    for delays in ((0.0, 0.03), (0.03, 0.0), (0.0, 0.0)):
        policy = Waves()
        samples = [
            sample_of({"start": 2 + i, "delay_s": delay}, id=f"s{i}", env=SLOW)
            for i, delay in enumerate(delays)
        ]
        play(samples, policy)
        seen.append(policy.waves)
    everyone = [("s0", 0), ("s0", 1), ("s1", 0), ("s1", 1)]
    assert seen[0] == seen[1] == seen[2] == [everyone, everyone, everyone[2:]]


def test_in_lockstep_whoever_takes_a_place_is_waited_for() -> None:
    """Nor do the waves hang on speed where there are more episodes than places."""
    seen = []
    for delays in ((0.0, 0.03, 0.01), (0.03, 0.0, 0.02), (0.0, 0.0, 0.0)):
        policy = Waves()
        samples = [
            sample_of({"start": 2 + i, "delay_s": delay}, id=f"s{i}", env=SLOW)
            for i, delay in enumerate(delays)
        ]
        play(samples, policy, episodes={"max_episodes": 3})
        seen.append(policy.waves)
    assert seen[0] == seen[1] == seen[2]
    assert [len(wave) for wave in seen[0][:5]] == [3] * 5  # no place is empty while somebody waits for one


def test_fewer_processes_than_episodes_are_enough_in_lockstep() -> None:
    env = {"isolation": "process", "num_processes": 2}
    generated = play(
        [sample_of({}, id=f"s{i}") for i in range(2)], say("-"), env=env, episodes={"timeout_s": 30}
    )
    assert [t.outcome for g in generated.groups for t in g.trajectories] == ["ok"] * 4
    assert not generated.counts


def test_without_lockstep_nobody_waits_for_the_slow() -> None:
    policy = Waves()
    samples = [sample_of({"start": 4}, id="fast", env=SLOW), sample_of({"delay_s": 0.3}, id="slow", env=SLOW)]
    play(samples, policy, episodes={"lockstep": False})
    fast = [i for i, wave in enumerate(policy.waves) for sample, _ in wave if sample == "fast"]
    slow = [i for i, wave in enumerate(policy.waves) for sample, _ in wave if sample == "slow"]
    assert max(fast) < sorted(slow)[2]  # all four turns before the slow ones' second


def test_no_more_episodes_run_at_once_than_allowed() -> None:
    running, most = 0, 0

    class Counting(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.005)
            running -= 1
            return make_generation([ord("-")])

    samples = [sample_of({}, id=f"s{i}") for i in range(6)]
    generated = play(samples, Counting(lambda *_: []), episodes={"max_episodes": 3})
    assert most == 3
    assert [t.outcome for g in generated.groups for t in g.trajectories] == ["ok"] * 12


def straggling(policy: str, **options: Any) -> dict[str, Any]:
    return {"episodes": {"lockstep": False, "stragglers": {"policy": policy, **options}}}


def mixed() -> tuple[list[Sample], ScriptedPolicy]:
    """Member 1 of every group never gets anywhere."""
    samples = [sample_of({"start": 2, "delay_s": 0.001}, id=f"s{i}", env=SLOW) for i in range(3)]

    class OneSlow(ScriptedPolicy):
        async def generate(self, session: Session, sampling: Sampling) -> Generation:
            await asyncio.sleep(30 if session.group_index == 1 else 0)
            return make_generation([ord("-")])

    return samples, OneSlow(lambda *_: [])


def test_redundant_episodes_take_the_place_of_slow_ones() -> None:
    samples, policy = mixed()
    sections = straggling("redundancy", num_extra=1)
    config = make_config(**sections).episodes.stragglers
    generated = play(samples, policy, generate={"stragglers": config}, **sections)
    assert [[t.group_index for t in g.trajectories] for g in generated.groups] == [[0, 2]] * 3
    assert generated.counts == Counter(surplus_episodes=3)


def test_what_is_cut_off_is_left_out_and_no_failure() -> None:
    samples, policy = mixed()
    sections = straggling("cut_off", cut_off_share=0.6, cut_off_s=0.2)
    config = make_config(**sections).episodes.stragglers
    generated = play(samples, policy, generate={"stragglers": config, "group_size": 3}, **sections)
    assert [[t.group_index for t in g.trajectories] for g in generated.groups] == [[0, 2]] * 3
    assert generated.counts == Counter(cut_off_episodes=3)
    generated = play(
        samples, policy, generate={"stragglers": config.model_copy(update={"cut_off_share": 0.5})}, **sections
    )
    assert generated.groups == []  # one alone is not a baseline


def test_an_evaluation_waits_for_everyone() -> None:
    samples = [sample_of({"delay_s": 0.2}, env=SLOW)]
    generated = play(samples, say("-"), generate={"group_size": 1}, **straggling("redundancy"))
    assert len(generated.groups[0].trajectories) == 1
    assert not generated.counts


def test_lockstep_and_the_clock_exclude_each_other() -> None:
    with pytest.raises(Exception, match=r"episodes\.lockstep=false"):
        make_config(episodes={"stragglers": {"policy": "cut_off"}})


def test_a_failed_episode_without_any_turn_can_be_credited_and_counted() -> None:
    generated = play([sample_of({"fails": {"reset": "raise"}})], say("-"))
    assign_credit(generated.groups, make_config().algorithm)
    assert [c.num_trained for c in generated.groups[0].credits] == [0, 0]
    stats = episode_stats(numbers_of(generated.groups), generated.counts)
    assert (stats["failures/env_raised"], stats["failures/failed_episodes"]) == (4.0, 2.0)
