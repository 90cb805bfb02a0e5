"""The reader of the browser's PNG images gives what Pillow gives, of every form."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from vlrl.envs.gui.web.chromium.png import read_png
from vlrl.types import ByteArray


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def written_up(pixels: ByteArray, part: int) -> bytes:
    """A PNG whose rows are all differences to the ones above, in IDAT chunks of `part` bytes."""
    height, width, _ = pixels.shape
    rows = pixels.reshape(height, 3 * width)
    changes = np.diff(rows, axis=0, prepend=np.zeros_like(rows[:1]))
    packed = zlib.compress(np.insert(changes, 0, 2, axis=1).tobytes(), 1)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    parts = [chunk(b"IDAT", packed[at : at + part]) for at in range(0, len(packed), part)]
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(parts) + chunk(b"IEND", b"")


def noise(height: int, width: int, channels: int = 3) -> ByteArray:
    rng = np.random.default_rng(height)
    return rng.integers(0, 256, (height, width, channels), np.uint8)


@pytest.mark.parametrize("size", [(1, 1), (31, 7), (32, 5), (33, 5), (64, 1), (100, 90)])
@pytest.mark.parametrize("part", [13, 1 << 20])
def test_rows_written_as_differences(size: tuple[int, int], part: int) -> None:
    pixels = noise(*size)
    data = written_up(pixels, part)
    assert np.array_equal(read_png(data), pixels)
    with Image.open(io.BytesIO(data)) as image:
        assert np.array_equal(np.asarray(image.convert("RGB")), pixels)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P"])
def test_other_forms(mode: str) -> None:
    image = Image.fromarray(noise(40, 30)).convert(mode)
    data = io.BytesIO()
    image.save(data, "PNG")
    assert np.array_equal(read_png(data.getvalue()), np.asarray(image.convert("RGB")))


@pytest.mark.parametrize("cut", [0, 20, 60])
def test_what_is_no_image_is_an_error(cut: int) -> None:
    with pytest.raises((OSError, SyntaxError)):
        read_png(written_up(noise(40, 30), 1 << 20)[:cut])
