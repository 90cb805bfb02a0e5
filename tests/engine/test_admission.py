"""The queue before an engine: nobody is lost, nobody overtakes, and the limit follows the cache."""

from __future__ import annotations

from collections import deque
from typing import Literal

import pytest
from builders import make_config
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.engine.client.admission import BACK_OFF, AdmissionQueue
from vlrl.errors import ConfigError

EVENTS = st.lists(
    st.one_of(
        st.integers(1, 6),  # so many arrive
        st.tuples(st.floats(0, 1), st.integers(0, 3)),  # one ends: (KV usage, the engine's waiting)
    ),
    max_size=80,
)


@settings(deadline=None)
@given(EVENTS, st.sampled_from(["auto", None, 1, 3]), st.integers(1, 8))
def test_everybody_goes_in_once_in_order_and_never_too_many(
    events: list[int | tuple[float, int]], limit: int | Literal["auto"] | None, most: int
) -> None:
    queue, arrived, inside = AdmissionQueue[int](limit, most), 0, deque[int]()
    admitted: list[int] = []
    for event in events:
        if isinstance(event, int):
            went = queue.enter(range(arrived, arrived + event))
            arrived += event
        elif inside:
            inside.popleft()
            went = queue.leave(*event)
        else:
            continue
        inside.extend(went)
        admitted += went
        assert queue.num_inside == len(inside)
        assert 1 <= queue.limit <= max(most, limit if isinstance(limit, int) else 0)
        if limit is not None and went:
            assert len(inside) <= queue.limit
        if len(admitted) < arrived:  # whoever waits, waits for somebody
            assert inside
    assert admitted == list(range(len(admitted)))
    while inside:
        inside.popleft()
        went = queue.leave(None)
        inside.extend(went)
        admitted += went
    assert admitted == list(range(arrived))


def test_a_full_cache_lowers_the_limit_once_a_round() -> None:
    queue = AdmissionQueue[int]("auto", 16)
    queue.enter(range(100))
    limits = []
    for _ in range(16):
        queue.leave(0.95)
        limits.append(queue.limit)
    assert limits == [16] * 15 + [int(16 * BACK_OFF)]


@pytest.mark.parametrize(
    ("usage", "num_waiting", "grows"), [(0.3, 0, True), (0.7, 0, False), (0.3, 2, False)]
)
def test_the_limit_grows_only_where_there_is_room(usage: float, num_waiting: int, grows: bool) -> None:
    queue = AdmissionQueue[int]("auto", 64)
    queue.limit = 4
    queue.enter(range(100))
    for _ in range(10):
        queue.leave(usage, num_waiting)
    assert queue.limit == (14 if grows else 4)


def test_a_limit_that_holds_nobody_back_does_not_grow() -> None:
    queue = AdmissionQueue[int]("auto", 64)
    queue.limit = 8
    for i in range(20):
        queue.enter([i])
        queue.leave(0.1)
    assert queue.limit == 8


def num_thrown_out(capacity: int, needed: int, num_requests: int, limit: int | Literal["auto"]) -> int:
    """Times that an engine with `capacity` blocks throws a request out because its cache is full.

    A request takes a block a tick and ends with `needed`; while too few are free, the youngest starts again.
    """
    queue, inside, count = AdmissionQueue[int](limit, 64), list[int](), 0
    inside += [0 for _ in queue.enter(range(num_requests))]
    while inside:
        for place in range(len(inside)):
            if sum(inside) == capacity:
                victim = max(i for i, blocks in enumerate(inside) if blocks)
                inside[victim], count = 0, count + 1
                if victim <= place:
                    break
            inside[place] += 1
        usage, num_waiting = sum(inside) / capacity, inside.count(0)
        done = sum(blocks >= needed for blocks in inside)
        inside = [blocks for blocks in inside if blocks < needed]
        for _ in range(done):
            inside += [0 for _ in queue.leave(usage, num_waiting)]
    return count


def test_following_the_cache_throws_out_less_than_letting_everybody_in() -> None:
    assert num_thrown_out(100, 10, 400, "auto") < num_thrown_out(100, 10, 400, 64) / 2


def test_waves_have_no_gate() -> None:
    with pytest.raises(
        ConfigError, match=r"generator\.max_concurrency=auto bounds what joins a running engine"
    ):
        make_config(generator={"max_concurrency": "auto"})
    assert make_config(generator={"max_concurrency": 4, "mode": "continuous"}).generator.max_concurrency == 4
