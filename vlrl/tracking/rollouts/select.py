"""Rollouts of training chosen by what is known of them: a table for pandas, and the chosen rows whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vlrl.errors import ConfigError, DataError
from vlrl.tracking.rollouts.paths import train_files
from vlrl.tracking.rollouts.table import SCHEMA

if TYPE_CHECKING:
    import pandas as pd

FLAT = [field.name for field in SCHEMA if not pa.types.is_nested(field.type)]
"""Columns with one value a rollout."""
NUMBERS = {"parts": "part_", "info": "info_"}
"""Columns of named numbers, and how the name of each number's own column begins."""


def overview(run_dir: Path) -> pd.DataFrame:
    """All rollouts that are kept, a row each: FLAT, a column for each part of the reward and number of info.

    Further columns are `file`, and `row` in it.

    Raises:
        DataError: if none are kept.
    """
    import pandas as pd

    frames = []
    for file in train_files(run_dir).values():
        table = pq.read_table(file, columns=[*FLAT, *NUMBERS])
        frame = table.select(FLAT).to_pandas()
        for column, prefix in NUMBERS.items():
            frame = frame.assign(**_named_columns(table.column(column), prefix))
        frames.append(frame.assign(file=str(file), row=range(len(frame))))
    if not frames:
        raise DataError(
            f"{run_dir} has no rollouts of training: is it a run's folder, and was logging.rollouts.every "
            "above 0?"
        )
    return pd.concat(frames, ignore_index=True)


def select(
    run_dir: Path, where: str | None = None, sort: str | None = None, limit: int | None = None
) -> pd.DataFrame:
    """The rows of `overview` that fit.

    Args:
        run_dir: the run's folder.
        where: what must hold, as `pandas.DataFrame.query` reads it: "reward < 0.1 and step > 50".
        sort: column, smallest first; with - before it largest first.
        limit: most rows.

    Raises:
        ConfigError: for a condition or a column that cannot be read.
        DataError: if no rollouts are kept.
    """
    frame = overview(run_dir)
    columns = ", ".join(column for column in frame.columns if column not in ("file", "row"))
    if where is not None:
        try:
            frame = frame.query(where, engine="python")
        except Exception as error:  # whatever pandas, or Python's parser, says of a wrong expression
            raise ConfigError(f"--where {where!r}: {error}; the columns are {columns}") from error
    if sort is not None:
        column = sort.removeprefix("-")
        if column not in frame.columns:
            raise ConfigError(f"--sort {sort!r}: there is no such column; the columns are {columns}")
        frame = frame.sort_values(column, ascending=not sort.startswith("-"), kind="stable")
    return frame.head(limit) if limit is not None else frame


def whole_rows(chosen: pd.DataFrame) -> pa.Table:
    """The rollouts of some rows of `overview` with all their columns, in that order."""
    tables = list[pa.Table]()
    order = list[tuple[str, int]]()
    for file, of_file in chosen.groupby("file", sort=False):
        rows = of_file["row"].tolist()
        tables.append(pq.read_table(file).take(pa.array(rows)))
        order += [(str(file), row) for row in rows]
    if not tables:
        return SCHEMA.empty_table()
    place = {each: index for index, each in enumerate(order)}
    wanted = zip(chosen["file"], chosen["row"].tolist(), strict=True)
    return pa.concat_tables(tables).take(pa.array([place[each] for each in wanted]))


def _named_columns(column: pa.ChunkedArray, prefix: str) -> dict[str, Sequence[Any]]:
    """A list of (name, value) a row as a column for each name."""
    lists = column.combine_chunks()
    parents = pc.list_parent_indices(lists).to_pylist()
    flat = lists.flatten()
    found: dict[str, list[Any]] = {}
    for parent, name, value in zip(
        parents, flat.field("name").to_pylist(), flat.field("value").to_pylist(), strict=True
    ):
        found.setdefault(prefix + name, [None] * len(lists))[parent] = value
    return dict(found)
