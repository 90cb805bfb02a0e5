"""PNG images as Chromium writes them: read in less time than a decoder of all kinds takes."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from PIL import Image

from vlrl.types import ByteArray

_UP = 2
"""PNG's filter by which a row is written as its difference to the row above."""
_BLOCK = 32
"""Rows summed beside those of other blocks: 0.3 ms for 480×630 pixels, where np.add.accumulate takes 2.0."""


def read_png(data: bytes) -> ByteArray:
    """[height, width, 3] uint8 of a PNG image; one that Chromium optimized for speed is read fastest.

    Raises:
        OSError, SyntaxError: for data that Pillow cannot read either.
    """
    pixels = _read_rows_up(data)
    if pixels is not None:
        return pixels
    with Image.open(io.BytesIO(data)) as image:
        return np.asarray(image.convert("RGB"))


def _read_rows_up(data: bytes) -> ByteArray | None:
    """The pixels of 8-bit RGB whose rows are all differences to the ones above; None of another image."""
    chunks = list(_chunks(data))
    header = next((content for kind, content in chunks if kind == b"IHDR"), b"")
    if len(header) != 13:
        return None
    width, height, *form = struct.unpack(">IIBBBBB", header)
    if form != [8, 2, 0, 0, 0]:
        return None
    packed = b"".join(content for kind, content in chunks if kind == b"IDAT")
    size = height * (3 * width + 1)
    try:
        unpacked = zlib.decompress(packed, bufsize=size)
    except zlib.error:
        return None
    if len(unpacked) != size:
        return None
    rows = np.frombuffer(unpacked, np.uint8).reshape(height, 3 * width + 1)
    if (rows[:, 0] != _UP).any():
        return None
    return _summed(rows[:, 1:])[:height].reshape(height, width, 3)


def _chunks(data: bytes) -> Iterator[tuple[bytes, memoryview]]:
    """(kind, content) of each; their checksums are not read: what the pipe gives was not on any wire."""
    view, at = memoryview(data), 8
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        yield kind, view[at + 8 : at + 8 + length]
        at += 12 + length


def _summed(rows: ByteArray) -> ByteArray:
    """Running sums down the columns, modulo 256, with up to _BLOCK - 1 more rows at the end."""
    num_blocks = -(-len(rows) // _BLOCK)
    sums = np.empty((num_blocks * _BLOCK, rows.shape[1]), np.uint8)
    sums[: len(rows)], sums[len(rows) :] = rows, 0
    blocks = sums.reshape(num_blocks, _BLOCK, rows.shape[1])
    for row in range(1, _BLOCK):
        blocks[:, row] += blocks[:, row - 1]
    for block in range(1, num_blocks):
        blocks[block] += blocks[block - 1, -1]
    return sums
