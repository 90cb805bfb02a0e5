"""Which shape a record has, by its columns; for one that has none, the nearest and what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vlrl.data.shapes.fields import KEPT
from vlrl.errors import DataError

REQUIRED = {
    "preference": ("prompt", "chosen", "rejected"),
    "vlrl": ("messages",),
    "llava": ("conversations",),
    "verl": ("prompt", "reward_model"),
    "trl": ("prompt",),
    "vlm_r1": ("problem", "solution"),
    "easy_r1": ("problem", "answer"),
    "swift": ("query", "response"),
    "alpaca": ("instruction", "output"),
}
"""The columns that name a shape."""

ALSO = ("completion", "label", "history", "input", "rejected_response", "kto_tag", "system")
MEDIA = ("image", "images", "video", "videos", "audio", "audios")
COLUMNS = frozenset((*KEPT, *ALSO, *MEDIA, *(c for columns in REQUIRED.values() for c in columns)))
"""What the built-in shapes look for; the left side of a `columns` mapping."""

MEANT = {
    "problem": ("question", "query", "instruction", "text", "caption", "expression", "problem_text"),
    "answer": ("ground_truth", "label", "gt", "gt_answer", "answers", "target_text", "correct_answer"),
    "messages": ("message", "conversation", "dialog", "dialogue", "chat"),
    "chosen": ("preferred", "winner", "accepted", "positive"),
    "rejected": ("dispreferred", "loser", "negative"),
    "image": ("photo", "img", "image_path", "screenshot", "img_path", "image_file"),
}
"""Names that other tables have for a column; the first one of a record is proposed for it."""


def detect_shape(fields: Mapping[str, Any], place: str) -> str:
    """The name of the shape that a record's columns fit.

    Raises:
        DataError: naming the columns, the nearest shape and what it lacks, if they fit none.
    """
    names = fields.keys()
    # Beside a column of another layout an instruction is metadata.
    if not names & {"messages", "conversations", "prompt", "problem"} and (
        {"instruction", "output"} <= names or {"instruction", "chosen", "rejected"} <= names
    ):
        return "alpaca"
    if {"chosen", "rejected"} <= names or (
        {"prompt", "completion"} <= names and isinstance(fields.get("label"), bool)
    ):
        return "preference"
    if "messages" in names:
        return "vlrl"
    if "conversations" in names:
        return "llava"
    if "prompt" in names:
        return "verl" if "reward_model" in names else "trl"
    if "problem" in names:
        return "vlm_r1" if "solution" in names else "easy_r1"
    if "query" in names:
        return "swift"
    raise DataError(f"{place}: {_unknown(names)}")


def _unknown(names: Iterable[str]) -> str:
    """What is said of columns that fit no shape."""
    names = list(names)
    proposed = {
        column: found
        for column, others in MEANT.items()
        if column not in names and (found := next((n for n in names if n.lower() in others), None))
    }
    has = {*names, *proposed}

    def closeness(shape: str) -> tuple[float, int]:
        required = REQUIRED[shape]
        return sum(c in has for c in required) / len(required), -len(required)

    nearest = max(REQUIRED, key=closeness)
    lacks = [c for c in REQUIRED[nearest] if c not in names]
    mapping = {c: proposed[c] for c in (*lacks, "image") if c in proposed}
    seen = ", ".join(map(repr, names)) or "none"
    words = f"its columns ({seen}) fit no known shape; the nearest is {nearest}, which lacks "
    words += " and ".join(map(repr, lacks))
    if mapping:
        return f"{words}: say columns: {{{', '.join(f'{c}: {name}' for c, name in mapping.items())}}}"
    return (
        f"{words}; `columns` says which column is which, as in columns: {{problem: question, image: photo}}"
    )
