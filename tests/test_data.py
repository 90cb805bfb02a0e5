"""Datasets and the order of samples."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample

from vlrl.data import JsonlDataset, SampleStream, open_dataset
from vlrl.errors import ConfigError, DataError
from vlrl.data_options import DatasetConfig
from vlrl.types import Row, Sample

ROW: dict[str, Any] = {"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("".join((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines))
    return path


def source(path: Path, **fields: Any) -> DatasetConfig:
    return DatasetConfig(name=str(path), **fields)


def test_rows_have_ids_and_rooted_images(tmp_path: Path) -> None:
    part = {"type": "image", "image": "a/b.png"}
    with_image = {
        "id": "own",
        "messages": [{"role": "user", "content": [part, {"type": "text", "text": "?"}]}],
    }
    path = write(tmp_path / "rows.jsonl", ROW, "", with_image)
    rows = JsonlDataset(str(path))
    assert len(rows) == 2
    assert rows[0]["id"] == "rows.jsonl:1"
    assert rows[1]["id"] == "own"
    assert rows[1]["messages"][0]["content"][0]["image"] == str(tmp_path / "a/b.png")
    assert rows[1]["messages"][0]["content"][1] == {"type": "text", "text": "?"}
    elsewhere = JsonlDataset(str(path), image_root="/pictures")
    assert elsewhere[1]["messages"][0]["content"][0]["image"] == "/pictures/a/b.png"


def test_a_line_separator_inside_a_string_does_not_end_the_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(
        json.dumps({**ROW, "answer": "a\u2028b\x85c"}, ensure_ascii=False) + "\r\n", encoding="utf-8"
    )
    assert JsonlDataset(str(path))[0]["answer"] == "a\u2028b\x85c"


@pytest.mark.parametrize(
    "line",
    ['{"messages": [', "[]", '"text"', "{}", '{"messages": 3}', '{"messages": ["hi"]}',
     '{"messages": [{"role": "user"}]}', '{"messages": [{"role": "user", "content": [{"type": "image"}]}]}',
     '{"messages": [{"role": "user", "content": [{"type": "image", "image": 3}]}]}'],
)  # fmt: skip
def test_a_broken_row_names_its_line(tmp_path: Path, line: str) -> None:
    rows = JsonlDataset(str(write(tmp_path / "rows.jsonl", ROW, line)))
    assert rows[0]["answer"] == "4"
    with pytest.raises(DataError, match=r"rows\.jsonl:2: not a row .*a row is \{"):
        rows[1]


def test_a_source_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.jsonl does not exist \(looked in "):
        open_dataset(source(tmp_path / "gone.jsonl"), "data.train")
    with pytest.raises(DataError, match=r"data\.train: dataset '.*' is empty; training needs"):
        open_dataset(source(write(tmp_path / "empty.jsonl", "", "  ")), "data.train")
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes('{"answer": "é"}'.encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.jsonl is not UTF-8"):
        open_dataset(source(latin), "data.train")


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROW)
    with pytest.raises(ConfigError, match=r"data\.eval\.options does not fit .*image_rot"):
        open_dataset(source(path, options={"image_rot": "x"}), "data.eval")
    with pytest.raises(ConfigError, match="no dataset is named 'digit_sums'; did you mean 'digit_sum'"):
        open_dataset(DatasetConfig(name="digit_sums"), "data.train")


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


def prepare(row: Row) -> Sample:
    return make_sample(id=row["id"])


@pytest.fixture
def streams() -> Iterator[Any]:
    opened: list[SampleStream] = []

    def open_stream(
        size: int = 12, *, num_rows: int | None = None, batch: int = 4, seed: int = 0
    ) -> SampleStream:
        opened.append(SampleStream(Numbers(size), prepare, num_rows=num_rows, batch_size=batch, seed=seed))
        return opened[-1]

    yield open_stream
    for stream in opened:
        stream.close()


def ids(stream: SampleStream, step: int) -> list[str]:
    return [sample.id for sample in stream.batch(step)]


def test_an_epoch_has_every_row_once_in_a_new_order(streams: Any) -> None:
    stream = streams(10, batch=4)
    drawn = [i for step in range(5) for i in stream.indices(step)]
    first, second = drawn[:10], drawn[10:]
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    assert first != list(range(10))


def test_any_step_can_be_asked_for(streams: Any) -> None:
    """Law 8: a resumed run gets the rows it would have got."""
    walked, resumed = streams(), streams()
    expected = [ids(walked, step) for step in range(7)]
    assert ids(resumed, 5) == expected[5]
    assert ids(resumed, 6) == expected[6]
    assert ids(resumed, 2) == expected[2]


def test_the_order_follows_the_seed(streams: Any) -> None:
    assert streams(seed=0).indices(0) == streams(seed=0).indices(0)
    assert streams(seed=0).indices(0) != streams(seed=1).indices(0)


def test_a_limit_keeps_the_first_rows(streams: Any) -> None:
    assert Counter(streams(12, num_rows=3).indices(0) + streams(12, num_rows=3).indices(1)).keys() == {
        0,
        1,
        2,
    }
    assert len(set(streams(3, num_rows=9, batch=3).indices(0))) == 3


def test_a_broken_row_fails_the_step_that_needs_it(streams: Any) -> None:
    stream = streams(14, batch=1)
    bad = next(step for step in range(14) if stream.indices(step) == [13])
    for step in range(bad):
        ids(stream, step)
    with pytest.raises(DataError, match="row 13 is broken"):
        ids(stream, bad)
