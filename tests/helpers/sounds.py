"""Sounds made on the spot: tones, as arrays and as files of every kind that is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av
import numpy as np

CODECS = {
    ".wav": "pcm_s16le",
    ".flac": "flac",
    ".ogg": "libopus",
    ".mp3": "libmp3lame",
    ".m4a": "aac",
    ".webm": "libopus",
}


def tone(seconds: float, hertz: float = 440.0, *, rate: int = 16_000) -> np.ndarray[Any, Any]:
    """[num_samples] float32 of a tone at half of full scale."""
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def noise(seconds: float, seed: int, *, loud: float = 0.3) -> np.ndarray[Any, Any]:
    """[num_samples] float32 of white noise at 16,000 samples a second."""
    samples = np.random.default_rng(seed).standard_normal(round(16_000 * seconds)) * loud
    return np.clip(samples, -1, 1).astype(np.float32)


def audio_part(samples: np.ndarray[Any, Any], rate: int = 16_000, **options: Any) -> dict[str, Any]:
    """A message's part with this sound."""
    return {"type": "audio", "audio": {"array": samples, "sampling_rate": rate}, **options}


def write_sound(path: Path, samples: np.ndarray[Any, Any], *, rate: int = 16_000, channels: int = 1) -> Path:
    """A file by its suffix; every channel has the same samples."""
    layout = {1: "mono", 2: "stereo"}[channels]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(CODECS[path.suffix], rate=rate, layout=layout)
        planes = np.repeat(samples[None].astype(np.float32), channels, axis=0)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(planes), format="fltp", layout=layout)
        frame.sample_rate = rate
        resampler = av.AudioResampler(
            format=stream.codec_context.format, layout=layout, rate=rate, frame_size=stream.frame_size or 1024
        )
        for piece in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(piece))
        container.mux(stream.encode(None))
    return path
