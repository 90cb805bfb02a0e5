"""Batches of scripted episodes: filters, refilling, restarts, and drawing while the trainer steps."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from builders import (
    TextProcessor,
    advantages_of,
    make_config,
    make_generation,
    make_group,
    make_sample,
    make_setting,
    make_trajectory,
)

from vlrl.async_options import BatchConfig, FilterConfig
from vlrl.buffer import Buffer, Limits, State, Ticket
from vlrl.collector import Batch, Collector, Groups, Round, oldest_version
from vlrl.config import Config
from vlrl.credit import assign_credit
from vlrl.errors import ConfigError, DataError, EnvError, InternalError
from vlrl.filters import NamedFilter, failed, first_refusal, length, reward_range, truncated, zero_variance
from vlrl.registry import resolve
from vlrl.rollout import Drawn, require_played, rollout_groups, score_groups
from vlrl.seeds import derive_seed
from vlrl.session import Session
from vlrl.types import Generation, Group, Sampling, Score, Trajectory

NUM_ROWS = 7
ZERO_VARIANCE: list[NamedFilter] = [("zero_variance", zero_variance)]


@dataclass
class VersionedPolicy:
    """Answers with a letter drawn by the request's seed, under its present version, after a while.

    Attributes:
        version: of the weights, as an engine stamps it; `update` may come while requests run.
        delay_s: by sample id; the default is no delay.
        seeds: that it was asked with, by sample id.
    """

    version: int = 0
    delay_s: dict[str, float] = field(default_factory=dict)
    seeds: dict[str, list[int]] = field(default_factory=dict)
    num_running: int = 0

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        self.seeds.setdefault(session.sample.id, []).append(sampling.seed)
        version = self.version
        self.num_running += 1
        await asyncio.sleep(self.delay_s.get(session.sample.id, 0.0))
        self.num_running -= 1
        return make_generation([ord("ab"[sampling.seed % 2])], version=version)

    def update(self, version: int) -> None:
        self.version = version


async def score(trajectories: Sequence[Trajectory], step: int, groups: Sequence[int]) -> list[Score]:
    """1 for a; of the rows named in `flat` everything is worth the same."""
    return [Score(float(t.completion == "a" and not t.sample.metadata.get("flat")), {}) for t in trajectories]


class World:
    """A run's surroundings without engines: rows by position, a policy, a buffer, a collector."""

    def __init__(
        self,
        *,
        flat: Sequence[int] = (),
        filters: Sequence[NamedFilter] = (),
        buffer: Buffer[Groups] | None = None,
        streams: bool = False,
        policy: VersionedPolicy | None = None,
        max_dropped_share: float = 0.9,
        config: Config | None = None,
        **limits: Any,
    ) -> None:
        self.flat = flat
        self.config = config or make_config(rollout={"group_size": 4, "prompts_per_step": 2, "max_tokens": 5})
        self.policy = policy or VersionedPolicy()
        self.buffer = Buffer(Limits(batch_size=2, **limits)) if buffer is None else buffer
        self.rounds: list[list[int]] = []
        self.collector = Collector(
            self.buffer,
            self.draw,
            filters=filters,
            options=BatchConfig(
                max_dropped_share=max_dropped_share, filters=[FilterConfig(name=n) for n, _ in filters]
            ),
            streams=streams,
            check=lambda batch: require_played(Drawn([batch.drawn], batch.counts), 0.2),
        )
        self.setting = make_setting(self.policy, TextProcessor(), self.config)

    async def draw(self, tickets: Sequence[Ticket[Groups]]) -> Round:
        self.rounds.append([ticket.position for ticket in tickets])
        samples = [
            make_sample(id=f"p{t.position}", metadata={"flat": t.position in self.flat}) for t in tickets
        ]
        paths = [(0, ticket.position // 2, ticket.position) for ticket in tickets]
        drawn = await rollout_groups(samples, self.setting, seed_paths=paths)
        failures = await score_groups(drawn.groups, score)
        assign_credit(drawn.groups, self.config.algorithm)
        return Round(drawn.of_samples, failures, drawn.counts)

    async def step(self) -> Batch:
        """Draw, train, update: a synchronous step."""
        batch = await self.collector.batch()
        self.policy.update(self.buffer.num_cut)
        self.collector.advance(self.buffer.num_cut)
        return batch


def ids(batch: Batch) -> list[str]:
    return [group.trajectories[0].sample.id for group in batch.groups]


def varied(world: World, position: int) -> bool:
    """Whether the scripted policy's group at a position has both letters."""
    seeds = [derive_seed(0, position // 2, position, f"p{position}", index, 0) for index in range(4)]
    return len({seed % 2 for seed in seeds}) == 2 and position not in world.flat


def test_without_filters_every_step_trains_its_own_positions_in_one_round() -> None:
    async def run() -> None:
        world = World(flat=[1])
        assert [ids(await world.step()) for _ in range(3)] == [["p0", "p1"], ["p2", "p3"], ["p4", "p5"]]
        assert world.rounds == [[0, 1], [2, 3], [4, 5]]

    asyncio.run(run())


def test_dropped_groups_are_replaced_until_the_batch_is_full_and_counted() -> None:
    async def run() -> None:
        world = World(flat=[0, 2, 3], filters=ZERO_VARIANCE)
        kept = [p for p in range(40) if varied(world, p)]
        for step in range(4):
            batch = await world.step()
            expected = kept[2 * step : 2 * step + 2]
            assert ids(batch) == [f"p{p}" for p in expected]
            passed = expected[-1] + 1 - (kept[2 * step - 1] + 1 if step else 0)
            assert batch.metrics["groups/dropped_zero_variance"] == passed - 2
            assert batch.metrics["groups/dropped_share"] == pytest.approx((passed - 2) / passed)
            assert len(batch.drawn) == passed
            assert len(batch.dropped) == passed - 2

    asyncio.run(run())


def test_over_sampling_draws_more_at_once_and_what_is_left_over_is_neither_lost_nor_stale() -> None:
    async def run() -> None:
        world = World(flat=[0], filters=ZERO_VARIANCE, over_sampling=2.0)
        kept = [f"p{p}" for p in range(40) if varied(world, p)]
        found = []
        for step in range(4):
            batch = await world.step()
            found += ids(batch)
            drawn_under = {oldest_version([group]) for group in batch.groups}
            assert drawn_under == {step}  # surplus of the last step was drawn again
        assert found == kept[:8]
        assert world.rounds[0] == [0, 1, 2, 3]

    asyncio.run(run())


def test_stopped_after_any_step_and_resumed_the_same_samples_are_consumed() -> None:
    """The checkpoint holds the ledger; here also through JSON and pickle, as on disk."""
    options: dict[str, Any] = {"flat": [0, 3, 4, 9], "filters": ZERO_VARIANCE}

    async def run(stop_after: int | None, over_sampling: float) -> list[Any]:
        world = World(**options, over_sampling=over_sampling)
        found = []
        for step in range(5):
            batch = await world.step()
            found.append(
                (ids(batch), batch.metrics, [t.completion for g in batch.groups for t in g.trajectories])
            )
            if step == stop_after:
                state = json.loads(json.dumps(world.buffer.snapshot()))
                groups = pickle.loads(pickle.dumps(world.buffer.payloads()))
                buffer = Buffer.restore(world.buffer.limits, state, groups)
                world = World(**options, buffer=buffer, policy=VersionedPolicy(buffer.version))
        return found

    for over_sampling in (1.0, 1.5):
        whole = asyncio.run(run(None, over_sampling))
        for stop_after in range(4):
            assert asyncio.run(run(stop_after, over_sampling)) == whole


def test_a_run_whose_groups_are_all_dropped_stops_and_says_why() -> None:
    world = World(flat=range(1000), filters=ZERO_VARIANCE, max_dropped_share=0.75)
    with pytest.raises(DataError, match=r"dropped 8 groups .* batch of 2 .*8 by zero_variance.*=0.75 allows"):
        asyncio.run(world.step())


def test_what_is_dropped_while_a_slow_group_is_awaited_is_held_against_all_that_was_drawn() -> None:
    """Three rows in four are flat. Four batches fill up behind the head, so 20 and more are dropped first."""
    flat = [position for position in range(400) if position % 4]

    async def run() -> World:
        policy = VersionedPolicy(delay_s={"p0": 0.3})
        options: dict[str, Any] = {"pipeline_depth": 4, "max_staleness": 3, "max_dropped_share": 0.85}
        world = World(flat=flat, filters=ZERO_VARIANCE, streams=True, policy=policy, **options)
        batch = await world.collector.batch()
        assert batch.metrics["groups/dropped_zero_variance"] > 15
        assert (
            batch.metrics["groups/dropped_share"] > 0.85
        )  # of what this batch consumed, not of what was drawn
        await world.collector.close()
        return world

    asyncio.run(run())


def test_failures_are_blamed_before_filters() -> None:
    def fail(groups: list[Groups]) -> None:
        for group in (g for of_ticket in groups for g in of_ticket):
            for trajectory in group.trajectories:
                trajectory.outcome, trajectory.score, trajectory.failure = "env_error", None, "broken display"

    class Broken(World):
        async def draw(self, tickets: Sequence[Ticket[Groups]]) -> Round:
            drawn = await super().draw(tickets)
            fail(drawn.groups)
            return drawn

    for filters in ([("failed", failed)], []):
        with pytest.raises(EnvError, match="broken display"):
            asyncio.run(Broken(filters=filters).step())


def test_a_batch_asked_for_before_the_last_one_was_trained_is_refused() -> None:
    async def run(streams: bool) -> None:
        world = World(streams=streams)
        await world.collector.batch()
        with pytest.raises(InternalError, match="was the last batch trained"):
            await world.collector.batch()

    for streams in (False, True):
        asyncio.run(run(streams))


def test_redundant_episodes_and_groups_cut_short_compose_with_filters() -> None:
    """Redundancy takes the first four of five episodes of each group; a group of none in time is `empty`."""
    config = make_config(
        rollout={"group_size": 4, "prompts_per_step": 2, "max_tokens": 5},
        episodes={"lockstep": False, "stragglers": {"policy": "redundancy", "num_extra": 1}},
    )

    class Redundant(World):
        async def draw(self, tickets: Sequence[Ticket[Groups]]) -> Round:
            samples = [make_sample(id=f"p{t.position}") for t in tickets]
            drawn = await rollout_groups(
                samples, self.setting, seed_path=(0,), stragglers=self.config.episodes.stragglers
            )
            await score_groups(drawn.groups, score)
            assign_credit(drawn.groups, self.config.algorithm)
            groups = [[] if t.position == 0 else g for t, g in zip(tickets, drawn.of_samples, strict=True)]
            return Round(groups, counts=drawn.counts)

    async def run() -> None:
        world = Redundant(filters=[("failed", failed)], config=config)
        batch = await world.step()
        assert ids(batch) == ["p1", "p2"]
        assert [len(g.trajectories) for g in batch.groups] == [4, 4]
        assert batch.counts == {"surplus_episodes": 3}
        assert batch.metrics["groups/dropped_empty"] == 1

    asyncio.run(run())


# While the trainer steps


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def train_while_drawing(world: World, num_steps: int, train_s: float = 0.03) -> list[Batch]:
    batches = []
    for step in range(num_steps):
        batches.append(await world.collector.batch())
        await asyncio.sleep(train_s)  # the trainer steps
        world.policy.update(step + 1)
        world.collector.advance(step + 1)
    await world.collector.close()
    return batches


def lags(batches: Sequence[Batch]) -> list[int]:
    return [
        step - span.version
        for step, batch in enumerate(batches)
        for group in batch.groups
        for trajectory in group.trajectories
        for span in trajectory.ledgers[0].version_spans
    ]


@pytest.mark.parametrize(("depth", "staleness"), [(1, 0), (1, 4), (3, 1), (3, 4)])
def test_the_samples_and_their_order_are_those_of_the_synchronous_run(depth: int, staleness: int) -> None:
    """With a long tail: every fifth sample is slow, and the slowest is at the head of the first batch."""
    delays = {f"p{p}": 0.05 if p % 5 == 0 else 0.002 for p in range(40)}

    async def run() -> list[Batch]:
        world = World(
            streams=True,
            policy=VersionedPolicy(delay_s=delays),
            pipeline_depth=depth,
            max_staleness=staleness,
        )
        return await train_while_drawing(world, 6, train_s=0.01)

    batches = asyncio.run(run())
    assert [i for batch in batches for i in ids(batch)] == [f"p{p}" for p in range(12)]
    assert max(lags(batches)) <= staleness
    assert (max(lags(batches)) > 0) == (staleness > 0)


def test_groups_are_drawn_while_the_trainer_steps_as_many_as_there_are_credits() -> None:
    async def run() -> None:
        policy = VersionedPolicy(delay_s={f"p{p}": 3600.0 for p in range(2, 99)})
        world = World(streams=True, policy=policy, pipeline_depth=2, max_staleness=4)
        await world.collector.batch()
        await until(lambda: policy.num_running >= 4 * 4)
        assert policy.num_running == 4 * 4  # two batches' worth of two groups of four
        assert world.buffer.num_in(State.RUNNING) == 4
        await world.collector.close()
        assert world.buffer.num_in(State.QUEUED) == 4  # to be drawn again
        assert world.buffer.counts["lost"] == 4

    asyncio.run(run())


def test_filtered_groups_give_their_credit_to_others_while_the_trainer_steps() -> None:
    async def run() -> tuple[World, list[Batch]]:
        world = World(streams=True, flat=[1, 4, 5], filters=ZERO_VARIANCE, pipeline_depth=2, max_staleness=3)
        return world, await train_while_drawing(world, 4)

    world, batches = asyncio.run(run())
    kept = [f"p{p}" for p in range(40) if varied(world, p)]
    assert [i for batch in batches for i in ids(batch)] == kept[:8]
    assert all("groups/num_running" in batch.metrics for batch in batches)
    assert all(group.trajectories[0].sample.id not in kept for b in batches for group in b.dropped)


def test_a_group_too_old_at_the_cut_is_drawn_again_in_its_place() -> None:
    """An engine that lags two versions behind what it is told: its first tokens are too old for batch 2."""

    class Laggard(VersionedPolicy):
        def update(self, version: int) -> None:
            self.version = max(0, version - 2) if version < 3 else version

    async def run() -> tuple[list[Batch], int]:
        world = World(streams=True, policy=Laggard(), pipeline_depth=1, max_staleness=1)
        batches = [await world.collector.batch()]
        stale = 0
        for step in range(1, 5):
            world.policy.update(step)
            world.collector.advance(step)
            waiting = asyncio.create_task(world.collector.batch())
            await until(lambda: waiting.done() or world.buffer.counts["stale"] > 0)  # noqa: B023
            if not waiting.done():
                world.policy.version = step  # it has caught up
            batches.append(await asyncio.wait_for(waiting, 5))
            stale += int(batches[-1].metrics["groups/num_stale"])
        await world.collector.close()
        return batches, stale

    batches, stale = asyncio.run(run())
    assert stale > 0
    assert [i for batch in batches for i in ids(batch)] == [f"p{p}" for p in range(10)]
    assert max(lags(batches)) <= 1


def test_what_a_draw_raises_reaches_whoever_waits_for_the_batch() -> None:
    class Raising(World):
        async def draw(self, tickets: Sequence[Ticket[Groups]]) -> Round:
            await asyncio.sleep(0)
            raise EnvError("no displays left")

    for streams in (False, True):
        with pytest.raises(EnvError, match="no displays left"):
            asyncio.run(Raising(streams=streams, max_staleness=1).collector.batch())


def test_an_interrupted_stream_resumes_with_finished_groups_kept_and_running_ones_redone() -> None:
    """Position 2 was done, 3 was running: after the restart 3 is drawn with the seeds of before."""

    async def before() -> tuple[World, dict[str, Any], bytes]:
        policy = VersionedPolicy(delay_s={"p3": 3600.0})
        world = World(streams=True, policy=policy, max_staleness=2)
        await world.collector.batch()
        await until(lambda: world.buffer.num_in(State.DONE) == 1)
        assert world.buffer.num_in(State.DONE) == world.buffer.num_in(State.RUNNING) == 1
        saved = world.buffer.snapshot(), pickle.dumps(world.buffer.payloads())
        await world.collector.close()
        return world, *saved

    async def after(state: dict[str, Any], groups: bytes) -> tuple[World, Batch]:
        buffer = Buffer.restore(Limits(2, max_staleness=2), state, pickle.loads(groups))
        world = World(streams=True, buffer=buffer, policy=VersionedPolicy(1))
        batch = await world.collector.batch()
        await world.collector.close()
        return world, batch

    old, state, groups = asyncio.run(before())
    new, batch = asyncio.run(after(state, groups))
    assert ids(batch) == ["p2", "p3"]
    assert "p2" not in new.policy.seeds
    assert new.policy.seeds["p3"] == old.policy.seeds["p3"]
    assert [oldest_version([group]) for group in batch.groups] == [0, 1]


# Filters


def scored(
    rewards: Sequence[float | None], tokens: Sequence[int] = (), outcomes: Sequence[str] = ()
) -> Group:
    sample = make_sample()
    members = [
        make_trajectory(sample, range(tokens[i] if tokens else 3), index=i, reward=reward)
        for i, reward in enumerate(rewards)
    ]
    for member, outcome in zip(members, outcomes, strict=False):
        member.outcome = outcome  # type: ignore[assignment]
    group = Group(members)
    assign_credit([group], make_config().algorithm)
    return group


def test_zero_variance_keeps_what_has_an_advantage() -> None:
    assert zero_variance(scored([0.0, 1.0, 1.0]))
    assert not zero_variance(scored([0.1, 0.1, 0.1]))
    assert not zero_variance(scored([-0.19, -0.19000000000000006, -0.19]))  # but for rounding
    assert zero_variance(scored([0.0, 1.0, None]))  # the others are compared
    assert not zero_variance(scored([1.0, None]))  # with nobody
    assert not zero_variance(make_group([2, 2], advantages=[0.0, 0.0]))


def parted(*accuracies: float | None, lengths: Sequence[float]) -> Group:
    """Scores of an accuracy and a penalty for length; None could not be scored."""
    group = Group([make_trajectory(make_sample(), [1], index=i) for i in range(len(accuracies))])
    for member, accuracy, penalty in zip(group.trajectories, accuracies, lengths, strict=True):
        parts = {"exact": accuracy or 0.0, "overlong": penalty}
        member.score = None if accuracy is None else Score(sum(parts.values()), parts)
    assign_credit([group], make_config().algorithm)
    return group


def test_zero_variance_of_a_named_reward_is_the_criterion_of_dapo() -> None:
    """All are right and one of them is a little too long: the total differs, the accuracy does not."""
    all_right = parted(*[1.0] * 8, lengths=[0.0] * 7 + [-0.1])
    assert zero_variance(all_right)
    assert advantages_of(all_right) == pytest.approx([0.354] * 7 + [-2.475], abs=1e-3)
    assert not zero_variance(all_right, reward="exact")
    assert not zero_variance(parted(0.0, 0.0, lengths=[0.0, -0.5]), reward="exact")
    assert zero_variance(parted(1.0, 0.0, lengths=[0.0, -0.1]), reward="exact")
    assert not zero_variance(parted(1.0, 0.0, lengths=[-1.0, 0.0]), reward="exact")  # no advantage is left
    assert zero_variance(parted(1.0, 0.0, lengths=[0.0, -0.1]), reward=["iou", "exact"])  # of two sources
    assert reward_range(all_right, reward="exact", lowest=1.0)
    assert not reward_range(all_right, lowest=1.0)


def test_a_filter_of_a_reward_that_is_not_there_names_those_that_are() -> None:
    for keeps in (zero_variance, reward_range):
        with pytest.raises(ConfigError, match=r"batch\.filters: reward 'exakt' .* has exact, overlong"):
            keeps(parted(1.0, 0.0, lengths=[0.0, 0.0]), reward="exakt")


def test_the_other_filters() -> None:
    assert failed(scored([0.0, 1.0])) and not failed(scored([0.0, None]))
    assert length(scored([0, 1], [2, 4]), min_tokens=3, max_tokens=3)
    assert not length(scored([0, 1], [2, 4]), min_tokens=4)
    assert not length(scored([0, 1], [2, 4]), max_tokens=2)
    half = scored([0, 1], outcomes=["truncated", "ok"])
    assert truncated(half) and not truncated(half, max_share=0.4)
    assert reward_range(scored([0, 1])) and not reward_range(scored([0, 1]), lowest=0.6)
    assert not reward_range(scored([None, None]))


def test_a_filter_of_ones_own_and_the_order_of_blame(tmp_path: Any) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def few(group, *, most):\n    return len(group.trajectories) <= most\n")
    own = partial(resolve("filters", f"{file}:few"), most=2)
    filters: list[NamedFilter] = [("few", own), ("zero_variance", resolve("filters", "zero_variance"))]
    assert first_refusal(scored([0, 1, 1]), filters) == "few"
    assert first_refusal(scored([1, 1]), filters) == "zero_variance"
    assert first_refusal(scored([0, 1]), filters) is None


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_filled_before_every_step_batches_are_as_old_as_they_may_be(staleness: int) -> None:
    async def run() -> None:
        policy = VersionedPolicy(delay_s={"p3": 0.02, "p8": 0.01})
        limits = {"pipeline_depth": staleness + 1, "max_staleness": staleness}
        world = World(streams=True, policy=policy, **limits)
        ages = []
        for step in range(7):
            await world.collector.fill()
            batch = await world.step()
            assert ids(batch) == [f"p{2 * step}", f"p{2 * step + 1}"]
            ages.append(step - (oldest_version(batch.groups) or 0))
        await world.collector.close()
        assert ages == [min(step, staleness) for step in range(7)]

    asyncio.run(run())


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(Exception, match=r"over_sampling=2 draws for nothing without batch\.filters"):
        make_config(batch={"over_sampling": 2})
    with pytest.raises(Exception, match=r"set episodes\.lockstep=false"):
        make_config(async_={"mode": "async"})
    asynchronous: dict[str, Any] = {"async_": {"mode": "async"}, "episodes": {"lockstep": False}}
    assert make_config(**asynchronous).async_.streams
    with pytest.raises(Exception, match=r"leave generator\.mode out"):
        make_config(**asynchronous, generator={"mode": "waves"})
    with pytest.raises(Exception, match="credits beyond 3 batches would never be used"):
        make_config(
            async_={"mode": "async", "pipeline_depth": 4, "max_staleness": 2}, episodes={"lockstep": False}
        )


def test_engines_draw_the_way_that_the_mode_needs() -> None:
    asynchronous: dict[str, Any] = {"async_": {"mode": "async"}, "episodes": {"lockstep": False}}
    assert make_config().generator.mode == "waves"
    assert make_config(**asynchronous).generator.mode == "continuous"
    assert make_config(generator={"mode": "continuous"}).generator.mode == "continuous"


def test_counts_of_rows_and_episodes_add_up_over_rounds() -> None:
    class Counting(World):
        async def draw(self, tickets: Sequence[Ticket[Groups]]) -> Round:
            drawn = await super().draw(tickets)
            return Round(drawn.groups, counts=Counter(a=1), rows=Counter(b=2), seconds={"reward": 1.0})

    async def run() -> None:
        world = Counting(flat=[0, 1], filters=ZERO_VARIANCE)
        batch = await world.step()
        num_rounds = len(world.rounds)
        assert num_rounds > 1
        assert batch.counts == {"a": num_rounds} and batch.rows == {"b": 2 * num_rounds}
        assert batch.seconds == {"reward": num_rounds}

    asyncio.run(run())
