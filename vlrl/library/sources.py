"""Rows as Python objects: lists, datasets, and episodes of an environment."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from vlrl.config.data import DatasetConfig
from vlrl.errors import ConfigError
from vlrl.protocols import Dataset

Source: TypeAlias = (
    Sequence[Mapping[str, Any]]
    | Dataset
    | str
    | Path
    | Callable[..., Any]
    | Mapping[str, Any]
    | DatasetConfig
)
"""Rows: a list of them, a pandas table, an object with `__len__` and `__getitem__`, a file, a registered
name, a class that makes a dataset, or a source of the config (`name` with options, columns, template and so
on), whose name may be any of these."""

PNG_MODES = ("1", "L", "LA", "P", "RGB", "RGBA")
PNG_LEVEL = 2
"""Of zlib: quick, and a sixth larger than the default makes a photograph."""


class RowList:
    """Rows that a program holds, in the form of a registered dataset: calling it gives the dataset.

    Workers get a copy (`vlrl.registry.objects`), so images are kept as PNGs, which are smaller than pixels.
    """

    __name__ = "rows"

    def __init__(self, rows: Sequence[Mapping[str, Any]] | Dataset) -> None:
        """Take rows of any layout that docs/data.md lists.

        Args:
            rows: a list, whose PIL images are encoded here and decoded when a row is read; or a dataset,
                which is left as it is.
        """
        self._is_list = isinstance(rows, list | tuple)
        self._rows: Any = _each(_encoded, rows) if self._is_list else rows

    def __call__(self) -> RowList:
        """The dataset that it is."""
        return self

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._rows)

    def __getitem__(self, index: int) -> Mapping[str, Any]:
        """Row `index`, with its number as `id` if it has none."""
        row = _each(_decoded, self._rows[index]) if self._is_list else self._rows[index]
        return {"id": f"row {index}", **row} if isinstance(row, Mapping) else row


def source_of(rows: Source) -> dict[str, Any]:
    """A source of the config for rows.

    Raises:
        ConfigError: for what are no rows.
    """
    if isinstance(rows, DatasetConfig):
        return {key: getattr(rows, key) for key in rows.model_fields_set}
    if isinstance(rows, Mapping):
        if "name" not in rows:
            raise ConfigError(
                f"rows are one mapping, with {', '.join(map(str, rows))}; give a list of mappings"
            )
        return {**rows, "name": _name(rows["name"])}
    return {"name": _name(rows)}


def episodes(
    env: str | Callable[..., Any],
    *,
    num_rows: int = 4096,
    options: Mapping[str, Any] | None = None,
    tasks: Sequence[Mapping[str, Any]] = ({},),
    split: str = "train",
    demonstrations: bool = False,
) -> dict[str, Any]:
    """Rows that are episodes of an environment, rewarded by what it pays.

    Args:
        env: a registered name, ./file.py:Class, or the class itself.
        num_rows: episodes, each of its own seed.
        options: the environment's own.
        tasks: given to its `reset` in turn.
        split: "train" or "heldout", which share no seed.
        demonstrations: whole episodes as the environment's oracle plays them, for `SFT`.
    """
    given = {"env": env, "options": dict(options or {}), "num_rows": num_rows, "tasks": list(tasks)}
    chosen = {**given, "split": split, "demonstrations": demonstrations}
    return {"name": "env", "options": chosen, "rewards": ["episode_return"]}


def _name(rows: Any) -> Any:
    if isinstance(rows, str | Path):
        return str(rows)
    if callable(rows):
        return rows
    if hasattr(rows, "iterrows"):  # a pandas table, whose items are columns
        rows = rows.to_dict("records")
    if hasattr(rows, "__len__") and hasattr(rows, "__getitem__"):
        if len(rows) == 0:
            raise ConfigError("rows are empty; give at least one")
        return RowList(rows)
    raise ConfigError(
        f"rows are a {type(rows).__name__}; give a list of mappings, an object with __len__ and __getitem__, "
        "or the name of a file or dataset"
    )


@dataclass(frozen=True, slots=True)
class _Png:
    """An image of a row, encoded."""

    data: bytes


def _encoded(value: Any) -> Any:
    """A PNG in the place of a PIL image; of another mode than PNG has, the image stays."""
    from PIL import Image, ImageOps

    if not isinstance(value, Image.Image) or value.mode not in PNG_MODES:
        return value
    file = io.BytesIO()
    ImageOps.exif_transpose(value).save(file, "PNG", compress_level=PNG_LEVEL)
    return _Png(file.getvalue())


def _decoded(value: Any) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(value.data)) if isinstance(value, _Png) else value


def _each(change: Callable[[Any], Any], value: Any) -> Any:
    """A row, or a part of one, with every value in it changed."""
    if isinstance(value, Mapping):
        return {key: _each(change, item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_each(change, item) for item in value)
    return change(value)
