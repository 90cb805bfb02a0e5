"""A source's records as rows: columns renamed, shaped, templated, media placed and kept under the root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from vlrl.config.options import RewardConfig
from vlrl.data.markers import place_media
from vlrl.data.readers.record import Reader, Record, StreamReader
from vlrl.data.shapes.detect import detect_shape
from vlrl.data.shapes.fields import Fields, Shape
from vlrl.data.templates import PromptTemplate
from vlrl.errors import DataError
from vlrl.model.structured.forms import form_of
from vlrl.processors.media.sources import names_file, under_root
from vlrl.protocols import Dataset
from vlrl.registry import resolve
from vlrl.types import Row


class RowMaker:
    """Turns one source's records into rows; a pure function of the record."""

    def __init__(
        self,
        *,
        shape: str = "auto",
        columns: Mapping[str, str] | None = None,
        template: PromptTemplate | None = None,
        system: str | None = None,
    ) -> None:
        self._columns, self._template, self._system = dict(columns or {}), template, system
        self._shape_name = shape  # "auto" until the first row is read
        self._shape: Shape | None = None if shape == "auto" else resolve("shapes", shape)

    def row(self, record: Record) -> Row:
        """The row of a record: `id`, `messages`, `metadata`, `place`, and the optional fields that it has.

        The last assistant turn becomes the target, and the answer where there is no other; that of a pair is
        the chosen one.

        Raises:
            DataError: naming the place and what does not fit.
        """
        fields = self._renamed({k: v for k, v in record.fields.items() if v is not None}, record.place)
        variables = dict(fields)
        row = self._shaped(fields, record.place)
        if self._template is not None:
            row["messages"] = self._template.apply(row["messages"], variables, record.place)
        media = {kind: row.pop(f"{kind}s", ()) for kind in ("image", "video", "audio")}
        messages = place_media(row["messages"], media, record.place)
        messages = [_rooted_message(message, record) for message in messages]
        if self._system is not None and all(message["role"] != "system" for message in messages):
            messages.insert(0, {"role": "system", "content": self._system})
        if messages[-1]["role"] == "assistant":
            row["target"] = _spoken(messages.pop(), row, record.place)
            row.setdefault("answer", row["target"])
        elif row.get("target") and ("rejected" in row or row.get("label")):
            row.setdefault("answer", row["target"])
        if not any(message["role"] == "user" for message in messages):
            raise DataError(f"{record.place}: the conversation has no user turn before the answer")
        if "structured_outputs" in row:
            row["structured_outputs"] = form_of(row["structured_outputs"], record.place)
        own = row.pop("metadata", {})
        if not isinstance(own, Mapping):
            raise DataError(f"{record.place}: 'metadata' must be an object, not {type(own).__name__}")
        metadata = {**fields, **own}
        return {"id": record.place, **row, "messages": messages, "metadata": metadata, "place": record.place}

    def __getstate__(self) -> dict[str, Any]:
        return {
            **vars(self),
            "_shape": None,
        }  # found again by name: a stranger's function has no module to import

    def _renamed(self, fields: Fields, place: str) -> Fields:
        """`columns` applied: vlrl's field → the source's column."""
        absent = [column for column in self._columns.values() if column not in fields]
        if absent:
            raise DataError(
                f"{place}: no column {absent[0]!r}, which `columns` names, but {', '.join(fields) or 'none'}"
            )
        taken = {field: fields[column] for field, column in self._columns.items()}
        return {k: v for k, v in fields.items() if k not in self._columns.values()} | taken

    def _shaped(self, fields: Fields, place: str) -> dict[str, Any]:
        """The shape's row; `fields` keeps what the shape did not use."""
        if self._shape is None:
            if self._shape_name == "auto":
                self._shape_name = detect_shape(fields, place)
            self._shape = resolve("shapes", self._shape_name)
        try:
            row = self._shape(fields)
            if not row["messages"]:
                raise ValueError("no turns")
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{place}: not a row of shape {self._shape_name!r} ({type(error).__name__}: {error})"
            ) from error
        return row


