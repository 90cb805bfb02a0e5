"""ChartQA, DocVQA, OCRBench: the published layouts of each give the same rows, scored by their own rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from data_formats import png
from published import media_of, opened, text_of, write_image, write_json, write_table

from vlrl.errors import DataError, DatasetMissing


def image(seed: int = 0) -> dict[str, object]:
    return {"bytes": png(seed), "path": "a.png"}


def test_chartqa_of_the_authors_and_of_either_hub(tmp_path: Path) -> None:
    authors, hub, other = tmp_path / "ChartQA Dataset", tmp_path / "hub", tmp_path / "other"
    for name in ("1.png", "2.png"):
        write_image(authors / "test" / "png" / name)
    human = {"imgname": "1.png", "query": "How high?", "label": "14"}
    augmented = {"imgname": "2.png", "query": "Which country?", "label": "Peru"}
    write_json(authors / "test" / "test_human.json", [human])
    write_json(authors / "test" / "test_augmented.json", [augmented])
    write_table(
        hub / "data" / "test-00000-of-00001.parquet",
        {"type": "augmented_test", "question": "Which country?", "answer": "Peru", "image": image()},
        {"type": "human_test", "question": "How high?", "answer": "14", "image": image()},
    )
    write_table(
        other / "data" / "test-00000-of-00001.parquet",
        {"image": image(), "query": "Which country?", "label": ["Peru"], "human_or_machine": 1},
        {"image": image(), "query": "How high?", "label": ["14"], "human_or_machine": 0},
    )
    for folder in (authors, hub, other):
        found = opened("chartqa", folder)
        assert [(text_of(row), row["answer"], row["metadata"]) for row in found.rows] == [
            ("Which country?\nAnswer the question with a single word.", "Peru", {"kind": "augmented"}),
            ("How high?\nAnswer the question with a single word.", "14", {"kind": "human"}),
        ]
        assert found.total(0, "peru") == found.total(1, "14.7") == found.total(1, "14.0") == 1
        assert found.total(0, "Chile") == found.total(1, "14.8") == found.total(1, "about 14") == 0
    assert media_of(opened("chartqa", authors).rows[1]) == [str(authors / "test" / "png" / "1.png")]


def test_a_model_that_thinks_is_read_in_its_answer_tag(tmp_path: Path) -> None:
    write_table(
        tmp_path / "test-00000.parquet",
        {"type": "human_test", "question": "How high?", "answer": "14", "image": image()},
    )
    said = "<think>13 or 14</think><answer>14</answer>"
    assert opened("chartqa", tmp_path).total(0, said) == 0
    assert opened("chartqa", tmp_path, part="answer").total(0, said) == 1


def test_docvqa_of_the_challenge_and_of_the_hub(tmp_path: Path) -> None:
    write_image(tmp_path / "rrc" / "documents" / "xnbl0037_1.png")
    record = {
        "questionId": 337,
        "question": "what is the date?",
        "question_types": ["handwritten"],
        "image": "documents/xnbl0037_1.png",
        "docId": 279,
        "answers": ["1/8/93", "January 8"],
        "data_split": "val",
    }
    table = {"dataset_name": "SP-DocVQA", "dataset_split": "val", "data": [record]}
    write_json(tmp_path / "rrc" / "val_v1.0_withQT.json", table)
    hub = {**record, "questionId": "337", "image": image()}
    write_table(tmp_path / "hub" / "DocVQA" / "validation-00000-of-00001.parquet", hub)
    write_table(
        tmp_path / "hub" / "DocVQA" / "test-00000-of-00001.parquet", {**hub, "answers": None, "question": "q"}
    )
    for folder in (tmp_path / "rrc", tmp_path / "hub"):
        found = opened("docvqa", folder)
        (row,) = found.rows
        assert text_of(row) == "what is the date?\nAnswer the question using a single word or phrase."
        assert row["answer"] == ["1/8/93", "January 8"]
        assert row["metadata"]["question_type"] == "handwritten"
        assert found.total(0, "1/8/93") == found.total(0, "january  8") == 1
        assert found.total(0, "1/8/95") == pytest.approx(1 - 1 / 6)  # one letter of six
        assert found.total(0, "1993") == 0  # 4 edits of 6
    assert "answer" not in opened("docvqa", tmp_path / "hub", split="test").rows[0]


def test_ocrbench_of_the_authors_and_of_the_hub(tmp_path: Path) -> None:
    records = [
        ("IIIT5K", "Regular Text Recognition", "what is written in the image?", ["CENTRE"]),
        (
            "HME100k",
            "Handwritten Mathematical Expression Recognition",
            "Write the formula.",
            ["x ^ { 2 } + Y"],
        ),
    ]
    authors = [
        {
            "dataset_name": name,
            "type": kind,
            "id": n,
            "image_path": f"{name}/{n}.jpg",
            "question": question,
            "answers": answers,
        }
        for n, (name, kind, question, answers) in enumerate(records)
    ]
    write_json(tmp_path / "authors" / "OCRBench" / "OCRBench.json", authors)
    for record in authors:
        write_image(tmp_path / "authors" / "data" / str(record["image_path"]))
    hub = [
        {"dataset": name, "question": question, "question_type": kind, "answer": answers, "image": image()}
        for name, kind, question, answers in records
    ]
    write_table(tmp_path / "hub" / "data" / "test-00000-of-00001.parquet", *hub)
    for folder in (tmp_path / "authors", tmp_path / "hub"):
        found = opened("ocrbench", folder)
        assert [text_of(row) for row in found.rows] == [question for _, _, question, _ in records]
        assert [row["metadata"]["question_type"] for row in found.rows] == [kind for _, kind, _, _ in records]
        assert found.total(0, "It says “centre”.") == 1
        assert found.total(0, "cent re") == 0
        assert found.total(1, "The formula is x^{2}\n+Y") == 1
        assert found.total(1, "x^{2}+y") == 0  # HME100k alone regards case


def test_what_is_missing_or_wrong_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetMissing, match=r"chartqa: .*gone does not exist; it would hold test-\*\.parquet"
    ):
        opened("chartqa", tmp_path / "gone")
    with pytest.raises(DatasetMissing, match=r"docvqa: .* holds none of .*val_v\*\.json"):
        opened("docvqa", tmp_path)
    write_table(tmp_path / "test-0.parquet", {"type": "human_test", "question": "q", "image": image()})
    with pytest.raises(DataError, match=r"test-0\.parquet:1: there is no 'label'; it has type, question"):
        opened("chartqa", tmp_path)
    write_table(
        tmp_path / "test-0.parquet",
        {"type": "human_test", "question": " ", "answer": "a", "image": image()},
    )
    with pytest.raises(DataError, match=r"test-0\.parquet:1: 'question' is ' '"):
        opened("chartqa", tmp_path)
