"""What a re-scored run looks like in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

MAX_ROWS = 10


def show_rescored(result: Mapping[str, Any], console: Console) -> None:
    """Print old and new, and the rows that change most; completions are text, never markup."""
    console.print(Text(f"{result['reward']} on {result['file']}", style="bold"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "old", "new"):
        table.add_column(name, justify="right" if name else "left")
    table.add_row("mean", _number(result["old_mean"]), _number(result["new_mean"]))
    console.print(table)
    correlation = result["correlation"]
    words = "one of them does not vary" if correlation is None else f"{correlation:.3f}"
    console.print(Text(f"old is {result['old']}; correlation {words}"), soft_wrap=True)
    console.print(
        Text(
            f"{result['num_changed']:,} of {result['num_compared']:,} completions change, "
            f"{result['num_pairs_turned']:,} pairs of a group change their order"
        ),
        soft_wrap=True,
    )
    for row in result["changed"][:MAX_ROWS]:
        head = f"  {row['old']:.3g} → {row['new']:.3g}  "
        console.print(
            Text.assemble((head, "bold"), f"{row['sample']}, answer {row['answer']}"), soft_wrap=True
        )
        console.print(Text("      " + " ".join(row["completion"].split()), style="dim"), soft_wrap=True)
    for row in result["failed"][:MAX_ROWS]:
        console.print(
            Text.assemble(("  ✗ ", "red"), (row["sample"], "bold"), f"  {row['why']}"), soft_wrap=True
        )
    if result["num_failed"]:
        console.print(Text(f"✗ {result['num_failed']:,} completions cannot be scored", style="red"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"
