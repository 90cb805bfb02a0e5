"""One HTML file of what `vlrl data check` found: sources, lengths, and every row with a problem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlrl.viewer.page import write_page

MAX_ROWS = 1000
"""Rows with problems that the page lists."""


def write_check_page(path: Path, title: str, result: Mapping[str, Any]) -> None:
    """Write the page of `vlrl data check`.

    Args:
        path: the .html file, replaced whole.
        title: what was checked.
        result: of `vlrl.check.data.summary.summarise`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    bad, rows = result["num_bad"], result["num_rows"]
    verdict = f"All {rows:,} rows are good." if result["ok"] else f"{bad:,} of {rows:,} rows have a problem."
    shown = result["bad"][:MAX_ROWS]
    write_page(path, "data_check.html.j2", title=title, result=result, verdict=verdict, shown=shown)