class Rows(Dataset):
    """A reader's records as rows, the first `limit` of them."""

    def __init__(
        self, reader: Reader | Dataset, maker: RowMaker, name: str, limit: int | None = None
    ) -> None:
        self._reader, self._maker, self._name = reader, maker, name
        self._num_rows = len(reader) if limit is None else min(len(reader), limit)
        self.chunk_sizes = _clipped(getattr(reader, "chunk_sizes", ()), self._num_rows)
        self.window_chunks: int = getattr(reader, "window_chunks", 1)
        self.rewards: Sequence[RewardConfig] = getattr(reader, "rewards", ())
        if self._num_rows:
            maker.row(self._record(0))  # finds the shape, whatever row is asked for first

    def __len__(self) -> int:
        """Number of rows."""
        return self._num_rows

    def __getitem__(self, index: int) -> Row:
        """Row `index`.

        Raises:
            DataError: naming the file and the place in it.
        """
        if not 0 <= index < self._num_rows:
            raise IndexError(f"row {index} of {self._num_rows}")
        return self._maker.row(self._record(index))

    def __iter__(self) -> Iterator[Row]:
        """The rows in their own order."""
        return (self[index] for index in range(self._num_rows))

    def _record(self, index: int) -> Record:
        item = self._reader[index]
        if isinstance(item, Record):
            return item
        if not isinstance(item, Mapping):
            raise DataError(f"{self._name}:{index}: a row must be a mapping, not {type(item).__name__}")
        return Record(dict(item), str(item.get("id", f"{self._name}:{index}")), None)


class StreamedRows:
    """Rows that can only be read one after the other."""

    def __init__(self, reader: StreamReader, maker: RowMaker, limit: int | None = None) -> None:
        self._reader, self._maker, self._limit = reader, maker, limit
        known = [n for n in (reader.num_records, limit) if n is not None]
        self.num_rows = min(known) if reader.num_records is not None else None
        self.buffer_size = reader.buffer_size
        self.rewards: Sequence[RewardConfig] = getattr(reader, "rewards", ())

    def __iter__(self) -> Iterator[Row]:
        """The rows in their own order."""
        return self.rows(None, 0)

    def rows(self, shuffle_seed: int | None, skip: int) -> Iterator[Row]:
        """The rows from number `skip` on, whole shards in an order chosen by the seed.

        With a limit the shards keep their own order: the first rows are the same in every epoch.
        """
        for found in self.outcomes(shuffle_seed, skip):
            if isinstance(found, DataError):
                raise found
            yield found

    def outcomes(self, shuffle_seed: int | None, skip: int) -> Iterator[Row | DataError]:
        """`rows`, with the error in the place of a row that is refused: those after it can still be read."""
        limit = self._limit
        records = self._reader.records(shuffle_seed if limit is None else None, skip)
        for record in islice(records, None if limit is None else max(0, limit - skip)):
            try:
                found: Row | DataError = self._maker.row(record)
            except DataError as error:
                found = error
            yield found


def _clipped(sizes: Sequence[int], total: int) -> list[int]:
    """Chunk sizes of the first `total` rows."""
    clipped = []
    for size in sizes:
        if total <= 0:
            break
        clipped.append(min(size, total))
        total -= size
    return clipped


def _spoken(message: Mapping[str, Any], row: Mapping[str, Any], place: str) -> str:
    """The text of the assistant's last turn."""
    if "target" in row:
        raise DataError(
            f"{place}: it has a 'target' and ends with an assistant's turn; leave one of them out"
        )
    content = message["content"]
    if isinstance(content, str):
        return content
    if any(part["type"] != "text" for part in content):
        raise DataError(f"{place}: the assistant's last turn holds media; only text can be trained on")
    return "".join(part["text"] for part in content)


def _rooted_message(message: Mapping[str, Any], record: Record) -> dict[str, Any]:
    content = message["content"]
    if not isinstance(content, str):
        content = [
            {**part, part["type"]: _rooted(part.get(part["type"]), record)}
            if part["type"] != "text"
            else part
            for part in content
        ]
    return {**message, "content": content}


def _rooted(source: Any, record: Record) -> Any:
    """A medium's source; if it is a path, the whole path, which lies under the record's root."""
    if record.root is None:
        return source
    if isinstance(source, list):
        return [_rooted(frame, record) for frame in source]
    if isinstance(source, Mapping):
        if any(source.get(key) is not None for key in ("bytes", "array")):
            return dict(source)
        return _rooted(source.get("url") or source.get("path"), record)
    if isinstance(source, str):
        return str(under_root(record.root, source, record.place)) if names_file(source) else source
    if source is None or isinstance(source, bool | int | float):
        raise DataError(
            f"{record.place}: {source!r} is not an image, video or audio; give a path, bytes or a URL"
        )
    return source
