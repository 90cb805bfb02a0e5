"""Charts, documents and text in images: ChartQA, DocVQA and OCRBench.

ChartQA: Masry et al. 2022, arXiv 2203.10244; vis-nlp/ChartQA. DocVQA: Mathew et al. 2021, arXiv 2007.00398;
rrc.cvc.uab.es. OCRBench: Liu et al. 2023, arXiv 2305.07895; Yuliang-Liu/MultimodalOCR, example.py. None of
the three papers prescribes a prompt for a model that follows instructions: those of ChartQA and DocVQA are
the ones that lmms-eval appends, OCRBench's questions stand alone, as in its own script.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlrl.data.benchmarks.files import open_published
from vlrl.data.benchmarks.rows import BenchmarkRows, asked, row, scorer, text_of, texts_of
from vlrl.data.readers.record import Record
from vlrl.parsing.extract import Part

CHART_PROMPT = "\nAnswer the question with a single word."
DOCUMENT_PROMPT = "\nAnswer the question using a single word or phrase."
FORMULAS = "HME100k"
"""The set of OCRBench whose answers are formulas, in which white space and case are read otherwise."""


def chartqa(path: str, split: str = "test", part: Part = "whole") -> BenchmarkRows:
    """ChartQA: the authors' test_human.json and test_augmented.json beside png/, or either hub's parquet."""
    patterns = (f"{split}-*.parquet", f"{split}_*.json")
    charts = Path(path) / split / "png"
    reader = open_published("chartqa", path, patterns, image_root=charts if charts.is_dir() else None)
    return BenchmarkRows(reader, _chart, [scorer("relaxed_accuracy", part=part)])


def _chart(record: Record) -> dict[str, Any]:
    fields = record.fields
    question = text_of(fields, "question" if "question" in fields else "query")
    answers = texts_of(fields["answer"] if "answer" in fields else fields["label"], "label")
    image = fields["image"] if "image" in fields else text_of(fields, "imgname")
    if "type" in fields or "human_or_machine" in fields:
        is_human = (
            fields["human_or_machine"] == 0 if "human_or_machine" in fields else "human" in fields["type"]
        )
    else:  # in the authors' files the name says it
        is_human = "human" in record.place
    kind = "human" if is_human else "augmented"
    return row(asked(question + CHART_PROMPT, images=[image]), answers, kind=kind)


def docvqa(path: str, split: str = "validation", part: Part = "whole") -> BenchmarkRows:
    """DocVQA: the challenge's val_v1.0_withQT.json beside documents/, or the hub's parquet.

    The answers of the split "test" are not published; its rows have none.
    """
    short = "val" if split == "validation" else split
    patterns = (f"DocVQA/{split}-*.parquet", f"{split}-*.parquet", f"{short}_v*.json")
    reader = open_published("docvqa", path, patterns, key="data")
    return BenchmarkRows(reader, _document, [scorer("anls", part=part)])


def _document(record: Record) -> dict[str, Any]:
    fields = record.fields
    answers = texts_of(fields["answers"], "answers") if fields.get("answers") else None
    types = fields.get("question_types") or []
    return row(
        asked(text_of(fields, "question") + DOCUMENT_PROMPT, images=[fields["image"]]),
        answers,
        question_id=fields.get("questionId"),
        question_type=types[0] if types else None,
    )


def ocrbench(path: str, split: str = "test", part: Part = "whole") -> BenchmarkRows:
    """OCRBench: the authors' OCRBench.json beside its images, or the hub's parquet."""
    images = Path(path) / "data"
    patterns = (f"{split}-*.parquet", "OCRBench.json")
    reader = open_published("ocrbench", path, patterns, image_root=images if images.is_dir() else None)
    return BenchmarkRows(reader, _text_in_image, [scorer("answer_contained", part=part)])


def _text_in_image(record: Record) -> dict[str, Any]:
    fields = record.fields
    answers = texts_of(fields["answers"] if "answers" in fields else fields["answer"], "answers")
    name = text_of(fields, "dataset_name" if "dataset_name" in fields else "dataset")
    image = fields["image"] if "image" in fields else text_of(fields, "image_path")
    return row(
        asked(text_of(fields, "question"), images=[image]),
        answers,
        dataset=name,
        question_type=fields.get("type", fields.get("question_type")),
        is_formula=name == FORMULAS,
    )
