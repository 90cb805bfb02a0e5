"""Images and frames as data URLs for a judge."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import numpy as np

from vlrl.chat_client.images import data_url, sound_part
from vlrl.rewards.judge.endpoint import JudgeEndpoint
from vlrl.rewards.judge.single_flight import SingleFlight
from vlrl.types import Media

MAX_CACHED_CHARS = 256 * 1024 * 1024
"""Of data URLs kept for the other completions of a group; the least recently used go first."""


class DataUrls:
    """Media encoded for one endpoint, each once, beside the event loop."""

    def __init__(self, endpoint: JudgeEndpoint) -> None:
        self._endpoint = endpoint
        self._kept: OrderedDict[str, list[str]] = OrderedDict()
        self._running: SingleFlight[list[str]] = SingleFlight()

    async def parts(self, media: tuple[Media, ...]) -> list[dict[str, Any]]:
        """Message parts that show the media in order, each after its name: [image 1], [video 2]."""
        found: list[dict[str, Any]] = []
        for number, medium in enumerate(media, start=1):
            if medium.kind == "audio":
                found += [{"type": "text", "text": f"[audio {number}]"}, sound_part(medium)]
                continue
            frames = shown_frames(medium, self._endpoint.max_frames)
            name = f"[{medium.kind} {number}]"
            if medium.kind == "video":
                name += ", frames at " + ", ".join(f"{medium.timestamps_s[i]:.2f} s" for i in frames)
            found.append({"type": "text", "text": name})
            for url in await self._urls(medium, frames):
                found.append({"type": "image_url", "image_url": {"url": url}})
        return found

    async def _urls(self, medium: Media, frames: list[int]) -> list[str]:
        key = medium.sha256
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        pixels, endpoint = medium.frames, self._endpoint
        urls = await self._running.join(
            key, lambda: asyncio.to_thread(lambda: [data_url(pixels[i], endpoint) for i in frames])
        )
        self._kept[key] = urls
        while (
            len(self._kept) > 1
            and sum(len(u) for kept in self._kept.values() for u in kept) > MAX_CACHED_CHARS
        ):
            self._kept.popitem(last=False)
        return urls


def shown_frames(medium: Media, max_frames: int) -> list[int]:
    """Indices of the frames that a judge sees: all of them, or max_frames evenly spaced."""
    count = min(len(medium.frames), max_frames)
    return sorted({int(i) for i in np.linspace(0, len(medium.frames) - 1, count).round()})
