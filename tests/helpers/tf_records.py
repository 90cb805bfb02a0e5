"""TFRecord files and accessibility trees as AndroidControl and Android in the Wild have them."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path


def varint(number: int) -> bytes:
    """A number as protocol buffers write it."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def number(field: int, value: int) -> bytes:
    """A field that is a number."""
    return varint(field << 3) + varint(value)


def block(field: int, *parts: bytes) -> bytes:
    """A field that is bytes or a message."""
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def feature(values: Sequence[bytes | int | float]) -> bytes:
    """A tf.train.Feature."""
    if values and isinstance(values[0], bytes):
        return block(1, *(block(1, value) for value in values if isinstance(value, bytes)))
    if values and isinstance(values[0], float):
        return block(2, block(1, struct.pack(f"<{len(values)}f", *values)))
    return block(3, block(1, *(varint(int(value)) for value in values)))


def example(features: Mapping[str, Sequence[bytes | int | float]]) -> bytes:
    """A tf.train.Example."""
    entries = (
        block(1, block(1, name.encode()), block(2, feature(values))) for name, values in features.items()
    )
    return block(1, *entries)


def write_records(path: Path, *examples: Mapping[str, Sequence[bytes | int | float]]) -> None:
    """A file of examples, compressed by gzip; nobody compares the checksums, which are 0."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = (example(each) for each in examples)
    framed = (struct.pack("<QI", len(record), 0) + record + bytes(4) for record in records)
    path.write_bytes(gzip.compress(b"".join(framed)))


def forest(*nodes: tuple[tuple[int, int, int, int], bool]) -> bytes:
    """An AndroidAccessibilityForest of one window: (left, top, right, bottom) and whether it is clickable."""
    inside = (
        block(
            1,
            number(1, n),
            block(2, *(number(side, value) for side, value in enumerate(box, 1))),
            block(3, b"android.widget.Button"),
            *([number(14, 1)] if is_clickable else []),
            number(23, 1),
        )
        for n, (box, is_clickable) in enumerate(nodes)
    )
    return block(1, number(3, 7), block(11, *inside))
