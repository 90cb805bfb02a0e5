"""The light index of a step's rollouts: what the list shows, sorts and filters by, as columns of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

SNIPPET = 160
"""Characters of a text in the list."""
SEARCHED = 4000
"""Characters of a text that a search reads."""

PLAIN = (
    *("group", "group_index", "sample_id", "source", "agent", "refusal", "replayed", "outcome"),
    *("failure", "reward", "advantage", "num_turns", "num_generated_tokens", "weight_version", "duration_s"),
)
"""Columns given as they are; long texts are cut."""
NUMBERS = {"reward": 6, "advantage": 6, "duration_s": 3}
"""Decimals kept."""


def light_columns(file: Path, step: int) -> dict[str, Any]:
    """The index of a step, a list with an entry a rollout for each name.

    Args:
        file: RUN/rollouts/train/STEP.parquet.
        step: its number.

    Returns:
        step, rows and PLAIN; `question` and `text`, the beginning of what was asked and answered; `image`,
        the sha256 of the first medium or null; `parts`, {name: list} of the parts of the reward.
    """
    table = pq.read_table(file, columns=[*PLAIN, "completion", "messages", "media", "parts"])
    columns = {name: table.column(name).to_pylist() for name in PLAIN}
    for name in ("sample_id", "source", "agent", "failure", "refusal"):
        columns[name] = [_cut(value, SNIPPET) for value in columns[name]]
    for name, digits in NUMBERS.items():
        columns[name] = [None if value is None else round(value, digits) for value in columns[name]]
    count = len(table)
    return {
        "step": [step] * count,
        "row": list(range(count)),
        **columns,
        "question": [_cut(question_of(text), SNIPPET) for text in table.column("messages").to_pylist()],
        "text": [_cut(_last_words(text), SNIPPET) for text in table.column("completion").to_pylist()],
        "image": [media[0]["sha256"] if media else None for media in table.column("media").to_pylist()],
        "frames": [media[0]["num_frames"] if media else 0 for media in table.column("media").to_pylist()],
        "parts": _parts(table.column("parts").to_pylist()),
    }


def search_columns(file: Path) -> list[str]:
    """What a search of a step reads, a text a rollout: id, question, answer and all turns in lower case."""
    table = pq.read_table(file, columns=["sample_id", "messages", "answer", "turns", "completion"])
    texts = []
    for row in table.to_pylist():
        spoken = " ".join(turn["text"] or "" for turn in row["turns"]) or row["completion"] or ""
        parts = (row["sample_id"], question_of(row["messages"]), row["answer"], spoken)
        texts.append(" ".join(str(part or "")[:SEARCHED] for part in parts).lower())
    return texts


def joined(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The indexes of several steps as one."""
    names = dict.fromkeys(name for block in blocks for name in block["parts"])
    whole: dict[str, list[Any]] = {name: [] for name in (blocks[0] if blocks else {}) if name != "parts"}
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for block in blocks:
        for name, values in whole.items():
            values += block[name]
        for name, values in parts.items():
            values += block["parts"].get(name) or [None] * len(block["row"])
    return {**whole, "parts": parts}


def question_of(messages: str | None) -> str:
    """Text of the last user message of a row's messages, which are JSON."""
    try:
        found = json.loads(messages or "[]")
    except ValueError:
        return ""
    for message in reversed(found if isinstance(found, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            return text_of(message.get("content")).strip()
    return ""


def text_of(content: Any) -> str:
    """The texts of a message's content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return " ".join(str(part.get("text", "")) for part in parts if isinstance(part, dict) and "text" in part)


def _last_words(text: str | None) -> str:
    """The end of a text, where its answer stands."""
    text = (text or "").strip()
    return text if len(text) <= SNIPPET else "…" + text[1 - SNIPPET :]


def _cut(text: Any, limit: int) -> Any:
    return text if text is None or len(text) <= limit else text[: limit - 1] + "…"


def _parts(rows: Sequence[Sequence[Mapping[str, Any]]]) -> dict[str, list[float | None]]:
    """A list of (name, value) a rollout as a list of values for each name."""
    found: dict[str, list[float | None]] = {}
    for index, parts in enumerate(rows):
        for part in parts or ():
            value = part["value"]
            column = found.setdefault(part["name"], [None] * len(rows))
            column[index] = None if value is None else round(value, 6)
    return found
