"""Adaptive samplers in the loop: which outcomes a position sees, workers, staleness, checkpoints.

Episodes are faked: how many completions pass is a function of row and position, and when they end is random.
"""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from builders import make_sample

from vlrl.config.asynchronous import BatchConfig, FilterConfig
from vlrl.config.data import SamplerConfig
from vlrl.data import Prepared, SampleStream
from vlrl.data.curriculum.choice import AdaptiveSource, RowChoices
from vlrl.data.curriculum.evidence import Evidence
from vlrl.data.curriculum.weighted import RowWeights
from vlrl.data.mixture import Mixture
from vlrl.data.stream import source_seed
from vlrl.rollout.buffer import Buffer, BufferLimits, Ticket
from vlrl.rollout.collector import Collector
from vlrl.rollout.outcome import Round, TicketOutcome
from vlrl.seeds import derive_seed
from vlrl.tracking.group_numbers import GroupNumbers, TrajectoryNumbers
from vlrl.types import Row

NUM_ROWS, GROUP_SIZE, SEED = 12, 8, 3


class Rows:
    """Rows whose id is their number."""

    def __len__(self) -> int:
        return NUM_ROWS

    def __getitem__(self, index: int) -> Row:
        return {"id": str(index)}


def member(passed: bool) -> TrajectoryNumbers:
    return TrajectoryNumbers(
        failure="",
        total=float(passed),
        parts={"right": float(passed)},
        num_action_tokens=1,
        truncated=False,
        source="",
        episode=None,
        in_env=False,
        failed=False,
    )


def num_passed(row: int, position: int) -> int:
    """Rows from 0 to 11 pass ever less often."""
    rng = np.random.default_rng(derive_seed("passes", row, position))
    return int(rng.binomial(GROUP_SIZE, 1.0 - row / (NUM_ROWS - 1)))


def outcome(number: int | None, sample_id: str, position: int, *, filtered: bool) -> TicketOutcome:
    passed = num_passed(int(sample_id), position)
    members = tuple(member(i < passed) for i in range(GROUP_SIZE))
    group = GroupNumbers(sample_id, members, GROUP_SIZE, False, None)
    if filtered and passed in (0, GROUP_SIZE):
        return TicketOutcome((), (group,), [], "zero_variance", row=number)
    return TicketOutcome((group,), (), [group], row=number)


