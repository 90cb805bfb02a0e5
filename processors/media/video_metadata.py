"""A video's timing in transformers' words, the same for the trainer's processor and the engine's."""

from __future__ import annotations

from typing import Any

from vlrl.types import MediaShape

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
