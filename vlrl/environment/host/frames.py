"""Answers as bytes: what they hold, then their images, which are copied as little as possible.

number of buffers | length of each | pickle | buffer | buffer …
"""

from __future__ import annotations

import pickle
import struct
from typing import Any

_NUMBER = struct.Struct("<Q")


def dumps(value: Any) -> list[bytes | memoryview]:
    """A value in pieces, to be sent one after the other."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    pieces = [buffer.raw() for buffer in buffers]
    lengths = [len(pickled), *(piece.nbytes for piece in pieces)]
    head = b"".join(map(_NUMBER.pack, [len(lengths), *lengths]))
    return [head + pickled, *pieces]


def loads(data: bytearray) -> Any:
    """The value; its arrays are views of the data."""
    view = memoryview(data)
    (count,) = _NUMBER.unpack_from(data)
    begin = _NUMBER.size * (1 + count)
    parts = []
    for index in range(count):
        (length,) = _NUMBER.unpack_from(data, _NUMBER.size * (1 + index))
        parts.append(view[begin : begin + length])
        begin += length
    return pickle.loads(parts[0], buffers=parts[1:])
