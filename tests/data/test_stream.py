"""The order of samples: epochs, mixtures, streams, resumption, threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from builders import make_sample

from vlrl.data import Prepared, SampleStream
from vlrl.data.overlong import PromptTooLong
from vlrl.errors import DataError
from vlrl.types import Row


class Numbers:
    """Rows 0 … n-1."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> Row:
        if index == 13:
            raise DataError("row 13 is broken")
        return {"id": str(index)}


def prepare(row: Row, source: int) -> Prepared:
    return Prepared(make_sample(id=row["id"], source=str(source)))


@pytest.fixture
def streams() -> Iterator[Any]:
    opened: list[SampleStream] = []

    def open_stream(*sizes: int, batch: int = 4, seed: int = 0, **options: Any) -> SampleStream:
        sources = [Numbers(size) for size in sizes]
        options = {"prepare": prepare, "weights": [1.0] * len(sizes), **options}
        opened.append(SampleStream(sources, batch_size=batch, seed=seed, **options))
        return opened[-1]

    yield open_stream
    for stream in opened:
        stream.close()


def ids(stream: SampleStream, *steps: int) -> list[str]:
    return [sample.id for step in steps for sample in stream.batch(step)]


def by_source(stream: SampleStream, num_steps: int) -> dict[str, list[str]]:
    samples = [sample for step in range(num_steps) for sample in stream.batch(step)]
    return {
        source: [s.id for s in samples if s.source == source]
        for source in sorted({s.source for s in samples})
    }


def test_an_epoch_has_every_row_once_in_a_new_order(streams: Any) -> None:
    drawn = ids(streams(10, batch=4), 0, 1, 2, 3, 4)
    first, second = drawn[:10], drawn[10:]
    assert sorted(first) == sorted(second) == [str(i) for i in range(10)]
    assert first != second
    assert first != sorted(first)


def test_any_step_can_be_asked_for(streams: Any) -> None:
    """Law 8: a resumed run gets the rows it would have got."""
    for sizes in ((12,), (12, 5, 3)):
        walked, resumed = streams(*sizes), streams(*sizes)
        expected = [ids(walked, step) for step in range(9)]
        assert [ids(resumed, step) for step in (5, 6, 2, 8)] == [expected[step] for step in (5, 6, 2, 8)]


def test_the_order_follows_the_seed(streams: Any) -> None:
    for sizes in ((12,), (12, 12)):
        assert ids(streams(*sizes, seed=0), 0, 1) == ids(streams(*sizes, seed=0), 0, 1)
        assert ids(streams(*sizes, seed=0), 0, 1) != ids(streams(*sizes, seed=1), 0, 1)


def test_sources_are_drawn_by_weight_each_through_its_own_epochs(streams: Any) -> None:
    drawn = by_source(streams(12, 5, batch=50, weights=[3.0, 1.0]), 40)
    assert len(drawn["0"]) + len(drawn["1"]) == 2000
    assert 0.70 < len(drawn["0"]) / 2000 < 0.80
    for source, size in (("0", 12), ("1", 5)):
        whole = len(drawn[source]) // size * size
        epochs = [drawn[source][i : i + size] for i in range(0, whole, size)]
        assert all(sorted(epoch) == sorted(map(str, range(size))) for epoch in epochs)
        assert len({tuple(epoch) for epoch in epochs}) > 1


def test_two_sources_of_one_size_are_not_shuffled_alike(streams: Any) -> None:
    drawn = by_source(streams(12, 12, batch=60), 1)
    assert drawn["0"][:12] != drawn["1"][:12]


def test_far_positions_are_as_repeatable_as_near_ones(streams: Any) -> None:
    assert ids(streams(12, 5, batch=8), 9000) == ids(streams(12, 5, batch=8), 9000)


@pytest.mark.parametrize(("num_workers", "prefetch_steps"), [(1, 0), (2, 1), (7, 3)])
def test_threads_change_nothing(streams: Any, num_workers: int, prefetch_steps: int) -> None:
    def slowly(row: Row, source: int) -> Prepared:
        threading.Event().wait((hash(row["id"]) % 5) / 1000)
        return Prepared(None) if int(row["id"]) % 3 == 0 else prepare(row, source)

    def drawn(**options: int) -> list[Any]:
        stream = streams(12, 8, prepare=slowly, **options)
        return [(ids(stream, step), stream.metrics) for step in range(6)]

    assert drawn(num_workers=num_workers, prefetch_steps=prefetch_steps) == drawn()


