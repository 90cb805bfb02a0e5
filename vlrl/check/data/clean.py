"""The good rows as a JSONL file: the source's own lines where it has lines, else in vlrl's shape."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from PIL import Image

from vlrl.check.data.records import Checked, CheckedSource
from vlrl.config.data import DatasetConfig, MediaConfig
from vlrl.data import open_dataset
from vlrl.data.open import reader_kind
from vlrl.data.readers.record import Reader
from vlrl.errors import DataError
from vlrl.processors.media.sources import Encoded, locate
from vlrl.registry import resolve
from vlrl.types import Row


@dataclass(frozen=True, slots=True)
class CleanFile:
    """A written file, its rows, and the image_root it must be read with; None if paths need none."""

    path: Path
    num_rows: int
    image_root: str | None

    def describe(self) -> str:
        """Describe the file for people."""
        hint = f"; its media are found with options.image_root={self.image_root}" if self.image_root else ""
        return f"{self.path} ({self.num_rows:,} rows{hint})"


def write_clean(checked: Checked, path: Path) -> list[CleanFile]:
    """Write the rows without a problem; of several sources one file each, named after its section.

    Rows of a .jsonl or .json file are written as they stand there, to be read with the same shape, columns
    and template. Rows of any other source are written in vlrl's own shape, with those applied.

    Args:
        checked: the check's result.
        path: FILE.jsonl; for several sources FILE.data.train.0.jsonl and so on.

    Returns:
        What was written, in the order of the sources.

    Raises:
        DataError: if a source would be overwritten.
    """
    written = []
    for index, source in enumerate(checked.sources):
        good = [a.row for a in checked.audits if a.source == index and not a.problems]
        target = path if len(checked.sources) == 1 else path.with_suffix(f".{source.section}{path.suffix}")
        if target.resolve() == Path(source.config.name).resolve():
            raise DataError(f"--clean {target} is the source itself; give another file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _whole_or_not_at_all(target) as file:
            image_root = _write(source, good, target, file)
        written.append(CleanFile(target, len(good), image_root))
    return written


def _write(source: CheckedSource, good: Sequence[int], target: Path, file: TextIO) -> str | None:
    """Write the rows and return the image_root that they need."""
    if reader := _json_reader(source.config):
        root = None
        for record in map(reader.__getitem__, good):
            file.write(json.dumps(record.fields, ensure_ascii=False) + "\n")
            root = record.root
        elsewhere = root is not None and root.resolve() != target.parent.resolve()
        return str(root.resolve()) if root and elsewhere else None
    dataset, outside = open_dataset(source.config, source.section), set[str]()
    for row in good:
        portable = _portable(dataset[row], target, outside)
        file.write(json.dumps(portable, ensure_ascii=False, default=str) + "\n")
    return os.path.commonpath(outside) if outside else None


def _json_reader(config: DatasetConfig) -> Reader | None:
    """The reader of a .jsonl or .json file; None for any other source."""
    if not Path(config.name).is_file() or (kind := reader_kind(config.name)) not in ("jsonl", "json"):
        return None
    reader: Reader = resolve("datasets", kind)(config.name, **config.options)
    return reader


def _portable(row: Row, target: Path, outside: set[str]) -> dict[str, Any]:
    """A row in vlrl's shape whose media are files; folders beyond the target's are added to `outside`."""

    def as_file(source: Any) -> Any:
        located = locate(source, MediaConfig(), str(row["id"]))
        names = [_file_of(one, target) for one in (located if isinstance(located, list) else [located])]
        outside.update(os.path.dirname(name) for name in names if os.path.isabs(name))
        return names if isinstance(located, list) else names[0]

    messages = []
    for message in row["messages"]:
        content = message["content"]
        if not isinstance(content, str):
            content = [
                part if part["type"] == "text" else {**part, part["type"]: as_file(part[part["type"]])}
                for part in content
            ]
        messages.append({**message, "content": content})
    rest = {key: value for key, value in row.items() if key not in ("messages", "place")}
    return {**rest, "messages": messages}


def _file_of(located: Encoded | Image.Image | np.ndarray, target: Path) -> str:
    """Name of a medium's file, its URL, or that of the file made of it in TARGET_media/.

    Files below the target's folder are named relative to it, others by their absolute path.
    """
    folder = target.parent.resolve()
    if isinstance(located, Encoded) and located.url is not None:
        return located.url
    if isinstance(located, Encoded) and located.path is not None:
        file = located.path.resolve()
    else:
        data, suffix = _encoded(located)
        file = folder / f"{target.stem}_media" / f"{hashlib.sha256(data).hexdigest()[:32]}{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(data)
    return str(file.relative_to(folder)) if file.is_relative_to(folder) else str(file)


def _encoded(medium: Encoded | Image.Image | np.ndarray) -> tuple[bytes, str]:
    """(bytes, suffix) of a medium that is not a file: as it was encoded, or as PNG."""
    if isinstance(medium, Encoded):
        data = medium.read()
        try:
            with Image.open(io.BytesIO(data)) as image:
                return data, f".{(image.format or 'bin').lower()}"
        except OSError:  # it was decoded before, so it is a video
            return data, ".mp4"
    out = io.BytesIO()
    (medium if isinstance(medium, Image.Image) else Image.fromarray(medium)).save(out, "PNG")
    return out.getvalue(), ".png"


@contextmanager
def _whole_or_not_at_all(path: Path) -> Iterator[TextIO]:
    part = path.with_name(f"{path.name}.part{os.getpid()}")
    try:
        with part.open("w", encoding="utf-8") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
