"""JSON lines, JSON and CSV files, indexed by the position of every row: no row is kept in memory."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.data.readers.record import OpenedFile, Record
from vlrl.errors import DataError, DatasetMissing
from vlrl.types import IntArray

BLOCK = 1 << 26
"""Bytes of a file that are searched for line ends at a time."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SPACE = re.compile(r"[ \t\r\n]*")
DECODE = json.JSONDecoder().raw_decode


class JsonlReader:
    """A file of one JSON row a line; media paths are relative to `image_root` or else the file's folder."""

    def __init__(self, path: str, image_root: str | None = None) -> None:
        self._file = OpenedFile(existing_file(path))
        self._root = Path(image_root) if image_root else self._file.path.parent
        starts, firsts = _lines(self._file)
        ends = np.append(starts[1:], len(self._file))
        kept = ~_blank(self._file, starts, ends, firsts)
        self._starts, self._ends = starts[kept], ends[kept]
        self._numbers = np.flatnonzero(kept).astype(np.int32) + 1

    def __len__(self) -> int:
        """Number of rows; empty lines do not count."""
        return len(self._starts)

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the file and the line.
        """
        line = self._file.read(int(self._starts[index]), int(self._ends[index]))
        place = f"{self._file.path.name}:{self._numbers[index]}"
        return Record(parse_object(line, f"{self._file.path}:{self._numbers[index]}"), place, self._root)


class JsonReader:
    """A JSON file that is a list of rows, or an object one of whose values is (`key` says which)."""

    def __init__(self, path: str, image_root: str | None = None, key: str | None = None) -> None:
        self._file = OpenedFile(existing_file(path))
        self._root = Path(image_root) if image_root else self._file.path.parent
        starts, ends = _row_spans(self._file, key)
        self._starts, self._ends = starts, ends
        lines = np.searchsorted(_lines(self._file)[0], starts, side="right")
        # Rows that share a line differ by their number in the list.
        self._lines = lines if len(np.unique(lines)) == len(lines) else None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._starts)

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the file and the line.
        """
        where = f"[{index}]" if self._lines is None else f":{self._lines[index]}"
        text = self._file.read(int(self._starts[index]), int(self._ends[index]))
        return Record(
            parse_object(text, f"{self._file.path}{where}"), f"{self._file.path.name}{where}", self._root
        )


