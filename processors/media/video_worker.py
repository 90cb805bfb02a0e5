"""The process that reads video files, so that a broken one harms nobody: `python -m` it, with a socket.

Codecs are large, old and fed by strangers: they crash, hang and ask for absurd amounts of memory. This
process has a limit on its memory, is killed by the kernel when a request takes too long, and is given open
files, never names. It answers lines of JSON with lines of JSON; pixels go into memory that both share, a few
frames at a time.

    {"do": "probe", …limits}, [file]                         → {"size", "timestamps_s", "rate"}
    {"do": "decode", "indices", "size", "room"}, [file, memory]  → {"filled": n}, answered by any byte, … {}
    {"do": "hear", "rate", …limits}, [file, memory]          → {"num_samples"}, of 2 bytes each, in the memory
    any                                                      → {"error": what is wrong with the file}
"""

from __future__ import annotations

import json
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

_FRAMES_AT_ONCE = 8
_GIF_DURATION_S = 0.1
"""Of a frame that says none, as browsers have it."""


class BadVideo(Exception):
    """What is wrong with a file, and what to do."""


def main() -> None:
    """Serve until the other end closes. Arguments: the socket's number, most bytes of memory."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    most = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_RDWR), 2)  # codecs report each broken block
    while True:
        text, files, _, _ = socket.recv_fds(channel, 1 << 20, 2)
        while text and not text.endswith(b"\n"):
            text += channel.recv(1 << 20)
        if not text:
            os._exit(0)  # decord's destructors may hang
        request = json.loads(text)
        signal.setitimer(signal.ITIMER_REAL, request["timeout_s"])  # its default action ends the process
        reply = _answer(channel, request, files)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for file in files:
            os.close(file)
        channel.sendall(json.dumps(reply).encode() + b"\n")


def _answer(channel: socket.socket, request: dict[str, Any], files: list[int]) -> dict[str, Any]:
    path = f"/proc/self/fd/{files[0]}"
    try:
        if request["do"] == "hear":
            return {"num_samples": _hear(path, files[1], request)}
        gif = os.pread(files[0], 4, 0) == b"GIF8"
        if request["do"] == "probe":
            return _probe_gif(path, request) if gif else _probe(path, request)
        shape = (request["room"], *request["size"], 3)
        memory = mmap.mmap(files[1], int(np.prod(shape)))  # closed with the last array that refers to it
        _decode(channel, path, request, gif, np.frombuffer(memory, np.uint8).reshape(shape))
        return {}
    except BadVideo as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": "takes too much memory to decode; save it again at a smaller size, or drop the row"}
    except Exception as error:  # untrusted bytes: each library has its own set of exceptions
        text = str(error).strip().splitlines()[:1]
        what = ": ".join([type(error).__name__, *text])
        return {"error": f"is broken ({what[:200]}); replace the file or drop the row"}


def _probe(path: str, limits: dict[str, Any]) -> dict[str, Any]:
    import av

    with av.open(path) as container:
        if not container.streams.video:
            kinds = ", ".join(sorted({stream.type for stream in container.streams}))
            raise BadVideo(f"has no video track, only {kinds or 'nothing'}; drop the row")
        stream = container.streams.video[0]
        _check_size(stream.width, stream.height, limits)
        _check_duration((container.duration or 0) / av.time_base, limits)
        if stream.time_base is None:
            raise BadVideo("has no time base; save it again or drop the row")
        shown = sorted(
            (float(time * stream.time_base), float((packet.duration or 0) * stream.time_base))
            for packet in container.demux(stream)
            if (time := packet.dts if packet.pts is None else packet.pts) is not None
            # What an edit list cuts off stays in the file, and is not shown.
            and not packet.is_discard
        )
        rate = float(stream.average_rate or 0)
    if not shown:
        raise BadVideo("has no frames; replace the file or drop the row")
    times, last_s = [time for time, _ in shown], shown[-1][1]
    _check_duration(times[-1] - times[0], limits)
    with av.open(path) as container:
        frame = next(container.decode(video=0), None)
    if frame is None:
        raise BadVideo("has no frame that can be decoded; replace the file or drop the row")
    _check_size(frame.width, frame.height, limits)
    turned = frame.rotation % 180 != 0
    size = (frame.width, frame.height) if turned else (frame.height, frame.width)
    return _facts(size, times, rate, last_s)


def _facts(size: tuple[int, int], times: Sequence[float], rate: float, last_s: float) -> dict[str, Any]:
    """`rate` as the container says it, if that is what the times say too; some containers only guess."""
    span = times[-1] - times[0]
    last_s = last_s or span / max(len(times) - 1, 1) or 1 / (rate or 1.0)
    measured = len(times) / (span + last_s)
    if not 0.99 < rate / measured < 1.01:
        rate = measured
    return {"size": size, "timestamps_s": [time - times[0] for time in times], "rate": rate}


def _check_size(width: int, height: int, limits: dict[str, Any]) -> None:
    if not width * height:
        raise BadVideo(f"is empty ({width}x{height} pixels); drop the row")
    if width * height > limits["max_pixels"]:
        raise BadVideo(
            f"claims {width}x{height} pixels, more than media.max_source_pixels={limits['max_pixels']}; "
            "shrink it, or raise the limit"
        )


def _check_duration(duration_s: float, limits: dict[str, Any]) -> None:
    if duration_s > limits["max_video_s"]:
        raise BadVideo(
            f"claims to last {duration_s:.0f} s, more than media.max_video_s={limits['max_video_s']:g}; "
            "cut it, or raise the limit"
        )


def _decode(
    channel: socket.socket, path: str, request: dict[str, Any], gif: bool, memory: np.ndarray
) -> None:
    """Write the frames asked for into `memory` [room, height, width, 3]; whenever it is full, hand over."""
    indices, times = request["indices"], request["timestamps_s"]
    done = filled = 0
    for index, frame in _read_gif(path, indices) if gif else _read(path, indices, times):
        if index != indices[done] or frame.shape != memory.shape[1:]:
            raise BadVideo(
                f"gives frame {index} of {frame.shape[1]}x{frame.shape[0]} pixels, where another was due; "
                "save it again or drop the row"
            )
        memory[filled] = frame
        filled, done = filled + 1, done + 1
        if filled == len(memory) or done == len(indices):
            channel.sendall(json.dumps({"filled": filled}).encode() + b"\n")
            channel.recv(1)
            filled = 0
    if done < len(indices):
        raise BadVideo(
            f"lists {len(times)} frames, of which number {indices[done]} cannot be decoded; replace the file "
            "or drop the row"
        )


def _read(
    path: str, indices: Sequence[int], timestamps_s: Sequence[float]
) -> Iterator[tuple[int, np.ndarray]]:
    """(index, [height, width, 3]) by decord, which seeks best; what it cannot give, by PyAV.

    decord 0.6.0 does not know AV1, fails at some widths, and shows the frames that an edit list hides.
    """
    left = list(indices)
    try:
        for index, frame in _read_decord(path, indices, timestamps_s):
            left.remove(index)
            yield index, frame
    except Exception:  # decord has one class for everything
        pass
    if left:
        yield from _read_av(path, left)


def _read_decord(
    path: str, indices: Sequence[int], timestamps_s: Sequence[float]
) -> Iterator[tuple[int, np.ndarray]]:
    import decord

    reader = decord.VideoReader(path, num_threads=min(4, os.cpu_count() or 1))
    times = reader.get_frame_timestamp(range(len(reader)))[:, 0]
    if len(times) != len(timestamps_s) or not np.allclose(times - times[0], timestamps_s, atol=2e-3):
        return  # its frames are not those that the container shows
    for start in range(0, len(indices), _FRAMES_AT_ONCE):
        some = indices[start : start + _FRAMES_AT_ONCE]
        yield from zip(some, reader.get_batch(some).asnumpy(), strict=True)


def _read_av(path: str, indices: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    import av

    with av.open(path) as container:
        container.streams.video[0].thread_type = "AUTO"
        for index, frame in enumerate(container.decode(video=0)):
            if index in indices:
                # `rotation` turns counterclockwise, in degrees.
                yield index, np.rot90(frame.to_ndarray(format="rgb24"), round(frame.rotation / 90))
            if index >= indices[-1]:
                return


def _hear(path: str, memory: int, request: dict[str, Any]) -> int:
    """Write the audio track into `memory` as 16-bit samples of one channel; their number."""
    import av

    rate, written = request["rate"], 0
    with av.open(path) as container, os.fdopen(os.dup(memory), "wb") as out:
        if not container.streams.audio:
            kinds = ", ".join(sorted({stream.type for stream in container.streams}))
            raise BadVideo(f"has no audio track, only {kinds or 'nothing'}; drop the row")
        _check_duration((container.duration or 0) / av.time_base, request)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=rate)
        for frame in chain(container.decode(audio=0), [None]):  # None: what the resampler still holds
            for piece in resampler.resample(frame):
                written += out.write(piece.to_ndarray().astype("<i2").tobytes()) // 2
                _check_duration(written / rate, request)
    if not written:
        raise BadVideo("has no sound that can be decoded; replace the file or drop the row")
    return written


def _probe_gif(path: str, limits: dict[str, Any]) -> dict[str, Any]:
    from PIL import Image, ImageSequence

    with Image.open(path, formats=["GIF"]) as image:
        _check_size(*image.size, limits)
        times, time = [], 0.0
        for frame in ImageSequence.Iterator(image):
            times.append(time)
            time += frame.info.get("duration", 0) / 1000 or _GIF_DURATION_S
            _check_duration(time, limits)
        return _facts((image.height, image.width), times, 0.0, time - times[-1])


def _read_gif(path: str, indices: Sequence[int]) -> Iterator[tuple[int, np.ndarray]]:
    from PIL import Image

    from vlrl.processors.media.image import to_rgb

    with Image.open(path, formats=["GIF"]) as image:
        for index in indices:
            image.seek(index)
            yield index, np.asarray(to_rgb(image, "gif"))


if __name__ == "__main__":
    main()
