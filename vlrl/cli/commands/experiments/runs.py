"""`vlrl runs list|diff|tag`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.cli.shared import DebugOption, JsonOption, print_result

if TYPE_CHECKING:
    from vlrl.experiments.registry import RunRecord

app = typer.Typer(
    name="runs", help="Runs in a folder: list and sort, compare configs, tag.", no_args_is_help=True
)
FolderArgument = Annotated[Path, typer.Argument(help="Folder that runs are in.")]
SHOWN = {
    "heldout_accuracy_before": "before",
    "heldout_accuracy_after": "after",
    "reward/mean": "reward",
}
"""Numbers of the list with their headings: held-out accuracy before and after training, the last reward."""


@app.command("list")
def list_command(
    folder: FolderArgument = Path("runs"),
    best: Annotated[
        str | None,
        typer.Option(help="Sort by a metric's last value or a number of the summary, largest first."),
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only runs with this tag.")] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List runs with their results: `vlrl runs list runs --best heldout_accuracy_after`."""
    from vlrl.errors import ConfigError
    from vlrl.experiments.registry import find_runs

    found = [run for run in find_runs(folder) if tag is None or tag in run.tags]
    if best is not None:
        names = sorted({name for run in found for name in (*run.metrics, *run.summary)})
        if found and best not in names:
            raise ConfigError(f"--best {best!r}: no run has it; there are {', '.join(names)}")
        known = {run.name: value for run in found if (value := run.value(best)) is not None}
        found.sort(key=lambda run: known.get(run.name, float("-inf")), reverse=True)
    _show(found, [*dict.fromkeys([*([best] if best else []), *SHOWN])], Console(stderr=json, highlight=False))
    rows = [asdict(run) | {"folder": str(run.folder)} for run in found]
    print_result({"runs": rows}, json)


@app.command("diff")
def diff_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the options in which runs differ: `vlrl runs diff runs/a runs/b`."""
    from vlrl.experiments.registry import config_changes, read_run

    records = [read_run(folder) for folder in runs]
    changes = config_changes(runs)
    table = Table(box=None, pad_edge=False)
    for heading in ("option", *(record.name for record in records)):
        table.add_column(Text(heading))
    for key, values in changes.items():
        table.add_row(Text(key), *(Text(str(value)) for value in values))
    codes = [record.commit or "unknown" for record in records]
    if len(set(codes)) > 1:
        table.add_row(Text("(code)"), *map(Text, codes))
    Console(stderr=json, highlight=False).print(table if changes else "their configs are the same")
    print_result({"changes": changes, "commits": codes}, json)


@app.command("tag")
def tag_command(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    tags: Annotated[list[str] | None, typer.Argument(help="Words to add.")] = None,
    remove: Annotated[list[str] | None, typer.Option(help="A word to take away; may be repeated.")] = None,
    note: Annotated[str | None, typer.Option(help="Replaces the run's note.")] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Give a run tags and a note: `vlrl runs tag runs/a baseline --note "first with the new reward"`."""
    from vlrl.experiments.registry import read_run
    from vlrl.experiments.registry import tag as change

    change(run, tags or [], remove or [], note)
    record = read_run(run)
    typer.echo(f"{record.name}: {', '.join(record.tags) or 'no tags'}; {record.note or 'no note'}", err=json)
    print_result({"tags": list(record.tags), "note": record.note}, json)


def _show(runs: list[RunRecord], metrics: list[str], console: Console) -> None:
    """A row a run; a column that no run has anything for is left out."""
    columns: dict[str, list[str]] = {
        "run": [run.name for run in runs],
        "status": [run.status for run in runs],
        "steps": [f"{run.num_steps}/{run.planned_steps}" for run in runs],
        **{SHOWN.get(name, name): [_number(run.value(name)) for run in runs] for name in metrics},
        "seed": ["" if run.seed is None else str(run.seed) for run in runs],
        "started": [run.started[:16] for run in runs],
        "code": [run.commit for run in runs],
        "tags": [", ".join(run.tags) for run in runs],
    }
    shown = {heading: cells for heading, cells in columns.items() if any(cells)}
    table = Table(box=None, pad_edge=False)
    for heading in shown:
        table.add_column(heading, overflow="fold", min_width=len(heading))
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table if runs else "no runs")


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"
