"""One logical data set, written in every format that a reader knows."""

from __future__ import annotations

import csv
import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image


@dataclass(frozen=True)
class Logical:
    """What a row means, whatever its format."""

    problem: str
    answer: str
    image: bytes


def png(seed: int) -> bytes:
    """A small random image."""
    pixels = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def logical_rows(count: int) -> list[Logical]:
    return [Logical(f"What is <image> in “row {i}”\u2028?", f"answer {i}", png(i)) for i in range(count)]


@dataclass(frozen=True)
class Written:
    """What a config needs to read it back, and a file to break."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    file: Path | None = None


Writer = Callable[[Path, list[Logical]], Written]


def _images(folder: Path, rows: list[Logical]) -> list[str]:
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for index, row in enumerate(rows):
        (folder / "images" / f"{index}.png").write_bytes(row.image)
    return [f"images/{index}.png" for index in range(len(rows))]


def _plain(rows: list[Logical], images: list[Any], column: str = "image") -> list[dict[str, Any]]:
    return [
        {"problem": row.problem, "answer": row.answer, column: image}
        for row, image in zip(rows, images, strict=True)
    ]


def _dumps(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **options)


def jsonl(folder: Path, rows: list[Logical]) -> Written:
    file = folder / "rows.jsonl"
    lines = [_dumps(row) for row in _plain(rows, _images(folder, rows))]
    file.write_text("".join(line + "\n\n" for line in lines), encoding="utf-8")
    return Written(str(file), file=file)


def json_list(folder: Path, rows: list[Logical]) -> Written:
    file = folder / "rows.json"
    file.write_text(_dumps(_plain(rows, _images(folder, rows)), indent=2), encoding="utf-8")
    return Written(str(file), file=file)


def json_under_a_key(folder: Path, rows: list[Logical]) -> Written:
    tree = {"info": {"n": [1, 2], "é": "“"}, "none": [], "data": _plain(rows, _images(folder, rows))}
    file = folder / "rows.json"
    file.write_text(_dumps(tree), encoding="utf-8-sig")
    return Written(str(file), file=file)


def json_with_lines(folder: Path, rows: list[Logical]) -> Written:
    lines = jsonl(folder, rows)
    file = folder / "lines.json"
    file.write_text(Path(lines.name).read_text(encoding="utf-8").replace("\n\n", "\n"), encoding="utf-8")
    return Written(str(file), file=file)


def several_jsonl(folder: Path, rows: list[Logical]) -> Written:
    plain = _plain(rows, _images(folder, rows))
    for number, part in enumerate((plain[:2], plain[2:])):
        (folder / f"part-{number}.jsonl").write_text("\n".join(map(_dumps, part)), encoding="utf-8")
    return Written(str(folder / "part-*.jsonl"), file=folder / "part-1.jsonl")


def llava(folder: Path, rows: list[Logical]) -> Written:
    file = folder / "rows.json"
    tree = [
        {
            "image": image,
            "conversations": [{"from": "human", "value": row.problem}, {"from": "gpt", "value": row.answer}],
        }
        for row, image in zip(rows, _images(folder, rows), strict=True)
    ]
    file.write_text(_dumps(tree, indent=1), encoding="utf-8")
    return Written(str(file), file=file)


def csv_table(folder: Path, rows: list[Logical]) -> Written:
    file = folder / "rows.csv"
    _write_csv(file, _plain(rows, _images(folder, rows)), ["problem", "answer", "image"])
    return Written(str(file), file=file)


def _write_csv(file: Path, rows: list[dict[str, Any]], columns: list[str]) -> None:
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, columns)
        writer.writeheader()
        writer.writerows(rows)


def parquet_paths(folder: Path, rows: list[Logical]) -> Written:
    file = folder / "rows.parquet"
    table = pa.Table.from_pylist(_plain(rows, _images(folder, rows)))
    pq.write_table(table, file, row_group_size=2)
    return Written(str(file), file=file)


def parquet_folder(folder: Path, rows: list[Logical]) -> Written:
    """Write a set as EasyR1's are: `images`, a list of {bytes, path}; a test split lies beside it."""
    plain = _plain(rows, [[{"bytes": row.image, "path": None}] for row in rows], "images")
    data = folder / "set" / "data"
    data.mkdir(parents=True)
    for name, part in (("train-0", plain[:3]), ("train-1", plain[3:]), ("test-0", plain[:1])):
        images = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        schema = pa.schema([("problem", pa.string()), ("answer", pa.string()), ("images", images)])
        pq.write_table(pa.Table.from_pylist(part, schema), data / f"{name}.parquet", row_group_size=2)
    return Written(str(folder / "set"), {"split": "train"}, data / "train-1.parquet")


