"""Earlier groups in the places of groups without a signal: which, how old, counted once, resumed exactly."""

from __future__ import annotations

import asyncio
import pickle
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from builders import TextProcessor, make_config, make_context, make_generation, make_sample, no_pixels

from vlrl.algorithm.credit import assign_credit
from vlrl.config import Config
from vlrl.config.asynchronous import BatchConfig, ReplayConfig
from vlrl.errors import ConfigError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.buffer import Buffer, BufferLimits, Ticket
from vlrl.rollout.collector import CollectedBatch, Collector, require_healthy
from vlrl.rollout.groups import rollout_groups, score_groups
from vlrl.rollout.outcome import Round, TicketOutcome, outcome_of
from vlrl.rollout.replay import GroupReplay
from vlrl.rollout.session import Session
from vlrl.tracking.learning_signal import is_silent
from vlrl.tracking.stats import rollout_stats
from vlrl.types import Generation, Group, Sampling, Score, Trajectory

CORRECTED = {"correction": {"kind": "truncated"}, "scale_by_std": False}
CONFIG = make_config(rollout={"group_size": 2, "prompts_per_step": 2, "max_tokens": 5}, algorithm=CORRECTED)


def group(name: str, *totals: float, version: int = 0) -> Group:
    trajectories = []
    for index, total in enumerate(totals):
        session = Session(make_sample(id=name), index)
        session.append_action(make_generation([5, 6], [-0.5, -0.25 * (1 + version)], version=version))
        trajectory = session.trajectory("", "ok", 0.0)
        trajectory.score = Score(total, {})
        trajectories.append(trajectory)
    made = Group(trajectories)
    assign_credit([made], CONFIG.algorithm)
    return made


def outcome(name: str, *totals: float, version: int = 0) -> TicketOutcome:
    return outcome_of([group(name, *totals, version=version)])


def names(outcomes: Sequence[TicketOutcome]) -> list[str | None]:
    return [each.sample_id for each in outcomes]


def replay(num_prompts: int = 2, seed: int = 0, **options: Any) -> GroupReplay:
    return GroupReplay(ReplayConfig(**{"share": 1.0, **options}), seed, num_prompts)


def test_a_group_without_a_signal_gives_its_place_to_an_earlier_one() -> None:
    """The signal of (1, 0) is |±0.5|; a's tokens keep their logprobs, and are two updates old at step 2."""
    memory = replay()
    assert outcome("a", 1.0, 0.0).signal == 0.5
    assert names(memory.fill([outcome("a", 1.0, 0.0), outcome("flat", 1.0, 1.0)], 0)) == ["a", "flat"]
    assert memory.metrics() == {"replay/num_groups": 0.0, "replay/num_kept": 1.0}
    own = [outcome("b", 0.0, 1.0, version=2), outcome("even", 0.0, 0.0, version=2)]
    filled = memory.fill(own, 2)
    assert names(filled) == ["b", "a"] and filled[0] is own[0]
    assert memory.metrics() == {
        "replay/num_groups": 1.0,
        "replay/num_kept": 2.0,
        "replay/staleness_mean": 2.0,
    }
    options = PackOptions(num_ranks=1, max_tokens=99, max_completion_tokens=5, keep_zero_advantage=False)
    [[batch]] = pack([g for each in filled for g in each.groups], no_pixels, options, version=2)
    by_age = sorted(zip(batch.token_staleness.tolist(), batch.sampler_logprobs.tolist(), strict=True))
    fresh, old = [(0, -0.75)] * 2 + [(0, -0.5)] * 2, [(2, -0.5)] * 2 + [(2, -0.25)] * 2
    assert by_age == fresh + old


def test_what_is_too_old_or_too_much_is_not_kept() -> None:
    memory = replay(size=2, max_staleness=2)
    for step in range(3):
        memory.fill([outcome(f"s{step}", 1.0, 0.0, version=step)], step)
    assert names(memory.kept) == ["s1", "s2"]
    assert names(memory.fill([outcome("flat", 0.0, 0.0, version=3)] * 2, 3)) in (["s1", "s2"], ["s2", "s1"])
    assert names(memory.kept) == ["s2"]  # s1 would be three updates old in the next step
    assert names(memory.fill([outcome("flat", 0.0, 0.0, version=5)] * 2, 5)) == ["flat", "flat"]


