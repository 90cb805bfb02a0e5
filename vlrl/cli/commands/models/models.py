"""`vlrl models list|show`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.cli.shared import DebugOption, JsonOption, print_result

app = typer.Typer(
    name="models", help="Exported models: list them, show where one comes from.", no_args_is_help=True
)


@app.command("list")
def list_command(
    folder: Annotated[Path, typer.Argument(help="Folder that models were exported to.")] = Path("exports"),
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """List exported models with base, run, step, held-out accuracy and parent: `vlrl models list models`."""
    from vlrl.export.models import find_models

    found = find_models(folder)
    table = Table(box=None, pad_edge=False)
    for heading in ("model", "step", "accuracy", "parent", "base", "run", "kind"):
        table.add_column(heading, overflow="fold", min_width=len(heading))
    for model in found:
        accuracy = "" if model.accuracy is None else f"{model.accuracy:.3f}"
        parent = model.parent_export or model.parent
        cells = (model.name, str(model.step), accuracy, parent, model.base, Path(model.run).name, model.kind)
        table.add_row(*map(Text, cells))
    Console(stderr=json, highlight=False).print(table if found else f"no exported models in {folder}")
    print_result({"models": [asdict(model) | {"folder": str(model.folder)} for model in found]}, json)


@app.command("show")
def show_command(
    model: Annotated[Path, typer.Argument(help="An exported folder.")],
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Show the runs and models that a model comes from, to its base: `vlrl models show models/digits`."""
    from vlrl.export.models import ancestry_lines, show_model

    said = show_model(model)
    for line in ancestry_lines(said):
        typer.echo(line, err=json)
    for row in said["evaluation"]:
        where = f"step {row['step']}, {row['how']}, {row['num_rows']} rows"
        typer.echo(f"held-out accuracy {row['accuracy']:.3f} ({where})", err=json)
    for source in said["data"]:
        typer.echo(
            f"data {source['name']} ({source['split']}): {source.get('fingerprint', 'streamed')}", err=json
        )
    print_result(said, json)