def _arrow(rows: list[Logical]) -> datasets.Dataset:
    plain = _plain(rows, [[{"bytes": row.image, "path": None}] for row in rows], "images")
    features = {"problem": datasets.Value("string"), "answer": datasets.Value("string")}
    images = datasets.List(datasets.Image())
    columns = {name: [row[name] for row in plain] for name in ("problem", "answer", "images")}
    return datasets.Dataset.from_dict(columns, features=datasets.Features({**features, "images": images}))


def saved(folder: Path, rows: list[Logical]) -> Written:
    _arrow(rows).save_to_disk(folder / "saved")
    return Written(str(folder / "saved"), file=folder / "saved" / "data-00000-of-00001.arrow")


def saved_with_splits(folder: Path, rows: list[Logical]) -> Written:
    splits = {"train": _arrow(rows), "test": _arrow(rows[:1])}
    datasets.DatasetDict(splits).save_to_disk(folder / "saved")
    return Written(str(folder / "saved"), {"split": "train"}, folder / "saved" / "train" / "state.json")


def hub(folder: Path, rows: list[Logical]) -> Written:
    """datasets takes OWNER/NAME for a folder where there is one, and loads it as it would from the hub."""
    (folder / "owner" / "name" / "data").mkdir(parents=True)
    file = folder / "owner" / "name" / "data" / "train-00000-of-00001.parquet"
    _arrow(rows).to_parquet(file)
    return Written("hub", {"path": "owner/name"}, file)


def media_folder(folder: Path, rows: list[Logical]) -> Written:
    lines = map(_dumps, _plain(rows, _images(folder, rows), "file_name"))
    (folder / "metadata.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return Written(str(folder), file=folder / "metadata.jsonl")


def media_folder_csv(folder: Path, rows: list[Logical]) -> Written:
    plain = _plain(rows, _images(folder, rows), "file_name")
    _write_csv(folder / "metadata.csv", plain, ["file_name", "problem", "answer"])
    return Written(str(folder), file=folder / "metadata.csv")


def listing(folder: Path, rows: list[Logical]) -> Written:
    json_list(folder, rows)
    plain = _plain(rows, _images(folder, rows))
    (folder / "b.jsonl").write_text("\n".join(map(_dumps, plain)), encoding="utf-8")
    entries = [
        {"json_path": "rows.json", "sampling_strategy": "first:3"},
        {"json_path": "b.jsonl", "sampling_strategy": f"end:{max(0, len(rows) - 3)}"},
    ]
    (folder / "data.yaml").write_text(yaml.safe_dump({"datasets": entries}))
    return Written(str(folder / "data.yaml"), file=folder / "b.jsonl")


def write_tar(file: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(file, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file


def tar(folder: Path, rows: list[Logical]) -> Written:
    members = []
    for index, row in enumerate(rows):
        record = {"problem": row.problem, "answer": row.answer}
        members += [(f"a/{index:04d}.json", _dumps(record).encode()), (f"a/{index:04d}.png", row.image)]
    file = write_tar(folder / "shard.tar", members)
    return Written(str(file), file=file)


def tar_shards(folder: Path, rows: list[Logical]) -> Written:
    """Members with names too long for a plain header; the record names its image."""
    for shard, part in enumerate((rows[:3], rows[3:])):
        members = []
        for index, row in enumerate(part):
            name = f"./{'long' * 40}/{index}"
            image = f"{index}.first.png"
            record = {"problem": row.problem, "answer": row.answer, "images": [image]}
            members += [(f"{name}.first.png", row.image), (f"{name}.second.png", png(99))]
            members += [(f"{name}.json", _dumps(record).encode())]
        write_tar(folder / f"shard-{shard:03d}.tar", members)
    return Written(str(folder / "shard-{000..001}.tar"), file=folder / "shard-001.tar")


WRITERS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        *(jsonl, json_list, json_under_a_key, json_with_lines, several_jsonl, llava, csv_table),
        *(parquet_paths, parquet_folder, saved, saved_with_splits, hub),
        *(media_folder, media_folder_csv, listing, tar, tar_shards),
    )
}
