"""Which reader a source's name asks for."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from vlrl.config.data import DatasetConfig
from vlrl.config.options import RewardConfig
from vlrl.data.readers.files import expand
from vlrl.data.readers.record import Concatenation, StreamReader
from vlrl.data.readers.text_files import holds_lines
from vlrl.data.rows import RowMaker, Rows, StreamedRows
from vlrl.data.shapes.detect import COLUMNS
from vlrl.data.templates import PromptTemplate
from vlrl.errors import ConfigError, DataError
from vlrl.registry import available, resolve
from vlrl.registry.objects import label_of

BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".yaml": "listing",
    ".yml": "listing",
    ".parquet": "parquet",
    ".tar": "webdataset",
}
"""End of a file's name → registered reader."""

BY_CONTENT = (
    (("dataset_info.json", "dataset_dict.json"), "saved_dataset"),
    (("metadata.jsonl", "metadata.csv"), "media_folder"),
)
"""Files by which a folder's format is recognised → registered reader."""

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def open_dataset(config: DatasetConfig, section: str) -> Rows:
    """Open a source whose rows can be had by number.

    Args:
        config: the source. A file or folder needs no registration: its name and content decide the reader.
        section: its dotted key, for errors.

    Raises:
        ConfigError: for an unknown name or a wrong option, or if the source can only be streamed.
        DataError: for a missing or empty source, or a first row that no shape fits.
    """
    rows = open_source(config, section)
    if isinstance(rows, StreamedRows):
        raise ConfigError(
            f"{section}: {config.name!r} is streamed, so its rows have no numbers; set streaming: false"
        )
    return rows


def open_source(config: DatasetConfig, section: str) -> Rows | StreamedRows:
    """Open a source, streamed or not; arguments and errors as for `open_dataset`."""
    maker = RowMaker(
        shape=config.shape,
        columns=_known_columns(config, section),
        template=None if config.template is None else PromptTemplate(config.template, f"{section}.template"),
        system=config.system,
    )
    reader = _open_reader(config, section)
    if is_stream(reader):
        return StreamedRows(reader, maker, config.limit)
    if not (hasattr(reader, "__len__") and hasattr(reader, "__getitem__")):
        raise ConfigError(f"{section}: dataset {config.name!r} needs __len__ and __getitem__")
    rows = Rows(reader, maker, Path(label_of(config.name)).name, config.limit)
    if len(rows) == 0:
        raise DataError(f"{section}: dataset {config.name!r} is empty; training needs at least one row")
    return rows


def with_rewards(
    config: DatasetConfig, rows: Rows | StreamedRows, others: Sequence[RewardConfig] = ()
) -> DatasetConfig:
    """The source with the scorer of its benchmark, where neither it nor `others` names a reward."""
    if config.rewards or others or not rows.rewards:
        return config
    return config.model_copy(update={"rewards": list(rows.rewards)})


def reader_kind(name: str) -> str | None:
    """The registered reader that a path or hub name asks for; None if it is neither.

    Raises:
        DataError: for a folder that holds nothing known.
    """
    if Path(name).is_dir():
        return _folder_kind(Path(name))
    suffix = Path(name).suffix.lower()
    if suffix in BY_SUFFIX:
        lines = suffix == ".json" and Path(name).is_file() and holds_lines(Path(name))
        return "jsonl" if lines else BY_SUFFIX[suffix]
    if Path(name).is_file():
        raise DataError(
            f"dataset file {name} ends in none of {', '.join(BY_SUFFIX)}; "
            "unpack it if it is compressed, or name the reader and give options.path"
        )
    return "hub" if HUB_NAME.fullmatch(name) else None


def _folder_kind(folder: Path) -> str:
    for names, kind in BY_CONTENT:
        if any((folder / name).is_file() for name in names):
            return kind
    for suffix in (".parquet", ".tar"):
        if next(folder.rglob(f"*{suffix}"), None):
            return BY_SUFFIX[suffix]
    raise DataError(
        f"dataset folder {folder} holds no known format: .parquet or .tar files, metadata.jsonl or "
        "metadata.csv beside images, or a dataset saved by Hugging Face datasets; name a .json, .jsonl or "
        ".csv file itself"
    )


def is_stream(reader: Any) -> TypeGuard[StreamReader]:
    """True for a reader whose records come one after the other."""
    return hasattr(reader, "records")


def _open_reader(config: DatasetConfig, section: str) -> Any:
    name = config.name
    if ".py:" in name or name in available("datasets"):
        return _construct(resolve("datasets", name), config, section)
    kind = reader_kind(name)
    if kind is None:
        return _construct(resolve("datasets", name), config, section)  # says which name is nearest
    factory = resolve("datasets", kind)
    if kind in ("jsonl", "json", "csv"):
        readers = [_construct(factory, config, section, path=str(path)) for path in expand(name)]
        return readers[0] if len(readers) == 1 else Concatenation(readers)
    return _construct(factory, config, section, path=name)


def _construct(factory: Callable[..., Any], config: DatasetConfig, section: str, **path: str) -> Any:
    try:
        arguments = inspect.signature(factory).bind(**path, **config.options)
    except TypeError as error:
        raise ConfigError(f"{section}.options does not fit {config.name!r}: {error}") from error
    return factory(*arguments.args, **arguments.kwargs)


def _known_columns(config: DatasetConfig, section: str) -> dict[str, str]:
    """The column mapping; a stranger's shape may look for columns of any name, ours do not."""
    if ".py:" not in config.shape and config.shape in ("auto", *available("shapes")):
        for field in config.columns.keys() - COLUMNS:
            near = difflib.get_close_matches(field, COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(COLUMNS))}"
            raise ConfigError(f"{section}.columns: no field is named {field!r}; {hint}")
    return config.columns
