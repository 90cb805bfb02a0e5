"""Lists and descriptions of rewards for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text


def show_list(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print one line a reward."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("reward", "range"):
        table.add_column(name, no_wrap=True)
    table.add_column("wants")
    table.add_column("purpose", ratio=1)
    for row in rows:
        if "problem" in row:
            table.add_row(Text(row["name"]), "", "", Text(row["problem"], style="red"))
            continue
        label = Text(row["name"]) if row["built_in"] else Text.assemble(row["name"], (" +", "cyan"))
        table.add_row(label, _range(row), Text(_wants(row)), Text(row["purpose"]))
    console.print(table)
    if any(not row["built_in"] for row in rows):
        console.print(Text("+ from an installed package", style="dim"))
    console.print(Text("vlrl reward show NAME says more; a file's function is ./file.py:name", style="dim"))


def show_one(row: Mapping[str, Any], console: Console) -> None:
    """Print all that is known of a reward."""
    console.print(Text.assemble((row["name"], "bold"), ("   " + row["place"], "dim")), soft_wrap=True)
    console.print(Syntax(row["signature"], "python", background_color="default"))
    first, _, rest = row["doc"].partition("\n\n")
    console.print(Text(f"\n{first}", style="bold"))
    if rest:
        console.print(Text(f"\n{rest}"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    better = "" if row["higher_is_better"] else ", lower is better"
    table.add_row(Text("range", "dim"), Text((_range(row) or "not declared") + better))
    table.add_row(Text("runs", "dim"), Text(row["runs"]))
    if wants := _wants(row):
        table.add_row(Text("wants", "dim"), Text(wants))
    for index, (name, default) in enumerate(row["options"].items()):
        table.add_row(Text("options" if not index else "", "dim"), Text(f"{name} = {default}"))
    console.print()
    console.print(table)
    console.print()
    console.print(Syntax(row["config"], "yaml", background_color="default"))


def _range(row: Mapping[str, Any]) -> str:
    return "[{:g}, {:g}]".format(*row["range"]) if row["range"] else ""


def _wants(row: Mapping[str, Any]) -> str:
    """Context names, and what of the row's metadata it cannot do without."""
    needed = [f"{name} (metadata)" for name in row["needs"]]
    required = [f"{name}=…" for name, default in row["options"].items() if default == "required"]
    return ", ".join([*row["wants"], *needed, *required])
