"""A video in transformers' words, the same for the trainer's processor and the engine's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vlrl.types import IntArray, Media, MediaShape

TICKS_PER_S = 1000
"""Frames are numbered by the millisecond, so that unevenly spaced ones keep their times."""


def video_metadata(shape: MediaShape) -> dict[str, Any]:
    """The fields of transformers' VideoMetadata for frames that were already chosen.

    Its `timestamps` are then the frames' own times, and its `sampled_fps` is shape.fps.
    """
    fps = shape.fps or 1.0
    return {
        "fps": float(TICKS_PER_S),
        "frames_indices": [round(t * TICKS_PER_S) for t in shape.timestamps_s],
        "total_num_frames": shape.num_frames * TICKS_PER_S / fps,
        "duration": shape.num_frames / fps,
    }


def metadata_of(shape: MediaShape) -> Any:
    """The same as transformers' object."""
    from transformers.video_utils import VideoMetadata

    return VideoMetadata(**video_metadata(shape))


def frame_counts(media: Sequence[Media]) -> dict[str, IntArray]:
    """Frames of each medium, 0 for an image, as "num_frames" [num_media]; nothing where there is no video."""
    counts = [len(medium.frames) if medium.kind == "video" else 0 for medium in media]
    return {"num_frames": np.array(counts, np.int64)} if any(counts) else {}


def video_arrays(video_processor: Any, video: Media) -> Any:
    """What transformers' video processor makes of frames that were already chosen and resized."""
    return video_processor(
        videos=[np.array(video.frames)],  # torch wants writable memory
        video_metadata=[video_metadata(video.shape)],
        do_resize=False,
        do_sample_frames=False,
        return_tensors="pt",
        input_data_format="channels_last",
    )
