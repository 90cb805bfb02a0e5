"""Which frames of a video are taken: evenly in time, with the counts and conventions of qwen-vl-utils.

Everything here is arithmetic on timestamps; `vlrl.processors.media.video_worker` reads them and decodes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.config.data import VideoConfig
from vlrl.errors import DataError

LIST_FPS = 2.0
"""Rate at which a list of frames is taken to be sampled, if nothing says it."""

_ALIASES = {"nframes": "num_frames", "video_start": "start_s", "video_end": "end_s"}
_NUMBERS = ("fps", "num_frames", "min_frames", "max_frames", "start_s", "end_s")


@dataclass(frozen=True, slots=True)
class VideoRequest:
    """Which frames are wanted.

    Attributes:
        fps: frames per second of video; None if num_frames is given. Of a list of frames: the rate at which
            they were taken.
        num_frames: exactly this many, rounded to the multiple; None if fps is given.
        min_frames: with fps, never fewer, where the video has them.
        max_frames: with fps, never more.
        start_s: seconds from the video's start to the first frame considered; None is its start.
        end_s: the same for the last; None is its end.
        frame_multiple: the number of frames is a multiple of it.
        timestamps_s: of a list of frames, seconds of each; None is at even steps of 1/fps.
    """

    fps: float | None
    num_frames: int | None
    min_frames: int
    max_frames: int
    start_s: float | None = None
    end_s: float | None = None
    frame_multiple: int = 2
    timestamps_s: tuple[float, ...] | None = None

    @classmethod
    def of(cls, config: VideoConfig, part: Mapping[str, Any], where: str) -> VideoRequest:
        """The config's choice, with what a content part says for itself put over it.

        Args:
            config: the run's.
            part: may hold fps, num_frames, min_frames, max_frames, start_s and end_s, or qwen-vl-utils' names
                nframes, video_start and video_end, and timestamps_s for a list of frames.
            where: the sample's id, for errors.

        Raises:
            DataError: for a value that is not a number or out of range, or both fps and num_frames.
        """
        own = {
            _ALIASES.get(key, key): _number(key, value, where)
            for key, value in part.items()
            if _ALIASES.get(key, key) in _NUMBERS and value is not None
        }
        if {"fps", "num_frames"} <= own.keys():
            raise DataError(f"{where}: a video part gives both fps and num_frames; give one")
        fps: float | None = config.fps
        num_frames: float | None = config.num_frames
        if "fps" in own or "num_frames" in own:
            fps, num_frames = own.get("fps"), own.get("num_frames")
        request = cls(
            fps=fps,
            num_frames=None if num_frames is None else int(num_frames),
            min_frames=int(own.get("min_frames", min(config.min_frames, own.get("max_frames", math.inf)))),
            max_frames=int(own.get("max_frames", max(config.max_frames, own.get("min_frames", 0)))),
            start_s=own.get("start_s"),
            end_s=own.get("end_s"),
            timestamps_s=_timestamps(part.get("timestamps_s"), where),
        )
        if request.min_frames > request.max_frames:
            raise DataError(
                f"{where}: min_frames={request.min_frames} is above max_frames={request.max_frames}"
            )
        return request


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What will be taken of a video, by its container.

    Attributes:
        size: (height, width) in pixels, upright, before resizing.
        num_frames: frames taken.
        timestamps_s: [num_frames] seconds from the video's start.
        fps: frames per second of the frames taken: their number over the time they stand for.
        indices: [num_frames] which of the video's frames they are.
    """

    size: tuple[int, int]
    num_frames: int
    timestamps_s: tuple[float, ...]
    fps: float
    indices: tuple[int, ...]


def choose_frames(
    timestamps_s: npt.ArrayLike, rate: float, size: tuple[int, int], request: VideoRequest, name: str
) -> VideoInfo:
    """Choose frames evenly in time.

    At a constant rate these are the frames that qwen-vl-utils takes: round(linspace(first, last, n)), and fps
    is what it calls sample_fps. At a variable rate, the n distinct frames nearest to n even points in time;
    fps is n over the duration, which is the same formula.

    Args:
        timestamps_s: [total] seconds of every frame, rising, the first 0.
        rate: frames per second of the whole video, on average.
        size: (height, width), passed on.
        request: what is wanted.
        name: the sample and the video, for errors.

    Raises:
        DataError: if there are fewer frames than wanted, or than the model needs.
    """
    times = np.asarray(timestamps_s, np.float64)
    start = -math.inf if request.start_s is None else request.start_s - 1e-6
    end = math.inf if request.end_s is None else request.end_s + 1e-6
    (within,) = np.nonzero((times >= start) & (times <= end))
    total = len(within)
    duration = total / rate
    count = _num_frames(total, duration, request, name, len(times), float(times[-1]) if len(times) else 0.0)
    even = np.linspace(within[0], within[-1], count)
    if _is_constant(times):
        indices = np.round(even).astype(np.int64)
    else:
        indices = within[0] + _nearest(times[within], count)
    return VideoInfo(
        size=size,
        num_frames=count,
        timestamps_s=tuple(round(float(times[i]), 6) for i in indices),
        fps=count / duration,
        indices=tuple(indices.tolist()),
    )


