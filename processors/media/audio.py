"""Audio: which seconds of it are taken, and samples that are given as an array."""

from __future__ import annotations

import io
import math
import wave
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlrl.errors import DataError
from vlrl.types import ByteArray, IntArray, Media

MAX_RATE = 1_000_000
"""Samples per second that are believed."""
FORMATS = "wav, flac, ogg, opus, mp3, m4a, or the audio track of a video"


@dataclass(frozen=True, slots=True)
class Hearing:
    """What of audio a model takes.

    Attributes:
        rate: samples per second.
        least_s: shortest audio in seconds.
        most_s: longest; more would be cut off without a message.
    """

    rate: int
    least_s: float
    most_s: float

    def require(self, num_samples: int, where: str) -> None:
        """Raise DataError for an audio that is too short or too long."""
        if not self.least_s <= (lasts_s := num_samples / self.rate) <= self.most_s:
            raise DataError(
                f"{where}: an audio lasts {lasts_s:.2f} s, and the model takes {self.least_s:g} to "
                f"{self.most_s:g} s; cut it by start_s and end_s, or drop the row"
            )


def audio_places(media: Sequence[Media], num_tokens: Callable[[int], int]) -> dict[str, IntArray]:
    """Which of the media are audios, and their numbers of tokens, as `vlrl.model.omni.towers.AUDIO` says.

    Args:
        media: of a micro-batch.
        num_tokens: of an audio of so many samples.
    """
    heard = [(place, medium) for place, medium in enumerate(media) if medium.kind == "audio"]
    return {
        "audio_places": np.array([place if m.num_tokens else -1 for place, m in heard], np.int64),
        "audio_num_tokens": np.array([num_tokens(len(m.frames)) for _, m in heard], np.int64),
    }


@dataclass(frozen=True, slots=True)
class AudioRequest:
    """Which samples are wanted.

    Attributes:
        rate: samples per second that the model takes; others are resampled.
        start_s: seconds from the start of the audio to the first sample; None is its start.
        end_s: the same for the end; None is its end.
    """

    rate: int
    start_s: float | None = None
    end_s: float | None = None

    @classmethod
    def of(cls, rate: int, part: Mapping[str, Any], where: str) -> AudioRequest:
        """What a content part says, or qwen-omni-utils' names audio_start and audio_end.

        Raises:
            DataError: for seconds that are none, or an end that is not after the start.
        """
        start, end = (
            _seconds(key, part[key] if part.get(key) is not None else part.get(other), where)
            for key, other in (("start_s", "audio_start"), ("end_s", "audio_end"))
        )
        if end is not None and end <= (start or 0.0):
            raise DataError(f"{where}: an audio's end_s={end:g} is not after its start_s={start or 0:g}")
        return cls(rate, start, end)

    def cut(self, samples: ByteArray, name: str) -> ByteArray:
        """The samples [num_samples, 2] uint8 between start and end.

        Raises:
            DataError: if there are none.
        """
        start = round((self.start_s or 0.0) * self.rate)
        end = len(samples) if self.end_s is None else round(self.end_s * self.rate)
        if not len(taken := samples[start:end]):
            raise DataError(
                f"{name} has {len(samples) / self.rate:.2f} s of sound, and none from start_s="
                f"{self.start_s or 0:g} on; correct start_s, or drop the row"
            )
        return taken


def wave_file(source: Mapping[str, Any], where: str) -> bytes:
    """A WAV file of samples given as `{"array": …, "sampling_rate": …}`, as datasets decodes them.

    Args:
        source: array: [num_samples] or [num_channels, num_samples] floats between -1 and 1, or int16.
        where: the sample's id, for errors.

    Raises:
        DataError: for an array of another form, or a rate that is none.
    """
    try:
        array, rate = np.asarray(source["array"]), source.get("sampling_rate")
    except ValueError as error:
        raise DataError(f"{where}: an audio's array has channels of unlike lengths; drop it") from error
    is_float = array.dtype.kind == "f"
    if array.ndim == 2:
        array = array.mean(axis=0)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "fi":
        raise DataError(
            f"{where}: an audio's array of shape {array.shape} and dtype {array.dtype} is not [num_samples] "
            "or [num_channels, num_samples] of floats or int16"
        )
    if not isinstance(rate, int | float) or not 1 <= rate <= MAX_RATE:
        raise DataError(f"{where}: an audio's array needs its sampling_rate, 1 to {MAX_RATE:,}, not {rate!r}")
    if is_float:
        if not np.isfinite(array).all():
            raise DataError(f"{where}: an audio's array holds a sample that is not finite; drop the row")
        array = np.clip(np.round(array * 32768), -32768, 32767)
    elif np.abs(array).max() > 32768:
        raise DataError(f"{where}: an audio's array holds integers beyond 16 bits; give int16 or floats")
    data = io.BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(round(rate))
        file.writeframes(array.astype("<i2").tobytes())
    return data.getvalue()


def _seconds(key: str, value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise DataError(f"{where}: an audio's {key} is {value!r}; give seconds from its start")
    return float(value)
