"""Every medium decoded once: from any source to the pixels a model sees, shared and kept on disk."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from PIL import Image

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.audio import AudioRequest
from vlrl.processors.media.disk_cache import DiskCache
from vlrl.processors.media.download import Downloader
from vlrl.processors.media.image import Frames, decode_image, frames_hash, image_size, resize
from vlrl.processors.media.sources import Encoded, Located, locate
from vlrl.processors.media.video import VideoInfo, VideoRequest, choose_frames, choose_listed
from vlrl.processors.media.video_decoder import VideoDecoder, VideoFacts
from vlrl.types import ByteArray

_MAKERS = " ".join(version(name) for name in ("pillow", "decord", "av", "torch"))
"""What pixels may depend on beside the source; a new version makes them again."""
_NUM_LOCKS = 64
_MAX_FACTS = 256
_MAX_HASHES = 100_000
_SETTLED_NS = 2_000_000_000
"""A file changed less than this ago may change again within the same tick of the clock: not remembered."""


class MediaStore:
    """Opens media and keeps what it made of them. Safe to share between threads.

    Two requests for the same medium and size get one array as long as anyone holds it; after that it comes
    from the disk cache, and only then is the source decoded again. Images already in memory are not kept on
    disk. A path's content is remembered by its size, time and inode, so a warm start reads headers at most.
    """

    def __init__(
        self, config: MediaConfig, download: Downloader | None = None, videos: VideoDecoder | None = None
    ) -> None:
        self._config = config
        folder = config.cache_dir or _user_cache() / "vlrl" / "media"
        self._disk = DiskCache(folder, int(config.cache_gib * (1 << 30)))
        self._live: WeakValueDictionary[tuple[Any, ...], Frames] = WeakValueDictionary()
        self._hashes: dict[str, str] = {}
        self._facts: OrderedDict[str, VideoFacts] = OrderedDict()
        self._download = download or Downloader(config)
        self._videos = videos or VideoDecoder(config)
        self._locks = [threading.Lock() for _ in range(_NUM_LOCKS)]

    def image_size(self, source: Any, where: str) -> tuple[int, int]:
        """(height, width) of an image, upright, from its header.

        Args:
            source: see `vlrl.processors.media.sources`.
            where: the sample's id, for errors.

        Raises:
            DataError: if it cannot be opened, is not an image, or exceeds a limit of MediaConfig.
        """
        located = self._image(source, where)
        limit = self._config.max_source_pixels
        if isinstance(located, Encoded):
            with located.open() as file:
                return image_size(file, located.name, limit)
        return image_size(located, _name(where, located), limit)

    def image(self, source: Any, size: tuple[int, int], where: str) -> Frames:
        """An image as upright RGB at exactly `size` (height, width); errors as in `image_size`."""
        located = self._image(source, where)
        limit = self._config.max_source_pixels
        if not isinstance(located, Encoded):
            pixels = decode_image(located, _name(where, located), limit)
            if pixels is located and (pixels.shape[:2] == size or not pixels.flags.carray):
                pixels = np.array(pixels)  # the caller's own: resizing makes no other, or cannot read it
            return self._shared(_image_frames(pixels, size))

        def decode() -> Frames:
            with located.open() as file:
                return _image_frames(decode_image(file, located.name, limit), size)

        return self._kept(f"image {_MAKERS} {size[0]}x{size[1]} {self._content_hash(located)}", decode)

    def video_info(self, source: Any, request: VideoRequest, where: str) -> VideoInfo:
        """Which frames will be taken of a video, by its container and the size of its first frame.

        Args:
            source: see `vlrl.processors.media.sources`; a list is of frames.
            request: what is wanted.
            where: the sample's id, for errors.

        Raises:
            DataError: if it is not a video, has too few frames, or exceeds a limit of MediaConfig.
        """
        located = self._located(source, where)
        if isinstance(located, list):
            size = self.image_size(source[0], f"{where}: frame 0") if located else (0, 0)
            return choose_listed(len(located), size, request, where)
        video = self._video_file(located, where)
        return self._chosen(video, self._video_facts(video), request)

    def video(self, source: Any, request: VideoRequest, size: tuple[int, int], where: str) -> Frames:
        """Those frames as upright RGB at exactly `size` (height, width); errors as in `video_info`."""
        located = self._located(source, where)
        if isinstance(located, list):
            return self._listed(source, request, size, where)
        video = self._video_file(located, where)
        facts = self._video_facts(video)
        info = self._chosen(video, facts, request)
        settings = f"video {_MAKERS} {size} {info.indices} {self._content_hash(video)}"
        return self._kept(
            settings, lambda: _video_frames(self._videos.decode(video, facts, info.indices, size), info)
        )

    def audio(self, source: Any, request: AudioRequest, where: str) -> Frames:
        """An audio as `Media.frames` has it, of one channel; arguments and errors as in `video_info`."""
        located = self._located(source, where)
        if not isinstance(located, Encoded):
            raise DataError(f"{where}: a {type(located).__name__} was given for an audio; give a file")

        def decode() -> Frames:
            samples = request.cut(self._videos.hear(located, request.rate), located.name)
            return Frames("audio", frames_hash("audio", samples), samples, (0, 0), fps=float(request.rate))

        return self._kept(f"{request} {_MAKERS} {self._content_hash(located)}", decode)

    def _listed(self, source: Any, request: VideoRequest, size: tuple[int, int], where: str) -> Frames:
        """A video given as images; each is kept by itself, so only their stacking is repeated."""
        info = self.video_info(source, request, where)
        frames = {i: self.image(source[i], size, f"{where}: frame {i}") for i in sorted({*info.indices})}
        return self._shared(_video_frames(np.concatenate([frames[i].pixels for i in info.indices]), info))

    def _video_file(self, located: Located, where: str) -> Encoded:
        if isinstance(located, Encoded):
            return located
        raise DataError(
            f"{where}: a {type(located).__name__} was given for a video; give a file, or a list of frames"
        )

    def _chosen(self, video: Encoded, facts: VideoFacts, request: VideoRequest) -> VideoInfo:
        return choose_frames(facts.timestamps_s, facts.rate, facts.size, request, video.name)

    def _video_facts(self, video: Encoded) -> VideoFacts:
        """What the container says, remembered by its content."""
        content = self._content_hash(video)
        with self._locks[int(content[:8], 16) % _NUM_LOCKS]:
            facts = self._facts.pop(content, None) or self._facts_from_disk(content)
            if facts is None:
                facts = self._videos.probe(video)
                meta = {"size": facts.size, "rate": facts.rate}
                self._disk.put(_facts_key(content), meta, facts.timestamps_s.view(np.uint8))
            self._facts[content] = facts
        if len(self._facts) > _MAX_FACTS:
            self._facts.popitem(last=False)
        return facts

    def _facts_from_disk(self, content: str) -> VideoFacts | None:
        found = self._disk.get(_facts_key(content))
        if found is None:
            return None
        meta, times = found
        height, width = meta["size"]
        return VideoFacts((height, width), times.view(np.float64), meta["rate"])

    def _image(self, source: Any, where: str) -> Encoded | Image.Image | np.ndarray:
        located = self._located(source, where)
        if isinstance(located, list):
            raise DataError(f"{where}: a list of {len(located)} images was given for one image")
        return located

    def _located(self, source: Any, where: str) -> Located:
        located = locate(source, self._config, where)
        if isinstance(located, Encoded) and located.url is not None:
            return replace(located, data=self._downloaded(located))
        return located

    def _downloaded(self, source: Encoded) -> bytes:
        """A URL's bytes, from the cache if they are there: what a URL names is taken not to change."""
        key = hashlib.sha256(f"url {source.url}".encode()).hexdigest()
        with self._locks[int(key[:8], 16) % _NUM_LOCKS]:
            found = self._disk.get(key)
            if found is not None:
                return found[1].tobytes()
            data = self._download.fetch(source)
            self._disk.put(key, {}, np.frombuffer(data, np.uint8))
            return data

    def _kept(self, settings: str, make: Callable[[], Frames]) -> Frames:
        """The record for these settings: alive, or on disk, or made now. One thread makes it, others wait."""
        key = hashlib.sha256(settings.encode()).hexdigest()
        with self._locks[int(key[:8], 16) % _NUM_LOCKS]:
            frames = self._live.get((key,))
            if frames is None:
                frames = self._from_disk(key)
            if frames is None:
                frames = make()
                meta = {
                    "kind": frames.kind,
                    "sha256": frames.sha256,
                    "original_size": frames.original_size,
                    "timestamps_s": frames.timestamps_s,
                    "fps": frames.fps,
                }
                if self._disk.put(key, meta, frames.pixels):
                    frames = self._from_disk(key) or frames  # the map shares its memory with other processes
            frames = self._shared(frames)
            self._live[key,] = frames
            return frames

    def _from_disk(self, key: str) -> Frames | None:
        found = self._disk.get(key)
        if found is None:
            return None
        meta, pixels = found
        height, width = meta["original_size"]
        return Frames(
            kind=meta["kind"],
            sha256=meta["sha256"],
            pixels=pixels,
            original_size=(height, width),
            timestamps_s=tuple(meta["timestamps_s"]),
            fps=meta["fps"],
        )

    def _shared(self, frames: Frames) -> Frames:
        """The record with this content that is alive already, if there is one."""
        return self._live.setdefault((frames.sha256, frames.original_size), frames)

    def _content_hash(self, source: Encoded) -> str:
        """Sha256 of an encoded file, remembered where the file is sure to be the same."""
        identity = _identity(source.path) if source.path is not None else None
        if identity is None:
            return _hash_file(source)
        remembered = self._hashes.get(identity)
        if remembered is not None:
            return remembered
        key = hashlib.sha256(identity.encode()).hexdigest()
        known = self._disk.get(key)
        content = str(known[0]["sha256"]) if known else _hash_file(source)
        if not known:
            self._disk.put(key, {"sha256": content}, np.zeros(0, np.uint8))
        if len(self._hashes) >= _MAX_HASHES:
            self._hashes.clear()  # they are on disk as well
        self._hashes[identity] = content
        return content


def _identity(path: Path) -> str | None:
    """What says that a path still holds the same bytes; None if nothing does."""
    try:
        status = path.stat()
        absolute = str(path.absolute())
    except (OSError, ValueError):
        return None
    if time.time_ns() - status.st_mtime_ns < _SETTLED_NS:
        return None
    return f"file {absolute} {status.st_size} {status.st_mtime_ns} {status.st_ino} {status.st_dev}"


def _hash_file(source: Encoded) -> str:
    with source.open() as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _image_frames(decoded: ByteArray, size: tuple[int, int]) -> Frames:
    pixels = resize(decoded[None], size)
    return Frames("image", frames_hash("image", pixels), pixels, (decoded.shape[0], decoded.shape[1]))


def _video_frames(pixels: ByteArray, info: VideoInfo) -> Frames:
    sha256 = frames_hash("video", pixels, info.timestamps_s, info.fps)
    return Frames("video", sha256, pixels, info.size, info.timestamps_s, info.fps)


def _facts_key(content: str) -> str:
    return hashlib.sha256(f"facts {content}".encode()).hexdigest()


def _name(where: str, image: Image.Image | np.ndarray) -> str:
    return f"{where}: image ({type(image).__name__})"


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
