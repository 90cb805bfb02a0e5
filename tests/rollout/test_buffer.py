"""The slots' state machine: no slot lost, no deadlock, nothing trained twice, skipped or too old."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from vlrl.errors import InternalError
from vlrl.rollout.buffer import Buffer, BufferLimits, State


def generated(buffer: Buffer[str]) -> list[int]:
    """Admit everything and generate it at once; the positions."""
    positions = [ticket.position for ticket in buffer.admit()]
    for position in positions:
        buffer.finish(position, f"generated {position}")
    return positions


def cut_positions(buffer: Buffer[str]) -> list[int] | None:
    cut = buffer.cut()
    return None if cut is None else [ticket.position for ticket in cut.tickets]


def test_without_staleness_a_batch_is_generated_when_the_last_one_is_trained() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=3))
    assert generated(buffer) == [0, 1, 2]
    assert cut_positions(buffer) == [0, 1, 2]
    assert generated(buffer) == []  # batch 0 is being trained
    buffer.advance(1)
    assert generated(buffer) == [3, 4, 5]


def test_with_staleness_the_next_batch_is_generated_while_one_trains_and_no_further() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=2, pipeline_depth=1, max_staleness=4))
    assert generated(buffer) == [0, 1]
    assert generated(buffer) == []  # a slot comes back when a batch is cut
    assert cut_positions(buffer) == [0, 1]
    assert generated(buffer) == [2, 3]
    assert cut_positions(buffer) == [2, 3]


def test_depth_and_staleness_are_two_knobs() -> None:
    deep: Buffer[str] = Buffer(BufferLimits(batch_size=2, pipeline_depth=3, max_staleness=1))
    assert generated(deep) == [0, 1, 2, 3]  # slots for 6, but 4 and 5 would be trained 2 updates later
    wide: Buffer[str] = Buffer(BufferLimits(batch_size=2, pipeline_depth=3, max_staleness=8))
    assert generated(wide) == [0, 1, 2, 3, 4, 5]


def test_batches_are_cut_in_order_whatever_ends_first() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=2, pipeline_depth=2, max_staleness=2))
    buffer.admit()
    for position in (3, 2, 1):
        buffer.finish(position, "")
        assert buffer.cut() is None
    buffer.finish(0, "")
    assert cut_positions(buffer) == [0, 1]
    assert cut_positions(buffer) == [2, 3]


def test_a_dropped_ticket_makes_room_for_the_next_position_and_is_counted() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=2))
    buffer.admit()
    buffer.drop(0, "zero_variance")
    buffer.finish(1, "")
    assert buffer.cut() is None
    assert generated(buffer) == [2]
    cut = buffer.cut()
    assert cut is not None and [t.position for t in cut.tickets] == [1, 2]
    assert cut.counts == {"zero_variance": 1, "consumed": 2}
    assert not buffer.counts


def test_the_staleness_bound_is_held_by_the_oldest_token_when_the_batch_is_cut() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=1, pipeline_depth=4, max_staleness=2), num_cut=5)
    buffer.admit()
    buffer.finish(5, "as old as may be", oldest_version=3)
    buffer.finish(6, "a token of version 3", oldest_version=3)
    buffer.finish(7, "fresh", oldest_version=5)
    assert cut_positions(buffer) == [5]
    buffer.advance(6)
    assert buffer.cut() is None  # 6 - 3 > 2
    assert buffer.counts["stale"] == 1
    assert 6 in generated(buffer)
    assert cut_positions(buffer) == [6]  # in its place: no sample is skipped
    assert cut_positions(buffer) == [7]


def test_surplus_of_over_sampling_waits_or_is_generated_again_when_it_is_too_old() -> None:
    for max_staleness, redone in ((0, [2]), (1, [])):
        buffer: Buffer[str] = Buffer(BufferLimits(2, max_staleness=max_staleness, over_sampling=1.5))
        assert generated(buffer)[:3] == [0, 1, 2]
        assert cut_positions(buffer) == [0, 1]
        buffer.advance(1)
        assert buffer.cut() is None
        again = generated(buffer)
        assert [p for p in again if p == 2] == redone
        assert cut_positions(buffer) == [2, 3]


def test_a_lost_ticket_keeps_its_credit_and_its_place() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=2, pipeline_depth=2, max_staleness=2))
    buffer.admit()
    buffer.lose(0)
    for position in (1, 2, 3):
        buffer.finish(position, "")
    assert buffer.cut() is None
    assert generated(buffer) == [0]
    assert cut_positions(buffer) == [0, 1]


def test_what_is_not_running_cannot_end() -> None:
    buffer: Buffer[str] = Buffer(BufferLimits(batch_size=2))
    generated(buffer)
    for wrong in (lambda: buffer.finish(0, ""), lambda: buffer.drop(1, "failed"), lambda: buffer.lose(9)):
        with pytest.raises(InternalError, match="is not running"):
            wrong()
    with pytest.raises(InternalError, match="cannot follow"):
        buffer.advance(1)  # nothing was trained


class Life(RuleBasedStateMachine):
    """Any order of completions, drops, losses, updates, cuts and restarts."""

    @initialize(
        batch_size=st.integers(1, 4),
        pipeline_depth=st.integers(1, 3),
        max_staleness=st.integers(0, 3),
        over_sampling=st.sampled_from([1.0, 1.3, 2.0]),
    )
    def begin(self, **limits: Any) -> None:
        self.limits = BufferLimits(**limits)
        self.buffer: Buffer[tuple[int, int]] = Buffer(self.limits)
        self.engine_version = 0  # may lag behind what the buffer was told
        self.running: dict[int, int] = {}  # position → version it began under
        self.consumed: list[int] = []
        self.dropped: set[int] = set()
        self.saved: tuple[str, dict[int, Any], list[int], set[int]] | None = None

    @rule()
    def admit(self) -> None:
        admitted = self.buffer.admit()
        assert [t.position for t in admitted] == sorted(t.position for t in admitted)
        for ticket in admitted:
            assert ticket.position not in self.running
            assert ticket.position not in self.consumed and ticket.position not in self.dropped
            self.running[ticket.position] = self.buffer.version

    @precondition(lambda self: self.running)
    @rule(data=st.data(), lag=st.integers(0, 2))
    def finish(self, data: st.DataObject, lag: int) -> None:
        position = data.draw(st.sampled_from(sorted(self.running)))
        oldest = max(0, self.running.pop(position) - lag)
        self.buffer.finish(position, (position, oldest), oldest)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), what=st.sampled_from(["failed", "zero_variance", "lost"]))
    def end_badly(self, data: st.DataObject, what: str) -> None:
        position = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[position]
        if what == "lost":
            self.buffer.lose(position)
        else:
            self.buffer.drop(position, what)
            self.dropped.add(position)

    @rule()
    def update(self) -> None:
        """The trainer is done with all that was cut."""
        self.buffer.advance(self.buffer.num_cut)

    @rule()
    def cut(self) -> None:
        version = self.buffer.num_cut
        cut = self.buffer.cut()
        if cut is None:
            return
        assert len(cut.tickets) == self.limits.batch_size == cut.counts["consumed"]
        for ticket in cut.tickets:
            assert ticket.payload is not None
            position, oldest = ticket.payload
            assert position == ticket.position
            assert version - oldest <= self.limits.max_staleness
            self.consumed.append(position)

    @rule()
    def save(self) -> None:
        state = json.dumps(self.buffer.snapshot())
        self.saved = (state, self.buffer.payloads(), list(self.consumed), set(self.dropped))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restart(self) -> None:
        """The driver died: everything since the checkpoint is forgotten, also by the trainer."""
        assert self.saved is not None
        state, payloads, consumed, dropped = self.saved
        self.consumed, self.dropped = list(consumed), set(dropped)
        self.buffer = Buffer.restore(self.limits, json.loads(state), payloads)
        self.running = {}

    @invariant()
    def nothing_is_lost(self) -> None:
        """Every position below the next is open, consumed or dropped, and just one of them."""
        if not hasattr(self, "buffer"):
            return
        snapshot = self.buffer.snapshot()
        open_positions = [position for position, *_ in snapshot["open"]]
        everything = [*open_positions, *self.consumed, *self.dropped]
        assert sorted(everything) == list(range(snapshot["next_position"]))
        assert self.consumed == sorted(self.consumed)
        assert len(self.buffer) <= self.limits.num_credits
        assert self.buffer.num_in(State.RUNNING) == len(self.running)

    @invariant()
    def there_is_always_a_way_on(self) -> None:
        """If nothing runs and the trainer waits, a copy of the buffer admits something or gives a batch."""
        if not hasattr(self, "buffer") or self.running:
            return
        twin = Buffer.restore(self.limits, self.buffer.snapshot(), self.buffer.payloads())
        assert twin.version == twin.num_cut
        assert twin.cut() is not None or twin.admit()


Life.TestCase.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLife = Life.TestCase