class World:
    """A run without engines; its workers have streams of their own, as rollout workers have.

    Attributes:
        rows: of positions, by what was generated.
        counted: of positions, groups in the evidence when its row was chosen.
        batches: positions trained at each step.
    """

    def __init__(
        self,
        *,
        num_workers: int = 0,
        streams: bool = False,
        filtered: bool = False,
        delays: int | None = None,
        broken: Sequence[int] = (),
        num_sources: int = 1,
        checkpoint: tuple[str, bytes] | None = None,
        **limits: Any,
    ) -> None:
        self.limits = BufferLimits(4, **limits)
        self.filtered, self.broken, self.random = filtered, broken, random.Random(delays)
        self.delayed, self.rows, self.batches = delays is not None, dict[int, set[str]](), list[list[int]]()
        self.prefetched: dict[int, int] = {}
        self.choices = self.new_choices(num_sources)
        self.streams_of = [self.new_stream(num_sources) for _ in range(max(1, num_workers))]
        if checkpoint is None:
            self.buffer: Buffer[TicketOutcome] = Buffer(self.limits, rows=self.choices)
        else:
            with np.load(io.BytesIO(checkpoint[1]), allow_pickle=False) as state:
                self.choices.restore(state)
            snapshot = json.loads(checkpoint[0])
            payloads = {int(p): self.play_one(int(p), row) for p, row in snapshot["done"].items()}
            self.buffer = Buffer.restore(self.limits, snapshot["buffer"], payloads, self.choices)
        filters = [FilterConfig(name="zero_variance")] if filtered else []
        self.collector = Collector(
            self.buffer,
            self.generate,
            filters=[f.name for f in filters],
            options=BatchConfig(filters=filters, max_dropped_share=0.99),
            streams=streams,
            check=lambda batch: None,
            prefetch=self.prefetch,
        )

    def new_choices(self, num_sources: int) -> RowChoices:
        sources: list[AdaptiveSource | None] = [None] * num_sources
        for index in range(min(1, num_sources), num_sources) if num_sources > 1 else range(1):
            evidence = Evidence(NUM_ROWS, half_life=20.0, prior_strength=1.0)
            weights = RowWeights(SamplerConfig(name="learnability"), "data.train")
            none = np.zeros(0, np.int64)
            sources[index] = AdaptiveSource(evidence, weights, source_seed(SEED, index), "right", none)
        return RowChoices(sources, Mixture([1.0] * num_sources, SEED), self.limits.num_credits, 1.0)

    def new_stream(self, num_sources: int) -> SampleStream:
        def prepare(row: Row, source: int) -> Prepared:
            if int(row["id"]) in self.broken:
                return Prepared(None, reason="it is too long")
            return Prepared(make_sample(id=row["id"], source=str(source)))

        return SampleStream(
            [Rows() for _ in range(num_sources)],
            prepare,
            batch_size=4,
            seed=SEED,
            weights=[1.0] * num_sources,
            adaptive=frozenset(range(num_sources) if num_sources == 1 else range(1, num_sources)),
        )

    def play_one(self, position: int, row: int | None) -> TicketOutcome:
        stream = self.streams_of[position % len(self.streams_of)]
        (prepared,) = stream.prepare([position], {} if row is None else {position: row})
        sample = prepared.result().sample
        self.rows.setdefault(position, set()).add(f"{sample.source}:{sample.id}")
        return outcome(prepared.result().number, sample.id, position, filtered=self.filtered)

    def prefetch(self, chosen: Mapping[int, int]) -> None:
        self.prefetched |= chosen
        for position, row in chosen.items():
            self.streams_of[position % len(self.streams_of)].prefetch({position: row})

    async def generate(self, tickets: Sequence[Ticket[TicketOutcome]]) -> Round:
        if self.delayed:
            await asyncio.sleep(self.random.random() * 0.004)
        return Round([self.play_one(ticket.position, ticket.row) for ticket in tickets])

    async def steps(self, first: int, last: int) -> None:
        for step in range(first, last):
            batch = await self.collector.batch()
            self.batches.append([ticket.position for ticket in batch.tickets])
            if self.delayed:
                await asyncio.sleep(self.random.random() * 0.004)
            self.collector.advance(step + 1)

    def checkpoint(self) -> tuple[str, bytes]:
        """What a run keeps, as bytes."""
        done = {
            position: next((t.row for t in self.buffer._open.values() if t.position == position), None)
            for position in self.buffer.payloads()
        }
        file = io.BytesIO()
        np.savez(file, **self.choices.state())
        return json.dumps({"buffer": self.buffer.snapshot(), "done": done}), file.getvalue()

    def close(self) -> None:
        for stream in self.streams_of:
            stream.close()


@contextmanager
def world(**options: Any) -> Iterator[World]:
    opened = World(**options)
    try:
        yield opened
    finally:
        opened.close()


def run(num_steps: int = 12, **options: Any) -> tuple[dict[int, set[str]], list[list[int]]]:
    async def play(opened: World) -> None:
        await opened.steps(0, num_steps)
        await opened.collector.close()

    with world(**options) as opened:
        asyncio.run(play(opened))
        assert all(len(rows) == 1 for rows in opened.rows.values()), "a position keeps its row"
        return opened.rows, opened.batches


@pytest.mark.parametrize("options", [{}, {"filtered": True, "over_sampling": 1.5}])
def test_the_number_of_workers_changes_nothing(options: dict[str, Any]) -> None:
    alone = run(num_workers=0, **options)
    assert run(num_workers=1, **options) == run(num_workers=3, **options) == alone


ASYNC = {"streams": True, "pipeline_depth": 2, "max_staleness": 2}


@pytest.mark.parametrize("options", [{}, {"filtered": True}])
def test_what_ends_first_changes_nothing(options: dict[str, Any]) -> None:
    """Streaming, with episodes and trainer of random durations."""
    runs = [run(**ASYNC, **options, delays=delays, num_workers=delays % 4) for delays in range(6)]
    for rows, batches in runs[1:]:
        assert batches == runs[0][1]
        assert all(rows[p] == runs[0][0][p] for p in rows.keys() & runs[0][0].keys())