class CsvReader:
    """A CSV file with a heading; every value is text. Read whole: such files are small."""

    def __init__(self, path: str, image_root: str | None = None, delimiter: str = ",") -> None:
        self._path = existing_file(path)
        self._root = Path(image_root) if image_root else self._path.parent
        try:
            with self._path.open(encoding="utf-8-sig", newline="") as file:
                rows = csv.DictReader(file, delimiter=delimiter, strict=True)
                self._rows = [(rows.line_num, row) for row in rows]
        except (csv.Error, UnicodeDecodeError) as error:
            raise DataError(f"{self._path} is not a CSV file in UTF-8: {error}") from error

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the file and the line, if the row is longer or shorter than the heading.
        """
        line, row = self._rows[index]
        if None in row or None in row.values():
            raise DataError(f"{self._path}:{line}: not as many values as the heading has columns")
        return Record(dict(row), f"{self._path.name}:{line}", self._root)


def existing_file(path: str) -> Path:
    """The path of a file that exists.

    Raises:
        DataError: if it does not.
    """
    if not Path(path).is_file():
        raise DatasetMissing(f"dataset file {path} does not exist (looked in {Path.cwd()})")
    return Path(path)


def holds_lines(path: Path) -> bool:
    """True if a .json file is one JSON object a line, as many are."""
    with path.open("rb") as file:
        first = file.readline().removeprefix(BYTE_ORDER_MARK)
        if not first.lstrip().startswith(b"{") or not file.readline().strip():
            return False
    try:
        json.loads(first)
    except ValueError:
        return False
    return True


def parse_object(text: bytes, where: str) -> dict[str, Any]:
    """One JSON object.

    Raises:
        DataError: naming the place.
    """
    try:
        fields = json.loads(text.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8: {error}; save the file as UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{where}: not a row: not JSON ({error})") from error
    if not isinstance(fields, dict):
        raise DataError(f"{where}: not a row: {type(fields).__name__} where an object belongs")
    return fields


def _lines(file: OpenedFile) -> tuple[IntArray, npt.NDArray[np.uint8]]:
    """([num_lines] int64 byte at which each line begins, [num_lines] its first byte)."""
    size, is_open = len(file), True
    starts, firsts = [np.zeros(0, np.int64)], [np.zeros(0, np.uint8)]
    for begin in range(0, size, BLOCK):
        block = np.frombuffer(file.read(begin, min(begin + BLOCK, size)), np.uint8)
        here = np.flatnonzero(block == ord("\n")) + 1
        if is_open:  # a line begins where the block does
            mark = len(BYTE_ORDER_MARK) if not begin and _is_marked(block[:3].tobytes()) else 0
            here = np.concatenate([[mark], here])
        is_open = len(here) > 0 and here[-1] == len(block)
        here = here[here < len(block)]
        starts.append(here + begin)
        firsts.append(block[here])
    return np.concatenate(starts), np.concatenate(firsts)


def _is_marked(begin: bytes) -> bool:
    return begin[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK


def _blank(
    file: OpenedFile, starts: IntArray, ends: IntArray, firsts: npt.NDArray[np.uint8]
) -> npt.NDArray[np.bool_]:
    """[num_lines] bool, True where a line is white space alone."""
    blank = np.isin(firsts, np.frombuffer(b" \t\r\n", np.uint8))
    for index in np.flatnonzero(blank):  # few: a row begins with its brace, nearly always
        blank[index] = not file.read(int(starts[index]), int(ends[index])).strip()
    return blank


def _row_spans(file: OpenedFile, key: str | None) -> tuple[IntArray, IntArray]:
    """([num_rows] int64, [num_rows] int64): the bytes at which each row of a JSON file begins and ends.

    The file is parsed once, as Latin-1 so that a character is a byte, and the values are thrown away.
    """
    data = file.read(0, len(file))
    text, begin = str(data, "latin-1"), len(BYTE_ORDER_MARK) if _is_marked(data) else 0
    try:
        lists = _lists(text, _skip_space(text, begin))
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{file.path}: not JSON ({error})") from error
    filled = {name: spans for name, spans in lists.items() if spans} or lists
    found = filled if key is None else {name: spans for name, spans in lists.items() if name == key}
    if len(found) != 1:
        names = ", ".join(map(repr, lists)) or "none"
        raise DataError(
            f"{file.path}: no list of rows, nor an object that holds one (lists of objects in it: {names}); "
            "options.key says which to read"
        )
    spans = np.asarray(next(iter(found.values())), dtype=np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]


def _lists(text: str, position: int) -> dict[str, list[tuple[int, int]]]:
    """Spans of the items of a list of objects, by the key that holds it; "" if the text is that list."""
    opening = text[position : position + 1]
    if opening == "[":
        return {"": _items(text, position)[0]}
    found: dict[str, list[tuple[int, int]]] = {}
    position = _skip_space(text, position + 1)
    while opening == "{" and text[position : position + 1] != "}":
        name, position = DECODE(text, position)
        position = _skip_space(text, _skip_space(text, position) + 1)  # the colon
        if (
            text[position : position + 1] == "["
            and text[(first := _skip_space(text, position + 1)) : first + 1] in "{]"
        ):
            found[name], position = _items(text, position)
        else:
            _, position = DECODE(text, position)
        position = _after_item(text, position, "}")
    return found


def _items(text: str, position: int) -> tuple[list[tuple[int, int]], int]:
    """Spans of a list's items, and where the list ends."""
    spans = []
    position = _skip_space(text, position + 1)
    while text[position : position + 1] != "]":
        _, end = DECODE(text, position)
        spans.append((position, end))
        position = _after_item(text, end, "]")
    return spans, position + 1


def _after_item(text: str, position: int, closing: str) -> int:
    """Where the next item begins, or the closing bracket stands."""
    position = _skip_space(text, position)
    if text[position : position + 1] == ",":
        return _skip_space(text, position + 1)
    if text[position : position + 1] != closing:
        raise json.JSONDecodeError(f"Expecting ',' or {closing!r}", text, position)
    return position


def _skip_space(text: str, position: int) -> int:
    match = SPACE.match(text, position)
    return match.end() if match else position
