"""Rows without a model: media decoded at their own size, nothing tokenised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vlrl.config import Config
from vlrl.processors.media.audio import AudioRequest
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoRequest
from vlrl.processors.messages import media_parts, split_parts
from vlrl.types import Media, Prompt, Row, Sample

SAMPLE_RATE = 16_000
"""At which an audio is decoded where no model says."""


class PlainSamples:
    """A substitute for a processor where no model is given."""

    def __init__(self, config: Config) -> None:
        self._store = MediaStore(config.media)
        self._video = config.processor.video

    def sample(self, row: Row) -> Sample:
        """A row with its media, and a prompt of no tokens.

        Raises:
            DataError: for a medium that cannot be decoded.
        """
        where = f"sample {row['id']!r}"
        messages, _ = split_parts(row["messages"], where)
        nothing = np.zeros(0, np.int64)
        return Sample(
            id=str(row["id"]),
            messages=messages,
            media=tuple(self.decode(part, where) for part in row_media(row)),
            prompt=Prompt(nothing, nothing, np.zeros((3, 0), np.int64), 0),
            answer=row.get("answer"),
            target=row.get("target"),
            rejected=row.get("rejected"),
            label=row.get("label"),
            metadata=row.get("metadata", {}),
        )

    def decode(self, part: Mapping[str, Any], where: str) -> Media:
        """One medium at its own size; a video's frames are those that training would take.

        Raises:
            DataError: if it cannot be opened or decoded.
        """
        source = part[part["type"]]
        if part["type"] == "image":
            frames = self._store.image(source, self._store.image_size(source, where), where)
        elif part["type"] == "audio":
            frames = self._store.audio(source, AudioRequest.of(SAMPLE_RATE, part, where), where)
        else:
            request = VideoRequest.of(self._video, part, where)
            info = self._store.video_info(source, request, where)
            frames = self._store.video(source, request, info.size, where)
        return Media(
            kind=frames.kind,
            sha256=frames.sha256,
            frames=frames.pixels,
            original_size=frames.original_size,
            grid_thw=(1 if frames.kind == "audio" else len(frames.pixels), 1, 1),
            num_tokens=0,
            timestamps_s=frames.timestamps_s,
            fps=frames.fps,
            coordinate_frame="original_pixels",
        )


def row_media(row: Row) -> list[Mapping[str, Any]]:
    """The media parts of a row, in the order in which they stand."""
    return [part for message in row["messages"] for part in media_parts(message)]