def test_no_more_than_its_share_and_none_twice_in_a_step() -> None:
    memory = replay(num_prompts=4, share=0.5)
    memory.fill([outcome(f"s{i}", 1.0, 0.0) for i in range(3)], 0)
    filled = names(memory.fill([outcome("flat", 0.0, 0.0)] * 4, 1))
    assert filled[2:] == ["flat", "flat"] and len(set(filled[:2])) == 2
    assert names(memory.kept) == ["s0", "s1", "s2"]  # they may be trained again


def test_a_step_does_not_replay_itself_and_one_with_a_signal_everywhere_replays_nothing() -> None:
    memory = replay()
    assert names(memory.fill([outcome("a", 1.0, 0.0), outcome("flat", 0.0, 0.0)], 0)) == ["a", "flat"]
    assert names(memory.fill([outcome("b", 1.0, 0.0), outcome("c", 1.0, 0.0)], 1)) == ["b", "c"]


@pytest.mark.parametrize(("power", "share"), [(0.0, 1 / 2), (1.0, 3 / 4), (2.0, 9 / 10)])
def test_groups_are_chosen_in_proportion_to_a_power_of_their_advantage(power: float, share: float) -> None:
    """|A| of the two are 1.5 and 0.5."""
    chosen: Counter[str | None] = Counter()
    earlier, flat = [outcome("large", 3.0, 0.0), outcome("small", 1.0, 0.0)], outcome("flat", 0.0, 0.0)
    for seed in range(400):
        memory = replay(seed=seed, power=power)
        memory.fill(earlier, 0)
        chosen.update(names(memory.fill([flat], 1)))
    assert chosen["large"] / 400 == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 400))


def test_all_agents_of_a_sample_take_the_place_together() -> None:
    memory = replay()
    memory.fill([outcome_of([group("s/x", 1.0, 0.0), group("s/y", 0.0, 0.0)])], 0)
    filled = memory.fill([outcome_of([group("t/x", 0.0, 0.0), group("t/y", 0.0, 0.0)])], 1)
    assert [each.sample_id for each in filled[0].kept] == ["s/x", "s/y"]
    assert memory.metrics()["replay/num_groups"] == 2.0


class Scripted:
    """A policy whose completions follow from seeds; every second row is worth the same to all."""

    version = 0

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        return make_generation([ord("ab"[sampling.seed % 2])], version=self.version)


async def score(trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]) -> list[Score]:
    return [Score(float(t.completion == "a" and int(t.sample.id) % 2), {}) for t in trajectories]


