"""MathVista, MathVerse and Geometry3k as they are published."""

from __future__ import annotations

from pathlib import Path

from data_formats import png
from published import media_of, opened, text_of, write_image, write_json, write_table


def test_mathvista_has_the_published_prompt_and_the_types_that_score_it(tmp_path: Path) -> None:
    shared = {"image": "images/1.jpg", "decoded_image": {"bytes": png(0), "path": "1.jpg"}, "unit": None}
    hint = "Hint: Please answer the question"
    rows = [
        {
            **shared,
            "pid": "1",
            "question": "Which city?",
            "query": f"{hint} and provide the correct option letter.\nQuestion: Which city?",
            "choices": ["osaka", "tokyo"],
            "answer": "tokyo",
            "question_type": "multi_choice",
            "answer_type": "text",
            "precision": None,
            "metadata": {"task": "textbook question answering", "category": "general-vqa", "source": "TQA"},
        },
        {
            **shared,
            "pid": "2",
            "question": "How long?",
            "query": f"{hint} requiring a floating-point number.\nQuestion: How long?",
            "choices": None,
            "answer": "1.2",
            "question_type": "free_form",
            "answer_type": "float",
            "precision": 1.0,
            "metadata": {
                "task": "geometry problem solving",
                "category": "math-targeted-vqa",
                "source": "UniGeo",
            },
        },
    ]
    write_table(tmp_path / "data" / "testmini-00000-of-00001-725687bf7a18d64b.parquet", *rows)
    found = opened("mathvista", tmp_path)
    assert [text_of(row) for row in found.rows] == [str(row["query"]) for row in rows]
    assert [row["metadata"]["category"] for row in found.rows] == ["general-vqa", "math-targeted-vqa"]
    assert found.total(0, "The answer is (B).") == 1
    assert found.total(0, "(A)") == 0
    assert found.total(1, "1.21 meters") == 1
    assert found.total(1, "1.26 meters") == 0


def test_mathverse_in_either_form_and_with_either_prompt(tmp_path: Path) -> None:
    record = {
        "sample_index": "1",
        "problem_index": "1",
        "problem_version": "Text Dominant",
        "question": "What is angle CED? ()\nChoices:\nA:40°\nB:120°",
        "answer": "B",
        "question_type": "multi-choice",
        "metadata": {"split": "testmini", "source": "geo", "subject": "Plane Geometry", "subfield": "Angle"},
        "query_wo": "Please directly answer the question.",
        "query_cot": "Please first conduct reasoning.",
        "question_for_eval": "What is angle CED?",
    }
    free = {**record, "question_type": "free-form", "answer": "7", "sample_index": "2"}
    write_table(
        tmp_path / "hub" / "testmini.parquet",
        *({**each, "image": {"bytes": png(0), "path": "1.png"}} for each in (record, free)),
    )
    write_json(
        tmp_path / "json" / "testmini.json",
        [{**each, "image": "images_version_1-4/image_1.png"} for each in (record, free)],
    )
    write_image(tmp_path / "json" / "images" / "images_version_1-4" / "image_1.png")
    for folder in (tmp_path / "hub", tmp_path / "json"):
        found = opened("mathverse", folder)
        assert text_of(found.rows[0]) == record["query_wo"]
        assert (
            found.rows[0]["metadata"].items()
            >= {"problem_version": "Text Dominant", "subfield": "Angle"}.items()
        )
        assert [found.total(0, "B:120°"), found.total(0, "A"), found.total(1, "7"), found.total(1, "8")] == [
            1,
            0,
            1,
            0,
        ]
        assert text_of(opened("mathverse", folder, query="query_cot").rows[0]) == record["query_cot"]


def test_geometry3k_is_easyr1s(tmp_path: Path) -> None:
    image = {"bytes": png(0), "path": None}
    write_table(
        tmp_path / "data" / "test-00000-of-00001.parquet",
        {"images": [image], "problem": "<image>Find x.", "answer": "3 \\sqrt { 2 }"},
    )
    write_table(
        tmp_path / "data" / "train-00000-of-00001.parquet", {"images": [image], "problem": "p", "answer": "1"}
    )
    found = opened("geometry3k", tmp_path)
    (row,) = found.rows
    assert text_of(row).startswith("Find x. You FIRST think")
    assert len(media_of(row)) == 1
    assert found.total(0, "<think>3 or 4</think> \\boxed{3\\sqrt{2}}") == 1
    assert found.total(0, "<think>3 or 4</think> \\boxed{3}") == 0
    assert found.total(0, "3\\sqrt{2}") == 0  # not in a box
