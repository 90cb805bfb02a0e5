"""A sound for people and other programs: as a WAV file, and as an image of its pitches over time."""

from __future__ import annotations

import io
import wave

import numpy as np

from vlrl.types import ByteArray, Media

HEIGHT, COLUMNS_PER_S, MAX_WIDTH = 64, 50, 1200
_FLOOR_DB = 80.0
"""What is this much weaker than the loudest pitch is black."""


def wav_of(audio: Media) -> bytes:
    """The samples that the model hears as a WAV file."""
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(round(audio.fps or 0))
        file.writeframes(np.ascontiguousarray(audio.frames).tobytes())
    return data.getvalue()


def samples_of(data: bytes) -> ByteArray:
    """`Media.frames` of what `wav_of` gave."""
    with wave.open(io.BytesIO(data)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), np.uint8).reshape(-1, 2)


def image_width(audio: Media) -> int:
    """Columns of its image, for which its samples need not be there."""
    seconds = len(audio.frames) / (audio.fps or 1.0)
    return int(np.clip(np.ceil(seconds * COLUMNS_PER_S), 1, MAX_WIDTH))


def sound_image(audio: Media) -> ByteArray:
    """A spectrogram [64, width, 3] uint8: low pitches at the bottom, 50 columns a second up to 1,200."""
    samples, width = audio.samples, image_width(audio)
    window = 2 * HEIGHT
    padded = np.pad(samples, (0, window))
    starts = np.linspace(0, max(0, len(samples) - 1), width).astype(np.int64)
    pieces = padded[starts[:, None] + np.arange(window)] * np.hanning(window)
    power = np.abs(np.fft.rfft(pieces, axis=1)[:, 1 : HEIGHT + 1]) ** 2
    decibels = 10 * np.log10(np.maximum(power / max(float(power.max()), 1e-12), 1e-12))
    grey = (255 * np.clip(1 + decibels / _FLOOR_DB, 0, 1)).astype(np.uint8)
    return np.repeat(grey.T[::-1, :, None], 3, axis=2)
