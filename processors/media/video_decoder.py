"""Ask processes of their own about video files; see `vlrl.processors.media.video_worker`."""

from __future__ import annotations

import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.audio import FORMATS
from vlrl.processors.media.image import resize
from vlrl.processors.media.sources import Encoded, sniff
from vlrl.types import ByteArray

CONTAINERS = "mp4, mov, webm, mkv, avi or gif"
_SHARED_BYTES = 24 << 20
"""Memory for frames on their way from the worker: a few at a time, at their full size."""
_BASE_BYTES = 2 << 30
_BYTES_A_PIXEL = 64
"""A decoder keeps up to 16 frames to predict others from, and decord a few more."""


@dataclass(frozen=True, slots=True)
class VideoFacts:
    """A video file by its container.

    Attributes:
        size: (height, width) in pixels, upright.
        timestamps_s: [num_frames] float64 seconds of every frame, rising, the first 0.
        rate: frames per second, on average.
    """

    size: tuple[int, int]
    timestamps_s: np.ndarray
    rate: float


class VideoDecoder:
    """A pool of worker processes: as many as threads that ask at the same time, started when needed."""

    def __init__(self, config: MediaConfig) -> None:
        self._config = config
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()
        weakref.finalize(self, _stop, self._idle)

    def probe(self, source: Encoded) -> VideoFacts:
        """Size and timestamps; only the first frame is decoded.

        Raises:
            DataError: for what is not a video, or is over a limit of MediaConfig.
        """
        with source.open() as file:
            if sniff(head := file.read(16)) != "video" and not head.startswith(b"GIF8"):
                raise DataError(f"{source.name} is not a video that is read here ({CONTAINERS})")
        facts = self._ask(source, {"do": "probe"})
        height, width = facts["size"]
        return VideoFacts((height, width), np.asarray(facts["timestamps_s"], np.float64), facts["rate"])

    def decode(
        self, source: Encoded, facts: VideoFacts, indices: Sequence[int], size: tuple[int, int]
    ) -> ByteArray:
        """[num_frames, height, width, 3] uint8 RGB of the frames with these indices, upright, at `size`.

        Raises:
            DataError: if a frame cannot be decoded, or decoding takes too long or too much memory.
        """
        frame_shape = (*facts.size, 3)
        num_bytes = int(np.prod(frame_shape))
        room = max(1, min(len(indices), _SHARED_BYTES // num_bytes))
        request = {
            "do": "decode",
            "indices": list(indices),
            "size": facts.size,
            "timestamps_s": facts.timestamps_s.tolist(),
            "room": room,
        }
        pixels = np.empty((len(indices), *size, 3), np.uint8)
        memory = os.memfd_create("vlrl-video", os.MFD_CLOEXEC)
        try:
            os.truncate(memory, room * num_bytes)
            shared = np.frombuffer(mmap.mmap(memory, room * num_bytes), np.uint8).reshape(room, *frame_shape)
            done = 0

            def take(num_frames: int) -> None:
                nonlocal done
                pixels[done : done + num_frames] = resize(shared[:num_frames], size)
                done += num_frames

            self._ask(source, request, memory, take=take)
        finally:
            os.close(memory)
        return pixels

    def hear(self, source: Encoded, rate: int) -> ByteArray:
        """[num_samples, 2] uint8, one channel of little-endian 16-bit samples at `rate` per second.

        Raises:
            DataError: if there is no sound, it cannot be decoded, or it is over a limit of MediaConfig.
        """
        with source.open() as file:
            if sniff(file.read(16)) not in ("audio", "video"):
                raise DataError(f"{source.name} is not an audio that is read here ({FORMATS})")
        memory = os.memfd_create("vlrl-audio", os.MFD_CLOEXEC)
        try:
            num_samples = self._ask(source, {"do": "hear", "rate": rate}, memory)["num_samples"]
            return np.frombuffer(os.pread(memory, 2 * num_samples, 0), np.uint8).reshape(-1, 2)
        finally:
            os.close(memory)

    def _ask(
        self,
        source: Encoded,
        request: Mapping[str, Any],
        *memory: int,
        take: Callable[[int], None] | None = None,
    ) -> dict[str, Any]:
        """The last reply; `take` is called for as many frames as each reply before it says."""
        limits = {
            "timeout_s": self._config.timeout_s,
            "max_pixels": self._config.max_source_pixels,
            "max_video_s": self._config.max_video_s,
        }
        worker = self._take()
        try:
            with _descriptor(source) as file:
                reply = worker.ask({**request, **limits}, [file, *memory])
                while take and reply and "filled" in reply:
                    take(reply["filled"])
                    reply = worker.go_on()
        except BaseException:
            worker.stop()
            raise
        if reply is None:
            raise DataError(f"{source.name} {self._how_it_ended(worker.stop())}")
        with self._lock:
            self._idle.append(worker)
        if "error" in reply:
            raise DataError(f"{source.name} {reply['error']}")
        return reply

    def _take(self) -> _Worker:
        with self._lock:
            if self._owner != os.getpid():  # after a fork the workers are still the parent's
                self._idle.clear()
                self._owner = os.getpid()
            if self._idle:
                return self._idle.pop()
        return _Worker(_BASE_BYTES + _BYTES_A_PIXEL * self._config.max_source_pixels)

    def _how_it_ended(self, returncode: int) -> str:
        if returncode == -signal.SIGALRM:
            return (
                f"took longer than media.timeout_s={self._config.timeout_s:g} to read; cut it, "
                "or raise the limit"
            )
        return f"makes its decoder crash (exit {returncode}); save it again or drop the row"


class _Worker:
    def __init__(self, most_bytes: int) -> None:
        self._channel, theirs = socket.socketpair()
        self._replies = self._channel.makefile("rb")
        with theirs:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "vlrl.processors.media.video_worker",
                    str(theirs.fileno()),
                    str(most_bytes),
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # It must find what this process finds; threads of numpy's would only take address space.
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
            )

    def ask(self, request: Mapping[str, Any], files: Sequence[int]) -> dict[str, Any] | None:
        """The first reply; None if the process ended."""
        text = json.dumps(request).encode() + b"\n"
        try:
            sent = socket.send_fds(self._channel, [text], list(files))
            self._channel.sendall(text[sent:])
        except (BrokenPipeError, ConnectionResetError):
            return None
        return self._reply()

    def go_on(self) -> dict[str, Any] | None:
        """The next reply."""
        try:
            self._channel.sendall(b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return None
        return self._reply()

    def _reply(self) -> dict[str, Any] | None:
        try:
            line = self._replies.readline()
        except ConnectionResetError:
            return None
        reply: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return reply

    def stop(self) -> int:
        """End the process; its exit status."""
        self._replies.close()
        self._channel.close()
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


@contextmanager
def _descriptor(source: Encoded) -> Iterator[int]:
    """An open file with the source's bytes."""
    if source.data is None:
        with source.open() as file:
            yield file.fileno()
        return
    memory = os.memfd_create("vlrl-source", os.MFD_CLOEXEC)
    with os.fdopen(memory, "wb") as file:
        file.write(source.data)
        file.flush()
        yield memory


def _stop(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.stop()
