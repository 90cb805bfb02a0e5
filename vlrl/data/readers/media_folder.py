"""A folder of media with metadata.jsonl or metadata.csv, as Hugging Face's imagefolder has it."""

from __future__ import annotations

from pathlib import Path

from vlrl.data.readers.record import Record
from vlrl.data.readers.text_files import CsvReader, JsonlReader
from vlrl.errors import DataError

VIDEO_SUFFIXES = frozenset({".mp4", ".webm", ".mkv", ".mov", ".avi", ".m4v"})


class MediaFolder:
    """Rows of the metadata file. `file_name` is the row's medium, `file_names` a list of them.

    Any other column called x_file_name is a path too, and becomes the column x.
    """

    def __init__(self, path: str) -> None:
        folder = Path(path)
        lines, table = folder / "metadata.jsonl", folder / "metadata.csv"
        if not lines.is_file() and not table.is_file():
            raise DataError(f"{folder} holds neither metadata.jsonl nor metadata.csv")
        self._rows = JsonlReader(str(lines)) if lines.is_file() else CsvReader(str(table))

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __getitem__(self, index: int) -> Record:
        """Row `index`.

        Raises:
            DataError: naming the metadata file and the line.
        """
        record = self._rows[index]
        fields = dict(record.fields)
        for column in [c for c in fields if c.endswith(("_file_name", "_file_names"))]:
            fields[column.rsplit("_file_name", 1)[0]] = fields.pop(column)
        names = fields.pop("file_names", None) or [fields.pop("file_name", None)]
        names = [name for name in names if name]
        videos = [name for name in names if Path(name).suffix.lower() in VIDEO_SUFFIXES]
        images = [name for name in names if name not in videos]
        media = {key: value for key, value in (("images", images), ("videos", videos)) if value}
        return Record({**fields, **media}, record.place, record.root)
