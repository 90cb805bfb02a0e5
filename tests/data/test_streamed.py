"""Sets that are only read one row after the other: shuffled within blocks, resumed exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
from builders import make_config, make_sample

from vlrl.config.data import DatasetConfig
from vlrl.data import Prepared, SampleStream, StreamedRows, open_dataset, open_source
from vlrl.data.readers.record import Record
from vlrl.data.row_samplers import StreamedSampler
from vlrl.data.rows import RowMaker
from vlrl.data.run_data import Sources
from vlrl.errors import ConfigError, DataError


class Tape:
    """Records that can only be read from the beginning on, in shards of three; counts what is read."""

    buffer_size = 4

    def __init__(self, size: int, num_records: int | None = None) -> None:
        self.size, self.num_records, self.num_read = size, num_records, 0

    def records(self, shuffle_seed: int | None, skip: int) -> Iterator[Record]:
        shards = [range(i, min(i + 3, self.size)) for i in range(0, self.size, 3)]
        if shuffle_seed is not None and shards:
            shards = shards[shuffle_seed % len(shards) :] + shards[: shuffle_seed % len(shards)]
        for number in [number for shard in shards for number in shard][skip:]:
            self.num_read += 1
            yield Record({"problem": str(number), "answer": number}, f"tape:{number}", None)


def sampler(tape: Tape, limit: int | None = None, seed: int = 0) -> StreamedSampler:
    return StreamedSampler(StreamedRows(tape, RowMaker(), limit), seed)


def answers(tape: Tape, positions: range, **options: Any) -> list[int]:
    source = sampler(tape, **options)
    return [source.row(position)["answer"] for position in positions]


@pytest.mark.parametrize("num_records", [None, 10])
def test_every_epoch_has_every_row_once_in_a_new_order(num_records: int | None) -> None:
    drawn = answers(Tape(10, num_records), range(30))
    epochs = [drawn[i : i + 10] for i in (0, 10, 20)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2] != sorted(epochs[2])
    assert drawn != answers(Tape(10, num_records), range(30), seed=1)


@pytest.mark.parametrize("num_records", [None, 10])
def test_any_position_can_be_resumed_at(num_records: int | None) -> None:
    """Law 8; whether the number of rows is known beforehand changes nothing either."""
    expected = answers(Tape(10), range(40))
    for start in (0, 3, 9, 10, 17, 33):
        assert answers(Tape(10, num_records), range(start, 40)) == expected[start:]


def test_reading_on_reads_each_row_once_an_epoch() -> None:
    tape = Tape(100, num_records=100)
    answers(tape, range(200))
    assert tape.num_read == 200


def test_a_limit_takes_the_same_first_rows_in_every_epoch() -> None:
    drawn = answers(Tape(10), range(12), limit=6)
    assert sorted(drawn[:6]) == sorted(drawn[6:]) == list(range(6))
    assert drawn[:6] != drawn[6:]
    assert answers(Tape(10, num_records=10), range(12), limit=6) == drawn


def test_a_replacement_is_another_row_of_the_block() -> None:
    source, block = sampler(Tape(10, 10)), answers(Tape(10, 10), range(4))
    replacements = [source.row(2, attempt)["answer"] for attempt in range(1, 20)]
    assert set(replacements) == set(block)
    assert replacements == [sampler(Tape(10, 10)).row(2, attempt)["answer"] for attempt in range(1, 20)]


def test_a_stream_that_ends_early_or_is_empty_is_told() -> None:
    with pytest.raises(DataError, match="declares 10 rows ended after 6; give it a limit of 6"):
        answers(Tape(6, num_records=10), range(10))
    with pytest.raises(DataError, match="a streamed dataset is empty"):
        answers(Tape(0), range(1))


def test_a_stream_mixes_with_rows_that_have_numbers() -> None:
    def prepare(row: Any, source: int) -> Prepared:
        return Prepared(make_sample(id=row["id"], source=str(source)))

    def ids(num_workers: int, first_step: int) -> list[list[str]]:
        numbered = [{"id": f"n{i}"} for i in range(5)]
        stream = SampleStream(
            [StreamedRows(Tape(10), RowMaker()), numbered],  # type: ignore[list-item]
            prepare,
            weights=[1.0, 1.0],
            batch_size=6,
            seed=0,
            num_workers=num_workers,
        )
        try:
            return [[sample.id for sample in stream.batch(step)] for step in range(first_step, 8)]
        finally:
            stream.close()

    assert ids(1, 0)[3:] == ids(4, 3)
    assert {sample[0] for step in ids(2, 0) for sample in step} == {"n", "t"}


class Torn(Tape):
    """A tape with a row that is refused; with `breaks`, its reader fails there each time."""

    breaks = False

    def records(self, shuffle_seed: int | None, skip: int) -> Iterator[Record]:
        for record in super().records(shuffle_seed, skip):
            if record.place == "tape:5" and self.breaks:
                raise DataError("shard 1 is torn")
            yield Record({"answer": 5}, record.place, None) if record.place == "tape:5" else record


@pytest.mark.parametrize("num_records", [None, 10])
def test_a_refused_row_of_a_stream_is_one_error_and_the_rows_after_it_are_read(
    num_records: int | None,
) -> None:
    source, found, errors = sampler(Torn(10, num_records)), [], 0
    for position in range(30):
        try:
            found.append(source.row(position)["answer"])
        except DataError as error:
            assert "tape:5" in str(error)
            errors += 1
    assert errors == 3 and sorted(found) == sorted([n for n in range(10) if n != 5] * 3)


def test_a_stream_whose_reader_fails_fails_each_time_and_is_never_taken_for_a_shorter_one() -> None:
    tape = Torn(10)
    tape.breaks = True
    source = sampler(tape)
    for _ in range(3):
        with pytest.raises(DataError, match="shard 1 is torn"):
            for position in range(10):
                source.row(position)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DatasetConfig:
    """A set that datasets itself streams, four parquet shards, under a name such as the hub's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    for shard in range(4):
        rows = {"problem": [f"<image>{i}" for i in range(5)], "answer": [shard * 5 + i for i in range(5)]}
        image = {"bytes": b"encoded", "path": None}
        table = datasets.Dataset.from_dict({**rows, "image": [image] * 5}).cast_column(
            "image", datasets.Image()
        )
        table.to_parquet(tmp_path / "owner" / "name" / f"train-{shard:05d}-of-00004.parquet")
    options = {"path": "owner/name", "streaming": True, "shuffle_buffer": 6}
    return DatasetConfig(name="hub", options=options)