def test_steps_are_prepared_ahead(streams: Any) -> None:
    seen: set[str] = set()
    done = threading.Semaphore(0)

    def note(row: Row, source: int) -> Prepared:
        seen.add(row["id"])
        done.release()
        return prepare(row, source)

    stream = streams(12, prepare=note, prefetch_steps=2)
    first = ids(stream, 0)
    for _ in range(12):  # without being asked for: this step and the next two
        assert done.acquire(timeout=60)
    assert len(seen) == 12
    assert set(first) < seen


def test_a_row_that_is_too_long_is_replaced_and_counted(streams: Any) -> None:
    def long_thirds(row: Row, source: int) -> Prepared:
        if int(row["id"]) % 3 == 0:
            return Prepared(None, reason=f"row {row['id']} is long")
        return Prepared(prepare(row, source).sample, num_dropped_turns=int(row["id"]) == 1)

    plain, dropping = streams(12, batch=12), streams(12, batch=12, prepare=long_thirds)
    expected, drawn = ids(plain, 0), ids(dropping, 0)
    for row, got in zip(expected, drawn, strict=True):
        assert got == row if int(row) % 3 else int(got) % 3
    assert dropping.metrics["data/num_dropped_overlong"] >= 4
    assert dropping.metrics["data/num_dropped_turns"] == drawn.count("1")
    assert ids(streams(12, batch=12, prepare=long_thirds), 0) == drawn
    assert set(plain.metrics.values()) == {0.0}


def test_rows_that_are_all_too_long_stop_the_run(streams: Any) -> None:
    stream = streams(12, prepare=lambda row, source: Prepared(None, reason="sample 'x' needs 9 tokens"))
    with pytest.raises(DataError, match=r"64 rows in a row .*\(64 too long .* 0 broken.* sample 'x' needs 9"):
        stream.batch(0)


def test_a_broken_row_fails_the_step_that_needs_it(streams: Any) -> None:
    stream = streams(14, batch=14)
    with pytest.raises(DataError, match="row 13 is broken"):
        stream.batch(0)
    tame = streams(13, batch=13)
    assert len(ids(tame, 0)) == 13


def test_no_thread_is_left_behind(streams: Any) -> None:
    stream = streams(12, num_workers=3)
    stream.batch(0)
    assert any(t.name.startswith("samples") for t in threading.enumerate())
    stream.close()
    assert not any(t.name.startswith("samples") for t in threading.enumerate())


def breaks(row: dict[str, Any], source: int) -> Prepared:
    if int(row["id"]) % 3 == 0:
        raise DataError(f"row {row['id']}: its image is broken")
    return prepare(row, source)


def test_a_broken_row_is_an_error(streams: Any) -> None:
    with pytest.raises(DataError, match="its image is broken"):
        streams(12, prepare=breaks).batch(0)


def test_a_broken_row_is_replaced_counted_and_reported_if_that_is_wanted(streams: Any) -> None:
    told: list[str] = []
    stream = streams(12, prepare=breaks, on_broken=told.append, prefetch_steps=0)
    samples = stream.batch(0)
    assert all(int(sample.id) % 3 for sample in samples)
    assert stream.metrics["data/num_dropped_broken"] == len(told) > 0
    assert stream.metrics["data/num_dropped_overlong"] == 0
    again = streams(12, prepare=breaks, on_broken=told.append, num_workers=3)
    assert [s.id for s in again.batch(0)] == [s.id for s in samples]


def test_a_row_that_cannot_be_read_is_one_too(streams: Any) -> None:
    told: list[str] = []
    stream = streams(14, batch=14, on_broken=told.append, prefetch_steps=0)
    assert "13" not in ids(stream, 0)
    assert (stream.metrics["data/num_dropped_broken"], told) == (1.0, ["row 13 is broken"])


def test_a_prompt_that_may_not_be_too_long_is_an_error_all_the_same(streams: Any) -> None:
    def too_long(row: dict[str, Any], source: int) -> Prepared:
        raise PromptTooLong("needs 9 tokens, set data.overlong to drop")

    with pytest.raises(PromptTooLong):
        streams(12, prepare=too_long, on_broken=lambda reason: None).batch(0)


def test_only_own_positions_are_prepared_ahead() -> None:
    prepared: list[str] = []

    def noting(row: Row, source: int) -> Prepared:
        prepared.append(row["id"])
        return prepare(row, source)

    def opened(**options: Any) -> SampleStream:
        return SampleStream([Numbers(12)], noting, batch_size=4, seed=0, prefetch_steps=1, **options)

    all_of_them = opened()
    expected = [future.result().sample.id for future in all_of_them.prepare(range(8))]
    all_of_them.close()
    prepared.clear()
    own = opened(owns=lambda position: position % 2 == 0)
    asked = [future.result().sample.id for future in own.prepare([0, 2])]
    own.close()
    assert asked == [expected[0], expected[2]]
    assert set(prepared) <= {expected[position] for position in (0, 2, 4, 6)}
