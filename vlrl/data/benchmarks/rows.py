"""What every benchmark is made of: the reader of its files, a row of each record, and its own scorer.

A benchmark is a function that takes the folder of its published files, and the split, and returns
`BenchmarkRows`; its name in the registry is the `name` of a source. docs/benchmark_sets.md lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vlrl.config.options import RewardConfig
from vlrl.data.readers.record import Reader, Record
from vlrl.errors import DataError


class BenchmarkRows:
    """A benchmark's records in vlrl's own layout.

    Attributes:
        rewards: its official scorer, for a source that names no rewards.
        chunk_sizes: of the reader, if it has them.
        window_chunks: of the reader.
    """

    def __init__(
        self, reader: Reader, row: Callable[[Record], dict[str, Any]], rewards: Sequence[RewardConfig]
    ) -> None:
        """Read nothing yet.

        Args:
            reader: of the published records.
            row: a record's `messages`, `answer` and `metadata`. What it raises is reported with the place.
            rewards: the official scorer; the first is the score that is published.
        """
        self._reader, self._row, self.rewards = reader, row, tuple(rewards)
        self.chunk_sizes: Sequence[int] = getattr(reader, "chunk_sizes", ())
        self.window_chunks: int = getattr(reader, "window_chunks", 1)

    def __len__(self) -> int:
        """Number of records."""
        return len(self._reader)

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the record and the column that is missing or wrong.
        """
        record = self._reader[index]
        try:
            fields = self._row(record)
        except KeyError as error:
            has = ", ".join(map(str, record.fields)) or "nothing"
            raise DataError(f"{record.place}: there is no {error}; it has {has}") from error
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise DataError(f"{record.place}: {error}") from error
        return Record(fields, record.place, record.root)


def asked(text: str, *, images: Sequence[Any] = (), videos: Sequence[Any] = (), **clip: Any) -> list[Any]:
    """One user turn: the media, then the text.

    Args:
        text: of the question.
        images: sources of images, see `vlrl.processors.media.sources`.
        videos: sources of videos.
        clip: options of the videos, such as start_s and end_s.
    """
    parts: list[dict[str, Any]] = [{"type": "image", "image": image} for image in images]
    parts += [{"type": "video", "video": video, **clip} for video in videos]
    return [{"role": "user", "content": [*parts, {"type": "text", "text": text}]}]


def scorer(name: str, *, weight: float = 1.0, **options: Any) -> RewardConfig:
    """A reward by its name and options."""
    return RewardConfig(name=name, weight=weight, options=options)


def row(messages: list[Any], answer: Any, **metadata: Any) -> dict[str, Any]:
    """A row of what a benchmark gives; an answer of None is that of a split without published answers."""
    known = {key: value for key, value in metadata.items() if value is not None}
    found = {"messages": messages, "metadata": known}
    if answer is None:
        return found
    is_single = isinstance(answer, list) and len(answer) == 1 and isinstance(answer[0], str)
    return {**found, "answer": answer[0] if is_single else answer}


def text_of(record: Mapping[str, Any], name: str) -> str:
    """A column of text.

    Raises:
        KeyError: if it is missing.
        ValueError: if it is not text, or empty.
    """
    value = record[name]
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name!r} is {value!r:.60}; it must be a text that is not empty")
    return value.strip()


def texts_of(value: Any, name: str) -> list[str]:
    """A list of one or more texts; a single one may stand alone.

    Raises:
        ValueError: if it is anything else.
    """
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise ValueError(f"{name!r} is {value!r:.60}; it must be a text, or a list of texts")
    return [v.strip() for v in values]
