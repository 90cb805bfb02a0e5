"""RefCOCO's expressions and OVDEval's images as they are published."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from data_formats import png
from published import media_of, medium, opened, text_of, write_image, write_json, write_table

from vlrl.errors import DataError


@pytest.mark.parametrize("name", ["refcoco", "refcoco_plus", "refcocog"])
def test_every_expression_of_an_object_is_a_row(name: str, tmp_path: Path) -> None:
    row = {
        "question_id": "1",
        "image": {"bytes": png(0), "path": "COCO_train2014_000000581857_0.jpg"},
        "question": "Please carefully observe the area circled in the image.",
        "answer": ["navy blue shirt", "woman back in blue"],
        "segmentation": [1.0, 2.0],
        "bbox": [10.0, 20.0, 30.0, 40.0],
        "iscrowd": 0,
        "file_name": "COCO_train2014_000000581857_16.jpg",
    }
    write_table(tmp_path / "data" / "testA-00000-of-00001.parquet", row, {**row, "answer": ["left lady"]})
    write_table(tmp_path / "data" / "testB-00000-of-00001.parquet", row)
    found = opened(name, tmp_path, split="testA")
    expressions = ["navy blue shirt", "woman back in blue", "left lady"]
    assert [text_of(row).rpartition(": ")[2] for row in found.rows] == expressions
    assert [row["answer"] for row in found.rows] == [[10, 20, 40, 60]] * 3
    assert len({row["id"] for row in found.rows}) == 3
    image = medium(100, 100)
    assert found.total(0, "The region is [10, 20, 40, 60].", image) == 1
    assert found.total(0, '```json\n[{"bbox_2d": [10, 20, 40, 41], "label": "shirt"}]\n```', image) == 1
    assert found.total(0, "[10, 20, 40, 39]", image) == 0  # 570 of 1200 pixels
    assert found.total(0, "a shirt", image) == 0


def test_vlm_r1s_files_name_images_of_coco(tmp_path: Path) -> None:
    problem = "Please provide the bounding box coordinate of the region this sentence describes: lady."
    record = {"image": "train2014/1.jpg", "problem": problem, "solution": [1.5, 2, 30, 40]}
    write_json(tmp_path / "rec_jsons_processed" / "refcocop_val.json", [record])
    image = write_image(tmp_path / "coco" / "train2014" / "1.jpg")
    (row,) = opened("refcoco_plus", tmp_path / "rec_jsons_processed", images=str(tmp_path / "coco")).rows
    assert (text_of(row), row["answer"], media_of(row)) == (problem, [1.5, 2, 30, 40], [str(image)])


def test_ovdeval_asks_for_the_labels_of_the_image_and_pays_each_place_once(tmp_path: Path) -> None:
    data = {
        "images": [
            {"id": 3, "file_name": "a.jpg", "height": 100, "width": 100, "text": ["red cup", "blue cup"]},
            {"id": 4, "file_name": "b.jpg", "height": 100, "width": 100},
        ],
        "categories": [{"id": 1, "name": "red cup"}, {"id": 2, "name": "green cup"}],
        "annotations": [{"id": 1, "image_id": 3, "category_id": 1, "bbox": [10, 10, 40, 40]}],
    }
    write_json(tmp_path / "color.json", data)
    for name in ("a.jpg", "b.jpg"):
        write_image(tmp_path / "color" / name, (100, 100))
    found = opened("ovdeval", tmp_path)
    assert "['red cup', 'blue cup']" in text_of(found.rows[0])
    assert "['red cup', 'green cup']" in text_of(found.rows[1])
    assert media_of(found.rows[0]) == [str(tmp_path / "color" / "a.jpg")]
    image = medium(100, 100)

    def said(*labels: str) -> str:
        return json.dumps([{"bbox_2d": [10, 10, 50, 50], "label": label} for label in labels])

    assert found.total(0, said("red cup"), image) == pytest.approx(1)
    assert found.total(0, said("blue cup", "red cup"), image) == 0  # plain AP pays the second in full
    assert found.total(0, said("red cup", "blue cup"), image) == pytest.approx(1)
    assert found.total(1, "None", image) == 1
    write_json(tmp_path / "color.json", {"images": []})
    with pytest.raises(
        DataError, match=r"color\.json: not annotations in COCO's form \(KeyError: 'categories'"
    ):
        opened("ovdeval", tmp_path, split="color")
