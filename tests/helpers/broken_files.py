"""A corpus of files that are wrong in every way a disk, a network or a stranger makes them wrong."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from builders import random_image
from PIL import Image
from videos import write_audio, write_gif, write_video

IMAGES = {".png": "PNG", ".jpg": "JPEG", ".webp": "WEBP", ".gif": "GIF", ".bmp": "BMP", ".tiff": "TIFF"}
VIDEOS = (".mp4", ".webm", ".mkv")


def write_good(folder: Path) -> list[Path]:
    """One good file of each kind, in a folder."""
    folder.mkdir()
    image = Image.fromarray(random_image(60, 80))
    for suffix, kind in IMAGES.items():
        image.save(folder / f"good{suffix}", kind)
    image.save(folder / "progressive.jpg", progressive=True)
    image.save(folder / "squeezed.tiff", compression="tiff_lzw")
    for suffix in VIDEOS:
        write_video(folder / f"good{suffix}", num_frames=30)
    write_gif(folder / "moving.gif", [0.1] * 8)
    return sorted(folder.iterdir())


def write_broken(folder: Path, good: list[Path]) -> list[Path]:
    """Broken copies of good files, and a few that were never good; at least 200."""
    folder.mkdir()
    for path in good:
        for name, data in damaged(path.read_bytes(), seed=zlib.crc32(path.name.encode())):
            (folder / f"{path.stem}-{name}{path.suffix}").write_bytes(data)
    for suffix in (*IMAGES, *VIDEOS):
        (folder / f"empty{suffix}").write_bytes(b"")
        (folder / f"zeros{suffix}").write_bytes(bytes(2000))
        (folder / f"text{suffix}").write_text("<html>404 not found</html>")
        other = next(path for path in good if path.suffix != suffix)
        (folder / f"not-what-it-says{suffix}").write_bytes(other.read_bytes())
    for path in good:
        for index, data in enumerate(lies(path)):
            (folder / f"lie-{index}-{path.name}").write_bytes(data)
    write_audio(folder / "sound.mp4")
    write_video(folder / "one-frame.mp4", num_frames=1)
    return sorted(folder.iterdir())


def damaged(data: bytes, seed: int) -> Iterator[tuple[str, bytes]]:
    """Cut short at many points, bits flipped, blocks lost."""
    rng = np.random.default_rng(seed)
    for share in (0.01, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.999):
        yield f"cut-{share}", data[: int(len(data) * share)]
    for index, num_flips in enumerate((1, 1, 3, 10, 100)):
        changed = bytearray(data)
        head = min(len(data), 200 if index % 2 else len(data))  # headers every other time
        for place in rng.integers(0, head, num_flips).tolist():
            changed[place] ^= 1 << int(rng.integers(8))
        yield f"flipped-{index}", bytes(changed)
    for index in range(3):
        start = int(rng.integers(len(data) * 3 // 4))
        yield f"hole-{index}", data[:start] + bytes(200) + data[start + 200 :]
    middle = len(data) // 2
    yield "swapped", data[:100] + data[middle:] + data[100:middle]
    yield "tail", data + b"\xff" * 500


def lies(path: Path) -> Iterator[bytes]:
    """The file with a header that claims a huge image, and the checksums to go with it."""
    data = bytearray(path.read_bytes())
    if path.suffix == ".png":
        for side in (900, 20_000, 2**31 - 1):  # the first is within the limits, so it must fail later
            claimed = bytearray(data)
            claimed[16:24] = struct.pack(">II", side, side)
            claimed[29:33] = struct.pack(">I", zlib.crc32(claimed[12:29]))
            yield bytes(claimed)
    elif path.suffix == ".jpg":
        place = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
        # A small lie is not an error to any reader of JPEG: what is missing before the end mark is grey.
        yield bytes(data[: place + 5] + struct.pack(">HH", 65_500, 65_500) + data[place + 9 :])
    elif path.suffix == ".gif":
        yield bytes(data[:6] + struct.pack("<HH", 65_535, 65_535) + data[10:])
    elif path.suffix == ".bmp":
        for side in (900, 2**30):
            yield bytes(data[:18] + struct.pack("<ii", side, side) + data[26:])
    elif path.suffix == ".webp":
        yield bytes(data[:26] + struct.pack("<HH", 16_383, 16_383) + data[30:])
    elif path.suffix == ".tiff":
        for side in (900, 2**31):
            entry = struct.pack("<HHI", 256, 3, 1), struct.pack("<HHI", 256, 4, 1)
            place = max(data.find(entry[0]), data.find(entry[1]))
            yield bytes(data[:place] + entry[1] + struct.pack("<I", side) + data[place + 12 :])
    elif path.suffix == ".mp4":
        place = data.index(b"avc1") + 28
        yield bytes(data[:place] + struct.pack(">HH", 65_000, 65_000) + data[place + 4 :])
        place = data.index(b"mvhd") + 20
        yield bytes(data[:place] + struct.pack(">I", 2**31) + data[place + 4 :])
