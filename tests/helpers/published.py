"""Miniatures of published benchmarks: files in their authors' layout, opened and scored as a run does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from builders import make_config, make_sample
from PIL import Image

from vlrl.check.data.rewards import encode_bytes, said_trajectory
from vlrl.data.run_data import Sources
from vlrl.processors.messages import media_parts
from vlrl.scoring.compose import ComposedReward, Score
from vlrl.types import Media


@dataclass(frozen=True)
class Opened:
    """A benchmark as `data.eval` opens it."""

    rows: Sequence[Any]
    reward: ComposedReward
    source: str

    def score(self, number: int, completion: str, *media: Media) -> Score:
        """What the source's own scorer says of a completion of a row."""
        row = self.rows[number]
        sample = make_sample(
            id=row["id"], answer=row.get("answer"), metadata=row["metadata"], source=self.source, media=media
        )
        trajectory = said_trajectory(sample, completion, encode_bytes)
        return asyncio.run(self.reward.score(trajectory))

    def total(self, number: int, completion: str, *media: Media) -> float:
        """The score alone."""
        return self.score(number, completion, *media).total


def opened(name: str, folder: Path, limit: int | None = None, **options: Any) -> Opened:
    """Open a benchmark of a folder with the options of its source."""
    source = {"name": name, "options": {"path": str(folder), **options}, "limit": limit}
    config = make_config(data={"eval": source})
    sources = Sources.open(config)
    (heldout,) = sources.heldout
    reward = ComposedReward(config.rewards, sources.rewards, config.scoring, inline=True)
    return Opened(list(heldout.rows), reward, heldout.name)


def write_table(path: Path, *rows: dict[str, Any]) -> None:
    """A parquet file of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def write_json(path: Path, value: Any) -> None:
    """A JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def write_image(path: Path, size: tuple[int, int] = (8, 6)) -> Path:
    """An image file of (width, height)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "navy").save(path)
    return path


def medium(width: int, height: int) -> Media:
    """An image of a size, as rewards are given it."""
    frames = np.zeros((1, height, width, 3), np.uint8)
    return Media("image", "0" * 64, frames, (height, width), (1, 1, 1), 1, coordinate_frame="resized_pixels")


def text_of(row: Any) -> str:
    """The text of a row's last user turn."""
    parts = row["messages"][-1]["content"]
    return "".join(part["text"] for part in parts if part["type"] == "text")


def media_of(row: Any) -> list[Any]:
    """The sources of a row's media."""
    return [part[part["type"]] for message in row["messages"] for part in media_parts(message)]
