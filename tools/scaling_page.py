"""Write the tables of docs/scaling.md from its commands, after a change to a step's parts or their rates.

A table belongs to the commands before it, row by row; of a comparison only the last two columns are written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from vlrl.cli.app import app
from vlrl.plan.rates import all_rates
from vlrl.plan.step_time import PARTS

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scaling.md"
COMMAND = re.compile(r"^ {4}vlrl ((?:.*\\\n)*.*)$", re.MULTILINE)
TABLE = re.compile(r"^(\|.*\n\|[-|]+\|\n)((?:\|.*\n)*)", re.MULTILINE)
RATES = "| rate | value | from |"

Planned = Callable[[str], Mapping[str, Any]]


def plan(command: str) -> Mapping[str, Any]:
    """What `vlrl COMMAND --json` answers.

    Raises:
        SystemExit: if it fails, or does not fit.
    """
    here = Path.cwd()
    os.chdir(ROOT)  # configs are named from there
    try:
        result = CliRunner().invoke(app, [*shlex.split(command.replace("\\\n", " ")), "--json"])
    finally:
        os.chdir(here)
    if result.exit_code:
        raise SystemExit(f"vlrl {command}\n{result.output}\n{result.exception or ''}")
    return dict(json.loads(result.stdout.strip().splitlines()[-1]))


def rewritten(page: str, planned: Planned = plan) -> str:
    """The page with every table made again."""

    def replaced(table: re.Match[str]) -> str:
        before = page[: table.start()]
        commands = COMMAND.findall(before[before.rfind("\n|") + 1 :])  # since the table before
        rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2].splitlines()]
        if table[1].startswith(RATES):
            rows = _rates()
        elif len(commands) == len(rows):
            rows = [_row(row, planned(command)) for row, command in zip(rows, commands, strict=True)]
        return table[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)

    return TABLE.sub(replaced, page)


def _row(cells: list[str], found: Mapping[str, Any]) -> list[str]:
    step = found["step"]
    if cells[0].isdigit():
        share = step[step["bottleneck"]] / step["total"]
        parts = [_seconds(step[part]) for part in PARTS]
        return [
            str(found["num_gpus"]),
            *parts,
            f"**{_seconds(step['total'])}**",
            f"{step['bottleneck']}, {share:.0%}",
        ]
    what, published, *_ = cells
    part = what.split()[-1]
    value = step["total" if part == "step" else part]
    return [what, published, f"{_seconds(value)} s", f"{value / float(published.removesuffix(' s')):.2f}"]


def _rates() -> list[list[str]]:
    return [
        [f"`{name}`", f"{rate.value:.3g} {rate.unit}", f"{'**measured**: ' * rate.measured}{rate.source}"]
        for name, rate in all_rates().items()
    ]


def _seconds(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


if __name__ == "__main__":
    PAGE.write_text(rewritten(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
