"""Tracking: the boxes of one or several objects over the frames of a video."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from vlrl.coordinates import Box
from vlrl.errors import ConfigError
from vlrl.parsing.frames import AnswerFrames, box_tuple
from vlrl.parsing.geometry import BoxTuple, iou
from vlrl.parsing.places import boxes_of
from vlrl.parsing.strict_json import Unreadable, strict_json, unfenced
from vlrl.rewards.visual.matching import hungarian_match
from vlrl.rewards.visual.placed import Placed, placed
from vlrl.scoring.author import prepared_by, reward

Track: TypeAlias = dict[float, Box]
"""Frame number or second → box; frames in which the object is not there are left out."""

MAX_TRACKS, MAX_BOXES = 64, 2000


@reward(range=(0.0, 1.0))
@prepared_by(placed)
def track_iou(pair: Placed, *, threshold: float | None = None) -> float:
    """Mean IoU over the frames in which a track is written or true; of several tracks, matched one to one.

    Σ over matched tracks and frames of IoU / (frames of matched pairs, written or true, and of all tracks
    left over). Range [0, 1]. Of one object it is the average overlap of GOT-10k (Huang et al. 2018, arXiv
    1810.11981, section 3.3) with absence counted; with a threshold IoUs become 0 or 1: its success rate.
    Tracks are matched so that the sum of IoU is greatest, whatever they are called, as IDF1 does (Ristani et
    al. 2016, arXiv 1609.01775): an identity that changes in mid-video costs what follows.

    A track is {"0": [x0, y0, x1, y1], "1": null, …}: a frame's number or second, and a box; or a list, frame
    by frame, of boxes and null. Several are {"name": track, …} or a list of {"track": …}. At most 64 tracks
    and 2000 boxes are read. A frame that the answer does not name costs as a wrong box.

    Args:
        pair: the tracks written and the true ones.
        threshold: an IoU counts 1 if it is at least this, else 0; None counts the IoU.

    Raises:
        ValueError: for a sample without a track, or with one off the video.
        ConfigError: unless 0 < threshold ≤ 1; for an unknown frame.
    """
    if threshold is not None and not 0 < threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie above 0 and not above 1")
    frames = pair.frames
    true_tracks = pair.true(read_tracks, tracks_of, "tracks")
    truth = [_placed(track, frames, true=True) for track in true_tracks]
    said = pair.written(read_tracks)
    if not said:
        return 0.0
    written = [_placed(track, frames, true=False) for track in said]
    overlap = np.asarray([[_shared(a, b, threshold) for b in truth] for a in written])
    most = max(1.0, float(overlap.max()))
    pairs = hungarian_match(overlap / most, 0.0)
    rows, columns = {row for row, _ in pairs}, {column for _, column in pairs}
    num_frames = sum(len(written[row].keys() | truth[column].keys()) for row, column in pairs)
    num_frames += sum(len(track) for row, track in enumerate(written) if row not in rows)
    num_frames += sum(len(track) for column, track in enumerate(truth) if column not in columns)
    return min(1.0, sum(float(overlap[pair]) for pair in pairs) / num_frames)


def read_tracks(text: str) -> list[Track]:
    """The tracks of a text that is nothing but them.

    Raises:
        Unreadable: if the text is anything else.
    """
    return tracks_of(strict_json(unfenced(text)))


def tracks_of(value: Any) -> list[Track]:
    """The tracks of a value; see `track_iou`.

    Raises:
        Unreadable: if it is anything else, or holds no box.
    """
    if isinstance(value, Mapping) and value and all(_is_track(each) for each in value.values()):
        found: Any = list(value.values())
    elif _is_list(value) and value and all(isinstance(each, Mapping) and "track" in each for each in value):
        found = [each["track"] for each in value]
    else:
        found = [value]
    if len(found) > MAX_TRACKS or sum(len(each) for each in found if _is_track(each)) > MAX_BOXES:
        raise Unreadable(f"more than {MAX_TRACKS} tracks or {MAX_BOXES} boxes")
    tracks = [_track(each) for each in found]
    if not all(tracks):
        raise Unreadable("a track without a box")
    return tracks


def _track(value: Any) -> Track:
    if isinstance(value, Mapping):
        times = [_time(key) for key in value]
        boxes = list(value.values())
    elif _is_list(value):
        times, boxes = [float(number) for number in range(len(value))], list(value)
    else:
        raise Unreadable("a track is a mapping of frames to boxes, or a list of boxes")
    if len(set(times)) < len(times):
        raise Unreadable("a frame occurs twice")
    track: Track = {}
    for time, box in zip(times, boxes, strict=True):
        if box is None:
            continue
        found = boxes_of(box)
        if len(found) != 1 or (_is_list(box) and len(box) != 4):
            raise Unreadable("a frame of a track holds one box, or null")
        track[time] = found[0].box
    return track


def _is_track(value: Any) -> bool:
    """True for what has boxes or null in it, frame by frame."""
    inner = value.values() if isinstance(value, Mapping) else value if _is_list(value) else ()
    return bool(inner) and all(each is None or _is_list(each) or isinstance(each, Mapping) for each in inner)


def _time(key: Any) -> float:
    try:
        time = float(str(key)) if len(str(key)) <= 20 else math.nan
    except ValueError:
        time = math.nan
    if not 0 <= time <= 1e7:
        raise Unreadable("a frame is a number from 0, or its second")
    return round(time, 3)


def _placed(track: Track, frames: AnswerFrames, *, true: bool) -> dict[float, BoxTuple]:
    place = frames.true if true else frames.said
    return {time: box_tuple(place(box)) for time, box in track.items()}


def _shared(a: Mapping[float, BoxTuple], b: Mapping[float, BoxTuple], threshold: float | None) -> float:
    """Sum of IoU over the frames that both have."""
    values = [iou(a[time], b[time]) for time in a.keys() & b.keys()]
    return math.fsum(values if threshold is None else [float(value >= threshold) for value in values])


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)