def test_a_position_sees_the_outcomes_of_those_lag_before_it_and_no_other() -> None:
    """Recomputed from the definition, in sync and in async mode."""
    for options in ({}, ASYNC):
        rows, _ = run(**options)
        delay = 4 * options.get("pipeline_depth", 1)
        with world() as fresh:
            for position in range(len(rows)):
                source = fresh.new_choices(1)._sources[0]
                assert source is not None
                for before in range(max(0, position - delay + 1)):
                    row = int(next(iter(rows[before]))[2:])
                    source.evidence.observe(row, before, num_passed(row, before), GROUP_SIZE)
                assert rows[position] == {f"0:{source.choose(position)}"}, position


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"filtered": True, "over_sampling": 1.5, "num_ahead": 4},
        ASYNC,
        {**ASYNC, "filtered": True, "num_ahead": 7},
        {"num_sources": 2, "num_ahead": 4},
    ],
)
@pytest.mark.parametrize("stop", [1, 4, 7])
def test_a_resumed_run_chooses_the_same_rows(options: dict[str, Any], stop: int) -> None:
    whole, batches = run(**options)

    async def first(opened: World) -> tuple[str, bytes]:
        await opened.steps(0, stop)
        kept = opened.checkpoint()
        await opened.collector.close()
        return kept

    async def rest(opened: World) -> None:
        opened.collector.advance(stop)
        await opened.steps(stop, 12)
        await opened.collector.close()

    with world(**options) as killed:
        checkpoint = asyncio.run(first(killed))
    with world(**options, checkpoint=checkpoint) as resumed:
        asyncio.run(rest(resumed))
        assert killed.batches + resumed.batches == batches
        for position in whole.keys() & resumed.rows.keys():
            assert resumed.rows[position] == whole[position]
        assert set(whole) <= set(killed.rows) | set(resumed.rows)


@pytest.mark.parametrize("options", [{}, {"filtered": True, "over_sampling": 1.5}, ASYNC])
def test_rows_are_told_ahead_without_changing_any(options: dict[str, Any]) -> None:
    """The whole next batch while the trainer steps, in sync mode."""
    rows, batches = run(**options)
    assert run(**options, num_ahead=4) == run(**options, num_ahead=9) == (rows, batches)

    async def play(opened: World) -> None:
        await opened.steps(0, 6)
        assert not opened.streams_of[0]._given.keys() - set(opened.choices._chosen.items())

    with world(num_ahead=4) as opened:
        asyncio.run(play(opened))
        assert opened.prefetched.keys() >= set(range(4, 28))
        assert all(f"0:{row}" in opened.rows.get(p, {f"0:{row}"}) for p, row in opened.prefetched.items())


def test_rows_that_teach_something_come_more_often() -> None:
    rows, _ = run(num_steps=60)
    counts = np.bincount([int(next(iter(found))[2:]) for found in rows.values()], minlength=NUM_ROWS)
    assert counts[[4, 5, 6, 7]].mean() > 2 * counts[[0, 11]].mean()
    assert counts.min() > 0


def test_a_row_that_cannot_be_used_is_replaced_and_not_chosen_again() -> None:
    async def play(opened: World) -> None:
        await opened.steps(0, 40)

    with world(broken=[5]) as opened:
        asyncio.run(play(opened))
        source = opened.choices._sources[0]
        assert source is not None
        assert np.flatnonzero(source.state()["excluded"]).tolist() == [5]
        assert "0:5" not in {row for rows in opened.rows.values() for row in rows}


def test_a_source_that_is_not_adaptive_keeps_its_own_order() -> None:
    rows, _ = run(num_sources=2)
    with world(num_sources=2) as fresh:
        stream = fresh.new_stream(2)
        own = [stream.prepare([p])[0].result().sample for p in sorted(rows)]
        stream.close()
    kept = [sample for sample in own if sample.source == "0"]
    for sample, (_, found) in zip(own, sorted(rows.items()), strict=True):
        if sample.source == "0":
            assert found == {f"0:{sample.id}"}
    assert 0 < len(kept) < len(own)


def test_a_checkpoint_without_an_adaptive_sampler_begins_with_nothing_known() -> None:
    with world() as opened:
        opened.choices.begin_at(20)
        assert all(opened.choices.is_ready(position) for position in range(20, 24))
        assert not opened.choices.is_ready(24), "its outcome is to be waited for"
        opened.choices.settle(7, 1, outcome(1, "1", 7, filtered=False))
        assert opened.choices.state()["settled"].size == 0


def test_failures_are_no_evidence() -> None:
    failed = TrajectoryNumbers("it broke", None, {}, 0, False, "", None, in_env=True, failed=True)
    group = GroupNumbers("1", (failed, member(True)), 1, True, None)
    with world() as opened:
        opened.choices.choose(0)
        opened.choices.settle(0, 1, TicketOutcome((group,), (), [], row=1))
        assert opened.choices.state()["settled"].tolist() == [[0, 1, 1, 1, 1]]


def test_numbers_of_the_last_choice_are_part_of_a_checkpoint() -> None:
    """A resumed step may choose no row, as those of its tickets were chosen before."""
    with world() as one, world() as other:
        one.choices.choose(0)
        assert other.choices.metrics() == {}
        other.choices.restore(one.choices.state())
        assert other.choices.metrics() == one.choices.metrics() != {}
