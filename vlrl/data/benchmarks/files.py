"""The published files of a benchmark: which of its layouts a folder has."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from vlrl.data.readers.parquet import ParquetReader
from vlrl.data.readers.record import Concatenation, Reader
from vlrl.data.readers.text_files import JsonlReader, JsonReader
from vlrl.errors import DatasetMissing


def open_published(
    name: str, path: str, patterns: Sequence[str], *, image_root: Path | None = None, key: str | None = None
) -> Reader:
    """The records of the files that the first fitting pattern finds, in the order of their names.

    Args:
        name: of the benchmark, for errors.
        path: a folder, or one file.
        patterns: of files at any depth of the folder, from the likeliest layout on.
        image_root: folder of media that records name by path; None is `path`.
        key: of the list in a JSON file that is an object.

    Raises:
        DatasetMissing: naming the patterns, if no file fits.
    """
    files = published_files(name, path, patterns)
    root = str(image_root or (Path(path) if Path(path).is_dir() else Path(path).parent))
    if files[0].suffix == ".parquet":
        names = ",".join(map(str, files))
        return ParquetReader(str(files[0]) if len(files) == 1 else f"{{{names}}}", root)
    readers: list[Reader] = [
        JsonlReader(str(file), root) if file.suffix == ".jsonl" else JsonReader(str(file), root, key)
        for file in files
    ]
    return readers[0] if len(readers) == 1 else Concatenation(readers)


def published_files(name: str, path: str, patterns: Sequence[str]) -> list[Path]:
    """The files of the first pattern that finds any; `path` itself if it is a file.

    Raises:
        DatasetMissing: naming the patterns, if none does.
    """
    if Path(path).is_file():
        return [Path(path)]
    for pattern in patterns:
        found = glob.glob(f"{glob.escape(path)}/**/{pattern}", recursive=True)
        if files := sorted(Path(file) for file in found if Path(file).is_file()):
            return files
    what = "holds none of" if Path(path).is_dir() else "does not exist; it would hold"
    raise DatasetMissing(
        f"{name}: {path} {what} {', '.join(patterns)} (docs/benchmark_sets.md says which files belong there)"
    )
