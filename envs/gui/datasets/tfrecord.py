"""TFRecord files of tf.train.Example, and other protocol buffers, read without TensorFlow.

Sources, facts only: tensorflow/core/lib/io/record_writer.h and core/example/example.proto for the layout,
protobuf.dev/programming-guides/encoding for the wire format. The checksums of a record are not compared:
these files are compressed by gzip, which has its own.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from vlrl.errors import DataError

Value: TypeAlias = "int | bytes"
MAX_RECORD_BYTES = 1 << 30


def examples(path: Path) -> Iterator[dict[str, list[Any]]]:
    """The examples of a file, compressed or not: name of a feature → its values (bytes, float or int).

    Raises:
        DataError: naming the file, for one that is cut off or no TFRecord.
    """
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if is_packed else path.open("rb") as file:
            while head := file.read(12):
                (length,) = struct.unpack("<Q", head[:8])
                if length > MAX_RECORD_BYTES:
                    raise ValueError(f"a record claims {length} bytes")
                record = file.read(length)
                if len(record) < length or len(file.read(4)) < 4:
                    raise ValueError("a record is cut off")
                yield example(record)
    except (ValueError, struct.error, EOFError, OSError, zlib.error, IndexError) as error:
        raise DataError(f"{path}: not a TFRecord file that can be read: {error}") from error


def example(record: bytes) -> dict[str, list[Any]]:
    """The features of one tf.train.Example."""
    found = {}
    for features in fields(record).get(1, ()):
        for entry in fields(_bytes(features)).get(1, ()):
            pair = fields(_bytes(entry))
            name = _bytes(pair[1][0]).decode()
            found[name] = _values(_bytes(pair[2][0])) if 2 in pair else []
    return found


def _values(feature: bytes) -> list[Any]:
    """The values of a Feature: 1 is a BytesList, 2 a FloatList, 3 an Int64List."""
    for kind, lists in fields(feature).items():
        values = fields(_bytes(lists[0])).get(1, [])
        if kind == 1:
            return [_bytes(value) for value in values]
        if kind == 2:
            packed = b"".join(v if isinstance(v, bytes) else struct.pack("<I", v) for v in values)
            return list(struct.unpack(f"<{len(packed) // 4}f", packed))
        numbers: list[int] = []
        for value in values:
            numbers += _varints(value) if isinstance(value, bytes) else [value]
        return [n - (1 << 64) if n >= 1 << 63 else n for n in numbers]
    return []


def fields(message: bytes) -> dict[int, list[Value]]:
    """Field number → its values in a message: numbers, and bytes of texts, messages and packed lists.

    Raises:
        ValueError: for what is not a message.
    """
    found: dict[int, list[Value]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        value: Value
        if kind == 0:
            value, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, at = int.from_bytes(message[at : at + size], "little"), at + size
        elif kind == 2:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            raise ValueError(f"wire type {kind}")
        if at > len(message):
            raise ValueError("a field is cut off")
        found.setdefault(key >> 3, []).append(value)
    return found


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where bytes belong")
    return value


def _varints(packed: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(packed):
        number, at = _varint(packed, at)
        numbers.append(number)
    return numbers


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """(number, where it ends)."""
    number = shift = 0
    while True:
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
