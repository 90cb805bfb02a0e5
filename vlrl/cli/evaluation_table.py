"""The table of `vlrl eval`: sets, their categories and the whole, a line a measure with its interval."""

from __future__ import annotations

import math

from rich.table import Table
from rich.text import Text

from vlrl.evaluation.result import Evaluation

WHOLE = "all"
OF_PARTS = ("episode/num_turns", "episode/invalid_fraction")
"""Numbers of episodes that every part has a line for; the whole has one for each."""
HEADINGS = ("", "rows", "measure", "mean", "95 % interval")


def evaluation_table(result: Evaluation) -> Table:
    """Each part, a set's categories below it, and last the whole."""
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading in ("rows", "mean") else "left", no_wrap=True)
    for part, evaluation in {**result.parts, WHOLE: result}.items():
        name, num_samples = _name(part), str(evaluation.num_samples)
        for measure, found in evaluation.estimates().items():
            if measure.startswith("episode/") and part != WHOLE and measure not in OF_PARTS:
                continue
            interval = "" if math.isnan(found.low) else f"{found.low:.3f} to {found.high:.3f}"
            mean = f"{found.value:.3f}" if found.num_rows else "none scored"
            table.add_row(Text(name), num_samples, measure, mean, interval)
            name = num_samples = ""
    return table


def _name(part: str) -> str:
    """A set by its name, its categories indented."""
    if not part.startswith("set="):
        return part
    name, _, category = part.removeprefix("set=").partition("/")
    return f"  {category}" if category else name
