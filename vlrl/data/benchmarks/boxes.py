"""Boxes: RefCOCO, RefCOCO+, RefCOCOg and OVDEval.

RefCOCO: Yu et al. 2016, arXiv 1608.00272; the hub's tables are lmms-lab's, the JSON files VLM-R1's
(om-ai-lab/VLM-R1, rec_jsons_processed). OVDEval: Yao et al. 2023, arXiv 2308.13177; om-ai-lab/OVDEval; the
prompt is VLM-R1's (arXiv 2504.07615) without its tags.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vlrl.data.benchmarks.files import open_published, published_files
from vlrl.data.benchmarks.rows import BenchmarkRows, asked, row, scorer, text_of, texts_of
from vlrl.data.readers.record import Reader, Record
from vlrl.errors import DataError
from vlrl.parsing.extract import Part

REFERRING_PROMPT = "Please provide the bounding box coordinate of the region this sentence describes: "
DETECTION_PROMPT = (
    "Please carefully check the image and detect the following objects: {labels}. Output the bbox "
    "coordinates of detected objects in JSON format. The bbox coordinate format should be: \n```json\n"
    '[{{"bbox_2d": [x1, y1, x2, y2], "label": "object name"}}]\n```\n. If no targets are detected in the '
    'image, simply respond with "None".'
)


def refcoco(path: str, split: str = "val", images: str | None = None, part: Part = "whole") -> BenchmarkRows:
    """RefCOCO: the hub's parquet, or VLM-R1's refcoco_SPLIT.json and a folder of COCO's images."""
    return _referring("refcoco", "refcoco", path, split, images, part)


def refcoco_plus(
    path: str, split: str = "val", images: str | None = None, part: Part = "whole"
) -> BenchmarkRows:
    """RefCOCO+: as RefCOCO; VLM-R1's file is refcocop_SPLIT.json."""
    return _referring("refcoco_plus", "refcocop", path, split, images, part)


def refcocog(path: str, split: str = "val", images: str | None = None, part: Part = "whole") -> BenchmarkRows:
    """RefCOCOg: as RefCOCO."""
    return _referring("refcocog", "refcocog", path, split, images, part)


def _referring(
    name: str, file_name: str, path: str, split: str, images: str | None, part: Part
) -> BenchmarkRows:
    patterns = (f"{split}-*.parquet", f"{file_name}_{split}.json")
    files = published_files(name, path, patterns)
    reader = open_published(name, path, patterns, image_root=Path(images) if images else None)
    if files[0].suffix == ".parquet":
        reader = EachExpression(reader, _num_expressions(files))
    return BenchmarkRows(reader, _region, [scorer("first_box_accuracy", part=part)])


def _num_expressions(files: Sequence[Path]) -> list[int]:
    """How many expressions each record of parquet files has; no image is read."""
    import pyarrow.parquet as pq

    tables = (pq.read_table(file, columns=["answer"]) for file in files)
    return [len(texts) for table in tables for texts in table["answer"].to_pylist()]


class EachExpression:
    """A record for each of the expressions that a record of an object has."""

    def __init__(self, reader: Reader, counts: Sequence[int]) -> None:
        self._reader = reader
        self._places = [(number, which) for number, count in enumerate(counts) for which in range(count)]

    def __len__(self) -> int:
        """Number of expressions."""
        return len(self._places)

    def __getitem__(self, index: int) -> Record:
        """Expression `index`."""
        number, which = self._places[index]
        record = self._reader[number]
        fields = {**record.fields, "answer": record.fields["answer"][which]}
        return Record(fields, f"{record.place}.{which + 1}", record.root)


def _region(record: Record) -> dict[str, Any]:
    fields = record.fields
    if "solution" in fields:  # VLM-R1's: corners, and the whole question
        return row(asked(text_of(fields, "problem"), images=[fields["image"]]), _numbers(fields["solution"]))
    x, y, width, height = _numbers(fields["bbox"])
    question = REFERRING_PROMPT + text_of(fields, "answer")
    return row(asked(question, images=[fields["image"]]), [x, y, x + width, y + height])


def ovdeval(path: str, split: str | None = None, part: Part = "whole") -> BenchmarkRows:
    """OVDEval: SUBSET.json in COCO's form beside the folder SUBSET of images; all, or the one `split`.

    An image is asked for the labels of its `text`, hard negatives among them, else for all categories.
    """
    files = published_files("ovdeval", path, (f"{split or '*'}.json",))
    records = [record for file in files for record in _images_of(file)]
    return BenchmarkRows(records, _detection, [scorer("nms_ap", part=part)])


def _images_of(file: Path) -> list[Record]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        names = {category["id"]: category["name"] for category in data["categories"]}
        boxes: dict[Any, list[dict[str, Any]]] = defaultdict(list)
        for found in data["annotations"]:
            x, y, width, height = _numbers(found["bbox"])
            box = {"bbox_2d": [x, y, x + width, y + height], "label": names[found["category_id"]]}
            boxes[found["image_id"]].append(box)
        images = data["images"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{file}: not annotations in COCO's form ({type(error).__name__}: {error})"
        ) from error
    return [
        Record(
            {
                "image": f"{file.stem}/{image['file_name']}",
                "labels": image.get("text") or list(names.values()),
                "boxes": boxes[image["id"]],
                "subset": file.stem,
            },
            f"{file.name}:{image['id']}",
            file.parent,
        )
        for image in images
    ]


def _detection(record: Record) -> dict[str, Any]:
    fields = record.fields
    labels = texts_of(fields["labels"], "text")
    question = DETECTION_PROMPT.format(labels=labels)
    return row(asked(question, images=[fields["image"]]), fields["boxes"], subset=fields["subset"])


def _numbers(value: Any) -> Sequence[float]:
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(n, int | float) for n in value):
        raise ValueError(f"a box is {value!r:.60}; it must be four numbers")
    return value
