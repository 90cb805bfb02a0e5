"""Pixels stored apart from tokens, so that a process that packs tokens need not fetch images."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from typing import Any

from ray import cloudpickle

from vlrl.batch import Frames
from vlrl.types import ByteArray, Media


def separate(value: Any) -> tuple[bytes, dict[str, ByteArray]]:
    """A value pickled without the frames of the media in it, and these frames by sha256."""
    buffer = io.BytesIO()
    pickler = _WithoutFrames(buffer)
    pickler.dump(value)
    return buffer.getvalue(), pickler.frames


def rejoin(pickled: bytes, frames: Frames | None = None) -> Any:
    """The value again, with the frames if they are given."""
    return _Reader(io.BytesIO(pickled), frames).load()


class _WithoutFrames(cloudpickle.Pickler):  # type: ignore[misc]  # Ray has no types for it
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self.frames: dict[str, ByteArray] = {}
        self._light: dict[int, tuple[Media, Media]] = {}
        """By id: a medium, kept so that its id stays its own, and what is pickled of it."""

    def persistent_id(self, value: Any) -> Media | None:
        """What is pickled in place of a medium that has frames."""
        if type(value) is not Media or not value.has_frames:
            return None
        if id(value) not in self._light:
            self.frames[value.sha256] = value.frames
            self._light[id(value)] = (value, value.without_frames())
        return self._light[id(value)][1]


class _Reader(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, frames: Frames | None) -> None:
        super().__init__(file)
        self._frames = frames
        self._whole: dict[int, tuple[Media, Media]] = {}

    def persistent_load(self, light: Media) -> Media:
        """The medium in whose place `light` was pickled; itself if no frames are given."""
        if self._frames is None:
            return light
        if id(light) not in self._whole:
            self._whole[id(light)] = (light, replace(light, frames=self._frames[light.sha256]))
        return self._whole[id(light)][1]
