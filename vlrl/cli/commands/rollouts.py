"""`vlrl rollouts`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from vlrl.cli.shared import DebugOption, JsonOption, print_result
from vlrl.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

SHOWN = {
    "step": "step",
    "sample_id": "sample",
    "group_index": "#",
    "outcome": "outcome",
    "reward": "reward",
    "advantage": "advantage",
    "num_generated_tokens": "tokens",
}
"""Columns of the list with their headings, before the completion."""


def command(
    run_dir: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    where: Annotated[
        str | None,
        typer.Option(help="What must hold, as pandas reads it: 'reward < 0.1 and step > 50'."),
    ] = None,
    sort: Annotated[
        str | None, typer.Option(help="Column to sort by; --sort=-reward puts the largest first.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most rollouts that are listed.")] = 20,
    export: Annotated[
        Path | None,
        typer.Option(help="Write all that fit, whole, to this .parquet or .jsonl file.", dir_okay=False),
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List rollouts of training, or export them: `vlrl rollouts runs/x --where "reward < 0.1 and step > 50"`.

    Columns are those of docs/rollouts.md with one value a rollout; part_NAME is a part of the reward,
    info_NAME a number of the environment.
    """
    from vlrl.tracking.rollouts.select import select

    if export is not None and export.suffix not in (".parquet", ".jsonl"):
        raise ConfigError(f"--export {export}: a .parquet or a .jsonl file can be written")
    chosen = select(run_dir, where, sort)
    listed = chosen.head(limit)
    console = Console(stderr=json, highlight=False)
    _show(listed, console)
    console.print(f"{len(chosen)} rollouts" + (f", the first {limit} listed" if len(chosen) > limit else ""))
    if export is not None:
        _export(chosen, run_dir, export)
        console.print(f"written: {export}", soft_wrap=True)
    kept = listed.drop(columns=["file", "row"]).astype(object)
    rows = kept.where(kept.notna(), None).to_dict("records")
    result: dict[str, Any] = {"num_rollouts": len(chosen), "rollouts": rows}
    print_result(result | ({"export": str(export)} if export else {}), json)


def _show(rows: pd.DataFrame, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    for column, heading in SHOWN.items():
        justify: JustifyMethod = "left" if column in ("sample_id", "outcome") else "right"
        table.add_column(heading, justify=justify, no_wrap=True, min_width=max(2, len(heading)))
    table.add_column("completion", overflow="ellipsis", no_wrap=True, ratio=1)
    for row in rows.to_dict("records"):
        cells = [Text(_shown(row[column])) for column in SHOWN]
        table.add_row(*cells, Text(repr(row["completion"])[1:-1]))
    console.print(table)


def _shown(value: Any) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _export(chosen: pd.DataFrame, run_dir: Path, file: Path) -> None:
    """Write them with the whole paths of their images, so that the file may lie anywhere."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from vlrl.tracking.rollouts.read import record_of
    from vlrl.tracking.rollouts.records import write_rollouts
    from vlrl.tracking.rollouts.select import whole_rows
    from vlrl.tracking.rollouts.table import SCHEMA

    rows = whole_rows(chosen).to_pylist()
    for row in rows:
        for medium in row["media"]:
            medium["path"] = str(run_dir.resolve() / medium["path"])
    if file.suffix == ".parquet":
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, SCHEMA), file, compression="zstd")
    else:
        write_rollouts(file, [record_of(row) for row in rows], [])
