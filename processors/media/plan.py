"""How large each medium of a sample will be, decided from headers, before anything is decoded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor
from typing import Any

from vlrl.config.data import ProcessorConfig
from vlrl.errors import DataError
from vlrl.processors.media.audio import AudioRequest, Hearing
from vlrl.processors.media.store import MediaStore
from vlrl.processors.media.video import VideoRequest
from vlrl.types import Media, MediaShape

Fit = Callable[[int, int, int, int], tuple[int, int]]
"""(height, width, min_pixels, max_pixels) → (height, width); see `FamilyProcessor.fit`."""


@dataclass(frozen=True, slots=True)
class MediaPlan:
    """A medium and the shape it will have.

    Attributes:
        source: where its bytes come from; see `vlrl.processors.media.sources`.
        original_size: (height, width) in pixels.
        shape: of what the model will see.
        request: which frames or samples are taken; None for an image.
    """

    source: Any
    original_size: tuple[int, int]
    shape: MediaShape
    request: VideoRequest | AudioRequest | None = None


def plan_media(
    parts: Sequence[Mapping[str, Any]],
    store: MediaStore,
    config: ProcessorConfig,
    fit: Fit,
    fit_video: Fit,
    frame_multiple: int,
    hears: Hearing | None,
    where: str,
) -> list[MediaPlan]:
    """Plan the media of one sample; images are shrunk together if they exceed max_sample_pixels.

    `fit` is of images, `fit_video` of a video's frames.

    Raises:
        DataError: for a medium that cannot be opened or has no fitting size.
    """

    def plan(part: Mapping[str, Any]) -> MediaPlan:
        if part["type"] == "image":
            return _plan_image(part["image"], store, config, fit, where)
        if part["type"] == "audio":
            assert hears is not None, "the family has refused it"
            return _plan_audio(part, store, hears, where)
        return _plan_video(part, store, config, fit_video, frame_multiple, where)

    plans = [plan(part) for part in parts]
    images = [one for one in plans if one.request is None]
    total = sum(_num_pixels(one.shape.size) for one in images)
    if config.max_sample_pixels is None or total <= config.max_sample_pixels:
        return plans
    share = config.max_sample_pixels / total
    return [one if one.request is not None else _shrunk(one, share, config, fit, where) for one in plans]


def resolve_media(
    plan: MediaPlan,
    store: MediaStore,
    grid_thw: tuple[int, int, int],
    num_tokens: int,
    frame: str,
    where: str,
) -> Media:
    """Decode what was planned; `frame` is the family's, see Media.coordinate_frame.

    Raises:
        DataError: for a broken file.
    """
    if plan.request is None:
        frames = store.image(plan.source, plan.shape.size, where)
    elif isinstance(plan.request, AudioRequest):
        frames = store.audio(plan.source, plan.request, where)
    else:
        frames = store.video(plan.source, plan.request, plan.shape.size, where)
    return Media(
        kind=plan.shape.kind,
        sha256=frames.sha256,
        frames=frames.pixels,
        original_size=frames.original_size,
        grid_thw=grid_thw,
        num_tokens=num_tokens,
        timestamps_s=frames.timestamps_s,
        fps=frames.fps,
        coordinate_frame=frame,
    )


def _plan_image(source: Any, store: MediaStore, config: ProcessorConfig, fit: Fit, where: str) -> MediaPlan:
    original = store.image_size(source, where)
    size = _fitted(original, config.min_pixels, config.max_pixels, "processor", fit, where)
    return MediaPlan(source, original, MediaShape("image", size))


def _plan_video(
    part: Mapping[str, Any],
    store: MediaStore,
    config: ProcessorConfig,
    fit: Fit,
    frame_multiple: int,
    where: str,
) -> MediaPlan:
    request = replace(VideoRequest.of(config.video, part, where), frame_multiple=frame_multiple)
    info = store.video_info(part["video"], request, where)
    # Every frame has its share of the video's budget, but never less than a frame's least.
    most = max(
        config.video.min_pixels, min(config.video.max_pixels, config.video.total_pixels // info.num_frames)
    )
    size = _fitted(info.size, config.video.min_pixels, most, "processor.video", fit, where)
    shape = MediaShape("video", size, info.num_frames, info.timestamps_s, info.fps)
    return MediaPlan(part["video"], info.size, shape, request)


def _plan_audio(part: Mapping[str, Any], store: MediaStore, hears: Hearing, where: str) -> MediaPlan:
    """Headers do not say how many samples there are after resampling: it is decoded here, and kept."""
    request = AudioRequest.of(hears.rate, part, where)
    frames = store.audio(part["audio"], request, where)
    hears.require(len(frames.pixels), where)
    shape = MediaShape("audio", (0, 0), len(frames.pixels), (), float(hears.rate))
    return MediaPlan(part["audio"], (0, 0), shape, request)


def _shrunk(plan: MediaPlan, share: float, config: ProcessorConfig, fit: Fit, where: str) -> MediaPlan:
    most = max(config.min_pixels, floor(_num_pixels(plan.shape.size) * share))
    size = _fitted(plan.original_size, config.min_pixels, most, "processor", fit, where)
    return replace(plan, shape=replace(plan.shape, size=size))


def _fitted(
    original: tuple[int, int], min_pixels: int, max_pixels: int, section: str, fit: Fit, where: str
) -> tuple[int, int]:
    height, width = original
    try:
        size = fit(height, width, min_pixels, max_pixels)
    except (ValueError, ZeroDivisionError) as error:
        raise DataError(f"{where}: an image of {width}x{height} pixels cannot be resized: {error}") from error
    # An engine that resizes what it is given once more must come to the same size.
    if not _num_pixels(size) or fit(*size, min_pixels, max_pixels) != size:
        raise DataError(
            f"{where}: no size for an image of {width}x{height} pixels lies between {section}.min_pixels="
            f"{min_pixels} and {section}.max_pixels={max_pixels}; set them further apart"
        )
    return size


def _num_pixels(size: tuple[int, int]) -> int:
    return size[0] * size[1]
