"""One contract for all formats: the same rows come back, in any order; what is broken is named."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_formats import WRITERS, Logical, Written, logical_rows, png, write_tar

from vlrl.config.data import DatasetConfig
from vlrl.data import Rows, open_dataset
from vlrl.data.row_samplers import IndexedSampler
from vlrl.errors import ConfigError, DataError
from vlrl.types import Row

NUM_ROWS = 7
Write = Callable[..., Written]


@pytest.fixture(params=list(WRITERS))
def write(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def written(rows: list[Logical] | None = None) -> Written:
        return WRITERS[request.param](tmp_path, logical_rows(NUM_ROWS) if rows is None else rows)

    return written


def opened(written: Written, **fields: Any) -> Rows:
    return open_dataset(DatasetConfig(name=written.name, options=written.options, **fields), "data.train")


def meaning(row: Row) -> Logical:
    """A row back to what was written."""
    (message,) = row["messages"]
    text, images = "", []
    for part in message["content"]:
        text += part["text"] if part["type"] == "text" else "<image>"
        images += [part["image"]] if part["type"] == "image" else []
    (image,) = images
    data = Path(image).read_bytes() if isinstance(image, str) else image["bytes"]
    return Logical(text, row["answer"], data)


def test_every_format_gives_the_same_rows(write: Write) -> None:
    rows = opened(write())
    assert len(rows) == NUM_ROWS
    assert [meaning(row) for row in rows] == logical_rows(NUM_ROWS)


def test_rows_can_be_had_in_any_order(write: Write) -> None:
    rows, expected = opened(write()), logical_rows(NUM_ROWS)
    for index in (5, 0, 6, 3, 3, 1):
        assert meaning(rows[index]) == expected[index]
    for outside in (NUM_ROWS, -1):
        with pytest.raises(IndexError):
            rows[outside]


def test_an_epoch_shows_every_row_once(write: Write) -> None:
    """Rows come by windows of chunks where a reader reads in chunks."""
    sampler = IndexedSampler(opened(write()), seed=3)
    for epoch in range(3):
        ids = [sampler.row(epoch * NUM_ROWS + i)["answer"] for i in range(NUM_ROWS)]
        assert sorted(ids) == sorted(row.answer for row in logical_rows(NUM_ROWS))


def test_rows_survive_the_way_to_another_process(write: Write) -> None:
    rows = opened(write())
    rows[0]
    copy = pickle.loads(pickle.dumps(rows))
    assert [row["id"] for row in copy] == [row["id"] for row in rows]
    assert meaning(copy[4]) == logical_rows(NUM_ROWS)[4]


def test_ids_name_a_place_and_are_unique(write: Write) -> None:
    rows = list(opened(write()))
    assert len({row["id"] for row in rows}) == NUM_ROWS
    assert all(row["id"] == row["place"] and any(c in row["place"] for c in ":/[") for row in rows)


def test_a_limit_keeps_the_first_rows(write: Write) -> None:
    rows = opened(write(), limit=3)
    assert [row["answer"] for row in rows] == ["answer 0", "answer 1", "answer 2"]
    sampler = IndexedSampler(rows, seed=0)
    assert {sampler.row(i)["answer"] for i in range(9)} == {row["answer"] for row in rows}


def test_a_missing_source_is_named(write: Write, tmp_path: Path) -> None:
    written = write()
    for path in tmp_path.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises((DataError, ConfigError)) as caught:
        opened(written)
    name = written.options.get("path", Path(written.name).name.replace("{000..001}", "000"))
    assert name in str(caught.value)


def test_a_source_without_rows_is_named(write: Write, request: pytest.FixtureRequest) -> None:
    written = write([])
    with pytest.raises(
        DataError, match=r"is empty; training needs|not JSON|no list of rows|cannot be loaded|or is empty"
    ):
        opened(written)


def test_a_file_that_is_cut_off_is_named(write: Write) -> None:
    """Wherever the cut lies, it is told when the source is opened or the row is read, never passed over."""
    written = write()
    assert written.file is not None
    whole = written.file.read_bytes()
    for keep in (len(whole) * 2 // 3, len(whole) // 3, 5):
        written.file.write_bytes(whole[:keep])
        with pytest.raises(DataError) as caught:
            list(opened(written))
        names = (written.file.name, written.options.get("path", written.name))
        assert any(name in str(caught.value) for name in names)


@pytest.mark.parametrize("kind", ["jsonl", "json_list", "tar"])
def test_a_file_that_is_cut_off_while_it_is_open_is_named(kind: str, tmp_path: Path) -> None:
    """Whoever writes over the data of a run ends it with an error; a mapped file would by SIGBUS."""
    written = WRITERS[kind](tmp_path, logical_rows(NUM_ROWS))
    assert written.file is not None
    rows = opened(written)
    os.truncate(written.file, 5)
    with pytest.raises(DataError, match=f"{written.file.name} has become shorter"):
        list(rows)


def plain(**fields: Any) -> dict[str, Any]:
    return {"problem": "2+2?", "answer": "4", **fields}


def source(path: Path, **fields: Any) -> DatasetConfig:
    return DatasetConfig(name=str(path), **fields)


@pytest.mark.parametrize("line", ['{"problem": ', "[]", '"text"', "3", "{", '{"problem": "é"}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(f"{json.dumps(plain())}\n\n{line}\n".encode("latin-1"))
    rows = open_dataset(source(path), "data.train")
    assert rows[0]["answer"] == "4"
    with pytest.raises(DataError, match=r"rows\.jsonl:3: not"):
        rows[1]


def test_a_broken_json_file_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    for text, words in (
        ('[\n{"problem": "a"},\n{"problem" "b"}]', "line 3"),
        ('[\n{"problem": "a"}\n{"problem": "b"}]', "line 3"),
        ('{"a": 1}', "in it: none"),
        ('{"a": [{"problem": "a"}], "b": [{"problem": "b"}]}', "in it: 'a', 'b'.*options.key"),
        ('"text"', "no list of rows"),
        ("[1, 2]", "int where an object belongs"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=rf"(?s)rows\.json.*{words}"):
            open_dataset(source(path), "data.train")
    path.write_text('{"a": [{"problem": "a"}], "b": [{"problem": "b"}]}')
    assert open_dataset(source(path, options={"key": "b"}), "data.train")[0]["messages"][0]["content"] == "b"


def test_json_rows_are_named_by_line_where_each_has_its_own(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps([plain(), plain()], indent=1))
    assert [row["id"] for row in open_dataset(source(path), "s")] == ["rows.json:2", "rows.json:6"]
    path.write_text(json.dumps([plain(), plain()]))
    assert [row["id"] for row in open_dataset(source(path), "s")] == ["rows.json[0]", "rows.json[1]"]


def test_splits_are_not_mixed_by_accident(tmp_path: Path) -> None:
    written = WRITERS["parquet_folder"](tmp_path, logical_rows(4))
    for split, words in (
        (None, "several splits .test, train.*options.split"),
        ("dev", "no split 'dev'.*test"),
    ):
        options = {"split": split} if split else {}
        with pytest.raises(ConfigError, match=words):
            open_dataset(DatasetConfig(name=written.name, options=options), "data.train")
    saved = WRITERS["saved_with_splits"](tmp_path, logical_rows(4))
    with pytest.raises(ConfigError, match=r"options\.split=None is not one of train, test"):
        open_dataset(DatasetConfig(name=saved.name), "data.train")


def test_parquet_memory_is_bounded(tmp_path: Path) -> None:
    """However many rows are read, the cache holds no more row groups than fit; windows follow it."""
    written = WRITERS["parquet_paths"](tmp_path, logical_rows(40))
    wide = open_dataset(DatasetConfig(name=written.name), "s")
    narrow = open_dataset(DatasetConfig(name=written.name, options={"cache_mib": 0.0001}), "s")
    assert (wide.window_chunks >= 20, narrow.window_chunks) == (True, 1)
    assert [row["answer"] for row in narrow] == [row["answer"] for row in wide]
    sampler = IndexedSampler(narrow, seed=0)
    answers = [sampler.row(i)["answer"] for i in range(40)]
    pairs = {tuple(sorted(answers[i : i + 2])) for i in range(0, 40, 2)}
    assert pairs == {tuple(sorted((f"answer {i}", f"answer {i + 1}"))) for i in range(0, 40, 2)}
    assert answers != [row["answer"] for row in wide]


@pytest.mark.parametrize("name", ["x.pkl", "x.meta.pickle", "x.pyd", "x.npy"])
def test_pickles_in_an_archive_are_refused(tmp_path: Path, name: str) -> None:
    path = write_tar(tmp_path / "a.tar", [("x.json", json.dumps(plain()).encode()), (name, b"cos\nsystem\n")])
    with pytest.raises(DataError, match=rf"a\.tar/{name} is a pickled object"):
        open_dataset(source(path), "data.train")


def test_a_header_that_is_broken_in_mid_archive_is_told(tmp_path: Path) -> None:
    """tarfile takes it for the end, and the rest of the shard would be missing."""
    path = WRITERS["tar"](tmp_path, logical_rows(4)).file
    assert path is not None
    data = bytearray(path.read_bytes())
    data[data.index(b"a/0002.json") + 148] ^= 0xFF  # a byte of its checksum
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"shard\.tar is broken after byte \d+"):
        open_dataset(source(path), "data.train")


def test_a_compressed_or_unknown_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "rows.tar.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(DataError, match=r"rows\.tar\.gz ends in none of \.jsonl.*unpack it"):
        open_dataset(source(tmp_path / "rows.tar.gz"), "data.train")
    with pytest.raises(DataError, match="holds no known format"):
        open_dataset(source(tmp_path), "data.train")


def test_tar_members_become_columns(tmp_path: Path) -> None:
    members = [("7.txt", b"a question"), ("7.cls", b"3"), ("7.clip.mp4", b"video"), ("7.jpg", b"image")]
    path = write_tar(tmp_path / "a.tar", [("__meta__", b"x"), *members])
    columns = {"problem": "txt", "answer": "cls"}
    (row,) = open_dataset(source(path, columns=columns), "data.train")
    kinds = [part["type"] for part in row["messages"][0]["content"]]
    assert (kinds, row["answer"], row["id"]) == (["image", "video", "text"], 3, "a.tar/7")
    write_tar(path, [("7.txt", b"a question"), ("7.cls", b"three")])
    with pytest.raises(DataError, match=r"a\.tar/7\.cls: not cls"):
        open_dataset(source(path, columns=columns), "data.train")


def test_a_listing_takes_its_shares(tmp_path: Path) -> None:
    rows = "\n".join(json.dumps(plain(answer=i)) for i in range(20))
    (tmp_path / "a.jsonl").write_text(rows)

    def answers(strategy: str) -> list[int]:
        (tmp_path / "l.yaml").write_text(
            f"datasets: [{{json_path: a.jsonl, sampling_strategy: '{strategy}'}}]"
        )
        return [row["answer"] for row in open_dataset(source(tmp_path / "l.yaml"), "s")]

    assert answers("first:10%") == [0, 1]
    assert answers("end:3") == [17, 18, 19]
    assert answers("all") == list(range(20))
    drawn = answers("random:50%")
    assert (len(set(drawn)), drawn == answers("random:50%")) == (10, True)
    with pytest.raises(DataError, match=r"'some:3' of a\.jsonl is not one of all, first:N"):
        answers("some:3")


def test_a_wrong_option_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(plain()))
    with pytest.raises(ConfigError, match=r"data\.eval\.options does not fit .*image_rot"):
        open_dataset(source(path, options={"image_rot": "x"}), "data.eval")
    with pytest.raises(ConfigError, match="no dataset is named 'digit_sums'; did you mean 'digit_sum'"):
        open_dataset(DatasetConfig(name="digit_sums"), "data.train")


def test_paths_stay_under_the_root(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "secret.png").write_bytes(png(0))
    path = tmp_path / "data" / "rows.jsonl"
    for outside in (
        "../secret.png",
        "a:/../../secret.png",
        str(tmp_path / "secret.png"),
        "a/../../secret.png",
    ):
        path.write_text(json.dumps(plain(image=outside)))
        with pytest.raises(DataError, match=r"rows\.jsonl:1.*out of"):
            open_dataset(source(path), "data.train")
    path.write_text(json.dumps(plain(image=str(tmp_path / "secret.png"))))
    (row,) = open_dataset(source(path, options={"image_root": str(tmp_path)}), "data.train")
    assert row["messages"][0]["content"][0]["image"] == str(tmp_path / "secret.png")


def test_a_strangers_dataset_is_shaped_too(tmp_path: Path) -> None:
    """A plug-in's rows may be of any shape; their images are its own affair."""
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, size): self.size = size\n"
        "    def __len__(self): return self.size\n"
        "    def __getitem__(self, i): return {'problem': f'{i} <image>?', 'image': '/any/where.png'}\n"
    )
    name = f"{tmp_path / 'mine.py'}:Mine"
    rows = open_dataset(DatasetConfig(name=name, options={"size": 3}), "data.train")
    assert [row["id"] for row in rows] == ["mine.py:Mine:0", "mine.py:Mine:1", "mine.py:Mine:2"]
    assert rows[2]["messages"][0]["content"][1] == {"type": "image", "image": "/any/where.png"}


