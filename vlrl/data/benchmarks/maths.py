"""Mathematics with diagrams: MathVista, MathVerse and Geometry3k.

MathVista: Lu et al. 2024, arXiv 2310.02255; lupantech/MathVista. MathVerse: Zhang et al. 2024, arXiv
2403.14624; ZrrSkywalker/MathVerse. Geometry3k: Lu et al. 2021, arXiv 2105.04165, in the form and with the
prompt of EasyR1 (hiyouga/geometry3k; hiyouga/EasyR1, examples/format_prompt/math.jinja).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from vlrl.data.benchmarks.files import open_published
from vlrl.data.benchmarks.rows import BenchmarkRows, asked, row, scorer, text_of, texts_of
from vlrl.data.readers.record import Record
from vlrl.parsing.extract import Part

GEOMETRY_PROMPT = (
    " You FIRST think about the reasoning process as an internal monologue and then provide the final answer."
    " The reasoning process MUST BE enclosed within <think> </think> tags. The final answer MUST BE put in "
    "\\boxed{}."
)


def mathvista(path: str, split: str = "testmini", part: Part = "whole") -> BenchmarkRows:
    """MathVista: the hub's parquet. The answers of the split "test" are not published."""
    reader = open_published("mathvista", path, (f"{split}-*.parquet",))
    return BenchmarkRows(reader, _mathvista, [scorer("mathvista", part=part)])


def _mathvista(record: Record) -> dict[str, Any]:
    fields = record.fields
    choices = texts_of(fields["choices"], "choices") if fields.get("choices") else None
    more = fields.get("metadata") or {}
    return row(
        asked(text_of(fields, "query"), images=[fields["decoded_image"]]),
        fields.get("answer") or None,
        answer_type=text_of(fields, "answer_type"),
        question_type=text_of(fields, "question_type"),
        choices=choices,
        precision=fields.get("precision"),
        **{key: more.get(key) for key in ("task", "category", "source")},
    )


def mathverse(
    path: str,
    split: str = "testmini",
    query: Literal["query_wo", "query_cot"] = "query_wo",
    part: Part = "whole",
) -> BenchmarkRows:
    """MathVerse: testmini.parquet, or testmini.json beside images/.

    Args:
        path: the folder.
        split: the beginning of the file's name.
        query: the published prompt without reasoning, or the one that asks for it.
        part: what the scorer reads.
    """
    images = Path(path) / "images"
    patterns = (f"{split}.parquet", f"{split}-*.parquet", f"{split}.json")
    reader = open_published("mathverse", path, patterns, image_root=images if images.is_dir() else None)

    def read(record: Record) -> dict[str, Any]:
        fields = record.fields
        image, more = fields.get("image"), fields.get("metadata") or {}
        return row(
            asked(text_of(fields, query), images=[image] if image else []),
            text_of(fields, "answer"),
            question_type=text_of(fields, "question_type"),
            problem_version=fields.get("problem_version"),
            **{key: more.get(key) for key in ("subject", "subfield")},
        )

    return BenchmarkRows(reader, read, [scorer("mathverse", part=part)])


def geometry3k(path: str, split: str = "test") -> BenchmarkRows:
    """Geometry3k as EasyR1 trains on it: the hub's parquet of images, problem and answer."""
    reader = open_published("geometry3k", path, (f"{split}-*.parquet",))
    return BenchmarkRows(reader, _geometry, [scorer("math", boxed="last", part="whole")])


def _geometry(record: Record) -> dict[str, Any]:
    problem = text_of(record.fields, "problem").removeprefix("<image>").strip()
    images = record.fields["images"]
    return row(asked(problem + GEOMETRY_PROMPT, images=images), text_of(record.fields, "answer"))