def test_hub_streams_resume_exactly_and_decode_nothing(hub: DatasetConfig) -> None:
    def drawn(start: int) -> list[int]:
        source = open_source(hub, "data.train")
        assert isinstance(source, StreamedRows)
        stream = StreamedSampler(source, seed=5)
        rows = [stream.row(position) for position in range(start, 45)]
        assert all(row["messages"][0]["content"][0]["image"]["bytes"] == b"encoded" for row in rows)
        return [row["answer"] for row in rows]

    expected = drawn(0)
    assert sorted(expected[:20]) == sorted(expected[20:40]) == list(range(20))
    assert expected[:20] != expected[20:40]
    assert drawn(13) == expected[13:]
    assert drawn(31) == expected[31:]


def test_what_needs_numbers_says_so(hub: DatasetConfig) -> None:
    with pytest.raises(ConfigError, match=r"data\.eval: .* is streamed, so its rows have no numbers"):
        open_dataset(hub, "data.eval")
    train = {"name": "digit_sum"}
    with pytest.raises(ConfigError, match=r"data\.eval: 'hub' is streamed; give it a limit"):
        Sources.open(make_config(data={"train": train, "eval": hub.model_dump()}))
    limited = Sources.open(make_config(data={"train": train, "eval": {**hub.model_dump(), "limit": 3}}))
    assert len(list(limited.heldout[0].rows)) == 3


def test_a_name_that_is_on_no_hub_is_told() -> None:
    with pytest.raises(DataError, match=r"'nobody/nothing' cannot be loaded.*check the name"):
        open_source(DatasetConfig(name="nobody/nothing"), "data.train")