def test_a_strangers_dataset_that_is_none_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class Lazy:\n    def __iter__(self): return iter(())\n"
        "class Texts:\n    def __len__(self): return 1\n    def __getitem__(self, i): return 'text'\n"
    )
    with pytest.raises(ConfigError, match=r"data\.train: dataset '.*:Lazy' needs __len__ and __getitem__"):
        open_dataset(DatasetConfig(name=f"{tmp_path / 'mine.py'}:Lazy"), "data.train")
    with pytest.raises(DataError, match="Texts:0: a row must be a mapping, not str"):
        open_dataset(DatasetConfig(name=f"{tmp_path / 'mine.py'}:Texts"), "data.train")


def test_what_is_no_path_is_left_alone(tmp_path: Path) -> None:
    """URLs and encoded media go to the processor as they are, which believes none of them."""
    encoded = base64.b64encode(png(0)).decode()
    sources = [
        encoded,
        f"data:image/png;base64,{encoded}",
        "https://host/a.png",
        "file:///etc/passwd",
        "FTP://x",
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(plain(images=sources, videos=[["0.png", encoded]])))
    (row,) = open_dataset(source(path), "s")
    parts = row["messages"][0]["content"]
    assert [part["image"] for part in parts if part["type"] == "image"] == sources
    (frames,) = [part["video"] for part in parts if part["type"] == "video"]
    assert frames == [str(tmp_path / "0.png"), encoded]


def test_messages_of_parts_survive_a_table(tmp_path: Path) -> None:
    """Tables give every part every key, null where it has none; some hold conversations as JSON text."""
    part = {"type": "image", "image": "0.png", "text": None}
    question = {"type": "text", "text": "?", "image": None}
    messages = [{"role": "user", "content": [part, question]}]
    table = pa.Table.from_pylist([{"messages": messages, "answer": "4"}])
    pq.write_table(table, tmp_path / "a.parquet")
    as_text = pa.Table.from_pylist([{"messages": json.dumps(messages), "answer": "4"}])
    pq.write_table(as_text, tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet"):
        (row,) = open_dataset(source(tmp_path / name), "s")
        image = {"type": "image", "image": str(tmp_path / "0.png")}
        assert row["messages"][0]["content"] == [image, {"type": "text", "text": "?"}]