class World:
    """A synchronous run's surroundings without engines, from a checkpoint or the start."""

    def __init__(self, config: Config, checkpoint: bytes | None = None) -> None:
        self.config, self.policy = config, Scripted()
        state, groups, kept = pickle.loads(checkpoint) if checkpoint else (None, {}, [])
        limits = BufferLimits.of(config)
        buffer: Buffer[TicketOutcome] = (
            Buffer.restore(limits, state, {n: outcome_of(of) for n, of in groups.items()})
            if state
            else Buffer(limits)
        )
        assert config.batch.replay is not None
        memory = GroupReplay(config.batch.replay, config.run.seed, config.rollout.prompts_per_step)
        memory.kept = [outcome_of(of) for of in kept]
        self.collector = Collector(
            buffer, self.generate, filters=[], options=BatchConfig(), streams=False,
            check=partial(require_healthy, config), replay=memory,
        )  # fmt: skip
        self.policy.version = buffer.version

    def checkpoint(self) -> bytes:
        buffer, memory = self.collector.buffer, self.collector.replay
        assert memory is not None
        groups = {n: each.groups for n, each in buffer.payloads().items()}
        return pickle.dumps((buffer.snapshot(), groups, [each.groups for each in memory.kept]))

    async def generate(self, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        context = make_context(self.policy, TextProcessor(), self.config)
        samples = [make_sample(id=str(ticket.position)) for ticket in tickets]
        paths = [(0, ticket.position // 4, ticket.position) for ticket in tickets]
        result = await rollout_groups(samples, context, seed_paths=paths)
        failures = await score_groups(result.groups, score)
        assign_credit(result.groups, self.config.algorithm)
        return Round([outcome_of(groups) for groups in result.of_samples], failures, result.counts)

    def step(self) -> CollectedBatch:
        batch = asyncio.run(self.collector.batch())
        self.policy.version = self.collector.buffer.num_cut
        self.collector.advance(self.policy.version)
        return batch


def run_config(**options: Any) -> Config:
    rollout = {"group_size": 4, "prompts_per_step": 4, "max_tokens": 5}
    return make_config(rollout=rollout, algorithm=CORRECTED, batch={"replay": options})


def test_stopped_after_any_step_and_resumed_the_same_groups_are_replayed() -> None:
    config = run_config(share=0.5, size=5, max_staleness=3)

    def found(stop_after: int | None) -> list[Any]:
        world, steps = World(config), []
        for step in range(6):
            batch = world.step()
            steps.append((names(batch.trained), batch.metrics))
            if step == stop_after:
                world = World(config, world.checkpoint())
        return steps

    whole = found(None)
    assert sum(metrics["replay/num_groups"] for _, metrics in whole) >= 6
    for stop_after in range(5):
        assert found(stop_after) == whole


def test_replayed_groups_are_in_no_other_count() -> None:
    world = World(run_config(share=0.5))
    world.step()
    batch = world.step()
    assert batch.metrics["replay/num_groups"] == 2.0
    own = [ticket.payload.sample_id for ticket in batch.tickets if ticket.payload]
    assert [each.sample_id for each in batch.groups] == own == [each.sample_id for each in batch.generated]
    assert names(batch.trained) != own and len(batch.trained) == 4
    assert sum(each.num_generated_tokens for each in batch.generated) == 16
    totals = [
        t.score.total for ticket in batch.tickets for g in ticket.payload.groups for t in g.trajectories
    ]  # type: ignore[union-attr]
    assert rollout_stats(batch.groups, [])["reward/mean"] == pytest.approx(np.mean(totals))


def test_a_step_that_only_replays_has_something_to_learn_from() -> None:
    even = {"reward/zero_variance_groups": 1.0, "optim/grad_norm": 0.5}
    assert is_silent(even) and is_silent({**even, "replay/num_groups": 0.0})
    assert not is_silent({**even, "replay/num_groups": 1.0})


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"algorithm": "remax"}, "loss=policy_gradient has no ratio, and batch.replay .*kind=truncated"),
        ({"algorithm": {"correction": {"kind": "uncorrected"}}}, "kind=uncorrected treats them as fresh"),
        ({"batch": {"replay": {}, "filters": [{"name": "zero_variance"}]}}, "batch.filters=zero_variance"),
        ({"batch": {"replay": {"share": 0.2}}}, "batch.replay.share=0.2 of rollout.prompts_per_step=4"),
        ({"algorithm": {**CORRECTED, "credit": "reward", "scale_by_std": True}}, "algorithm.credit=reward"),
        (
            {"algorithm": {"correction": {"kind": "truncated"}, "credit": "gae", "critic": {}}},
            "batch.replay with algorithm.critic",
        ),
        ({"algorithm": {**CORRECTED, "teacher": {"path": "t"}}}, "batch.replay with algorithm.teacher"),
        ({"algorithm": {"correction": {"kind": "truncated"}}, "preferences": {}}, "replay with preferences"),
    ],
)
def test_what_makes_no_sense_with_it_is_refused(sections: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make_config(**{"algorithm": CORRECTED, "batch": {"replay": {}}, **sections})


def test_a_loss_with_a_ratio_around_the_sampler_needs_no_correction() -> None:
    assert make_config(batch={"replay": {}}).algorithm.correction.kind == "none"
