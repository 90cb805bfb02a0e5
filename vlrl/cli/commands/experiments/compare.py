"""`vlrl compare`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.cli.shared import DebugOption, JsonOption, print_result

ALPHA = 0.05


def command(
    a: Annotated[Path, typer.Argument(help="A run's folder.", metavar="A")],
    b: Annotated[Path, typer.Argument(help="Another one's.", metavar="B")],
    value: Annotated[
        Literal["accuracy", "reward"], typer.Option(help="The first reward, or the total.")
    ] = "accuracy",
    step: Annotated[
        int | None, typer.Option(min=0, help="Weight updates before the evaluation; by default the last one.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page here: the rows that B won and lost, with images.")
    ] = None,
    json: JsonOption = False,
    debug: DebugOption = False,
) -> None:
    """Compare two runs on the held-out rows that both answered: `vlrl compare runs/a runs/b`.

    A and B may also be folders of `vlrl eval --out`. The interval is a paired bootstrap's, the p-value that
    of flipping the signs of the rows' differences; sets and categories are compared too, below the whole.
    """
    if report is not None and step is not None:
        raise typer.BadParameter("the page shows the last evaluation; leave out --step or --report")
    from vlrl.experiments.compare import compare_runs, paired_rows

    rows = paired_rows(a, b, value, step)
    found = compare_runs(rows)
    table = Table(box=None, pad_edge=False)
    for heading in ("", "rows", "A", "B", "B - A", "95 % interval", "p", "B better", "B worse"):
        table.add_column(heading, justify="left" if not heading else "right")
    for each in found:
        table.add_row(
            f"{each.how} {each.part}".strip(),
            str(each.num_rows),
            f"{each.mean_a:.4f}",
            f"{each.mean_b:.4f}",
            f"{each.difference:+.4f}",
            f"{each.low:+.4f} to {each.high:+.4f}",
            f"{each.p_value:.4f}",
            str(each.num_better),
            str(each.num_worse),
        )
    console = Console(stderr=json, highlight=False)
    console.print(Text(f"A: {a}\nB: {b}"))
    console.print(table)
    for each in [each for each in found if not each.part]:
        better = "B" if each.difference > 0 else "A"
        words = f"{better} is better" if each.p_value < ALPHA else "the difference may be chance"
        console.print(f"{each.how}: {words} (p = {each.p_value:.3g})")
    if report is not None:
        from vlrl.viewer.pages.comparison import write_comparison

        write_comparison(report, a, b, rows, found)
        console.print(Text(f"the rows side by side: {report}"))
    print_result({"comparisons": [asdict(each) for each in found]}, json)