def choose_listed(num_listed: int, size: tuple[int, int], request: VideoRequest, name: str) -> VideoInfo:
    """Choose from a list of frames: all of them, or as many as the request allows, evenly.

    The last one is repeated until their number is a multiple of what the model needs, as qwen-vl-utils does.

    Raises:
        DataError: for an empty list, a wrong number of timestamps, or fewer frames than num_frames.
    """
    rate = request.fps or LIST_FPS
    times = np.arange(num_listed) / rate if request.timestamps_s is None else np.asarray(request.timestamps_s)
    if len(times) != num_listed:
        raise DataError(f"{name}: {num_listed} frames and {len(times)} timestamps_s; give one for each frame")
    if num_listed > 1:
        rate = (num_listed - 1) / float(times[-1] - times[0])
    start = -math.inf if request.start_s is None else request.start_s
    end = math.inf if request.end_s is None else request.end_s
    (within,) = np.nonzero((times >= start) & (times <= end))
    count = request.num_frames or min(len(within), request.max_frames)
    if not 0 < count <= len(within):
        raise DataError(f"{name}: {count or 1} frames are wanted of a list that has {len(within)}; give more")
    indices = within[np.round(np.linspace(0, len(within) - 1, count)).astype(np.int64)]
    fps = count / len(within) * rate
    chosen = [(int(i), round(float(times[i] - times[0]), 6)) for i in indices]
    while len(chosen) % request.frame_multiple:
        chosen.append((chosen[-1][0], round(chosen[-1][1] + 1 / fps, 6)))
    return VideoInfo(size, len(chosen), tuple(t for _, t in chosen), fps, tuple(i for i, _ in chosen))


def _num_frames(
    total: int, duration_s: float, request: VideoRequest, name: str, num_all: int, last_s: float
) -> int:
    """How many frames are taken of `total`: qwen_vl_utils.smart_nframes, for any multiple."""
    multiple = request.frame_multiple
    part = "" if total == num_all else f" between start_s={request.start_s} and end_s={request.end_s}"
    if request.num_frames is not None:
        count = round(request.num_frames / multiple) * multiple
        if count > total:
            raise DataError(
                f"{name}: {count} frames are wanted (num_frames={request.num_frames}) and the video has "
                f"{total}{part} (it has {num_all}, the last at {last_s:.2f} s); ask for fewer or drop the row"
            )
        count = max(count, multiple)
    else:
        least = math.ceil(request.min_frames / multiple) * multiple
        most = math.floor(request.max_frames / multiple) * multiple
        wanted = duration_s * (request.fps or 0.0)
        count = math.floor(min(max(wanted, least), most, total) / multiple) * multiple
    if not multiple <= count <= total:
        raise DataError(
            f"{name}: the video has {total} frames{part} (it has {num_all}, the last at {last_s:.2f} s) and "
            f"the model needs at least {multiple}; use an image instead, or drop the row"
        )
    return count


def _is_constant(times: np.ndarray) -> bool:
    """Whether every frame is within half a step of an even grid, so that even in index is even in time."""
    grid = np.linspace(times[0], times[-1], len(times))
    step = (times[-1] - times[0]) / max(len(times) - 1, 1)
    return bool(np.abs(times - grid).max() <= step / 2)


def _nearest(times: np.ndarray, count: int) -> np.ndarray:
    """[count] rising indices of the frames nearest to even points in time, each frame at most once."""
    points = np.linspace(times[0], times[-1], count)
    after = np.clip(np.searchsorted(times, points), 1, max(len(times) - 1, 1))
    before = after - 1
    last = len(times) - 1
    nearest = np.where(points - times[before] <= times[np.minimum(after, last)] - points, before, after)
    chosen = np.empty(count, np.int64)
    previous = -1
    for i, index in enumerate(nearest.tolist()):
        # Room is kept for the points that follow.
        previous = chosen[i] = min(max(index, previous + 1), len(times) - count + i)
    return chosen


def _number(key: str, value: Any, where: str) -> float:
    positive = _ALIASES.get(key, key) not in ("start_s", "end_s")
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or (positive and number == 0):
        least = "above 0" if positive else "of at least 0"
        raise DataError(f"{where}: {key}={value!r} of a video part must be a number {least}")
    return number


def _timestamps(values: Any, where: str) -> tuple[float, ...] | None:
    if values is None:
        return None
    try:
        times = tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: timestamps_s must be a list of seconds: {error}") from error
    if not all(map(math.isfinite, times)) or any(b <= a for a, b in pairwise(times)):
        raise DataError(f"{where}: timestamps_s must rise from frame to frame")
    return times
