"""Small videos written on the spot; frame i is grey of level `level(i)`, so frames tell their number."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from PIL import Image

CODECS = {".mp4": "libx264", ".mkv": "libx264", ".webm": "libvpx-vp9", ".avi": "mpeg4"}
_TICK = Fraction(1, 1000)


def level(index: int) -> int:
    """Grey level of a frame; codecs keep it within 3 or so."""
    return 20 + 8 * (index % 26)


def numbers(pixels: np.ndarray) -> list[int]:
    """Which frames these are, by their levels: [num_frames, height, width, 3] → [num_frames]."""
    middle = pixels[:, pixels.shape[1] // 2, pixels.shape[2] // 2].mean(-1)
    return [round((value - 20) / 8) for value in middle.tolist()]


@contextmanager
def same_scheduling() -> Iterator[None]:
    """Undo what SVT-AV1 does to the thread that calls it as root: it makes it a real-time one.

    Whatever is started from there inherits that, and a busy real-time process leaves nothing for any other.
    """
    policy, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, policy, parameters)


def write_video(
    path: Path,
    *,
    codec: str | None = None,
    num_frames: int = 20,
    rate: Fraction | int = 10,
    size: tuple[int, int] = (48, 64),
    times_s: Sequence[float] | None = None,
    corner: bool = False,
) -> Path:
    """A video of `num_frames` at `rate`, or at the given times; `corner` paints the top left black."""
    with same_scheduling(), av.open(str(path), "w") as container:
        stream = container.add_stream(codec or CODECS[path.suffix], rate=rate)
        stream.height, stream.width = size
        stream.pix_fmt = "yuv420p"
        if times_s is not None:
            stream.codec_context.time_base = _TICK
        for index in range(num_frames if times_s is None else len(times_s)):
            pixels = np.full((*size, 3), level(index), np.uint8)
            if corner:
                pixels[: size[0] // 4, : size[1] // 4] = 0
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            if times_s is not None:
                frame.pts, frame.time_base = round(times_s[index] * 1000), _TICK
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_gif(path: Path, durations_s: Sequence[float], size: tuple[int, int] = (48, 64)) -> Path:
    frames = [Image.new("L", (size[1], size[0]), level(i)) for i in range(len(durations_s))]
    milliseconds = [round(seconds * 1000) for seconds in durations_s]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
    return path


def write_audio(path: Path) -> Path:
    """A file with a second of sound and no image."""
    with same_scheduling(), av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000)
        for _ in range(16):
            frame = av.AudioFrame.from_ndarray(np.zeros((1, 1000), np.float32), format="fltp", layout="mono")
            frame.sample_rate = 16000
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def turn_mp4(path: Path, source: Path) -> Path:
    """The mp4 again, its header saying that it is to be shown turned by 90° clockwise."""
    data = bytearray(source.read_bytes())
    place = data.index(b"tkhd") + 44  # behind version, times, duration, layer and volume
    turned = [0, 1 << 16, 0, -(1 << 16), 0, 0, 0, 0, 1 << 30]
    data[place : place + 36] = b"".join(value.to_bytes(4, "big", signed=True) for value in turned)
    path.write_bytes(data)
    return path


def cut_mp4(path: Path, source: Path, start_s: float) -> Path:
    """The mp4 again, its first frames kept in the file and hidden by an edit list, as lossless cutters do."""
    with av.open(str(source)) as old, av.open(str(path), "w", options={"use_editlist": "1"}) as new:
        stream = old.streams.video[0]
        copy = new.add_stream_from_template(stream)
        for packet in old.demux(stream):
            if packet.dts is None:
                continue
            offset = round(start_s / packet.time_base)
            packet.stream, packet.pts, packet.dts = copy, packet.pts - offset, packet.dts - offset
            new.mux(packet)
    return path
