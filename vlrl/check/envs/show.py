"""Environments' lists, verdicts and figures for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.check.envs.run import verdict
from vlrl.check.rewards.show import MARKS, show_checks, show_verdict

MAX_SHOWN = 6
"""Lines printed of what a check rests on; --json has all."""


def show_list(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print one line an environment."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("environment", no_wrap=True)
    table.add_column("kind", no_wrap=True)
    table.add_column("purpose", ratio=1)
    for row in rows:
        if "problem" in row:
            table.add_row(Text(row["name"]), "", Text(row["problem"], style="red"))
            continue
        label = Text(row["name"]) if row["built_in"] else Text.assemble(row["name"], (" +", "cyan"))
        table.add_row(label, Text(row["kind"], "dim"), Text(row["purpose"]))
    console.print(table)
    if any(not row["built_in"] for row in rows):
        console.print(Text("+ from an installed package", style="dim"))
    console.print(Text("vlrl env play NAME opens it in a browser; a file's is ./file.py:Class", style="dim"))


def show_check(result: Mapping[str, Any], console: Console) -> None:
    """Print the verdict table; what environments say is text, never markup."""
    options = "  ".join(f"{name}={value}" for name, value in result["options"].items())
    console.print(Text.assemble((result["env"], "bold"), f"  {options}"), soft_wrap=True)
    show_checks(result["checks"], console, MAX_SHOWN)
    show_verdict(result["ok"], verdict(result), console)


def show_replay(result: Mapping[str, Any], console: Console) -> None:
    """Print the episodes that differ or were not played, and the count of all."""
    for episode in result["episodes"]:
        where = Text.assemble((episode["id"], "bold"), (f"  {episode['file']}", "dim"))
        if episode["skipped"]:
            console.print(Text("· ", "dim"), where, Text(f"skipped: {episode['skipped']}"), soft_wrap=True)
        elif not episode["is_same"]:
            mark, style = MARKS["fail"]
            console.print(Text(f"{mark} ", style), where, soft_wrap=True)
            for name in ("rewards", "pixels", "problem"):
                if episode[name] not in ("", "same"):
                    console.print(Text(f"    {name}: {episode[name]}"), soft_wrap=True)
    unseen = sum(episode["pixels"] == "not recorded" for episode in result["episodes"])
    found = f"{result['num_same']} of {result['num_episodes']} episodes earn and show the same again"
    found += f", {result['num_skipped']} skipped" if result["num_skipped"] else ""
    found += f"; of {unseen} the pixels were not recorded" if unseen else ""
    show_verdict(result["ok"], found, console)


def show_bench(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print one line an environment."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("environment", overflow="fold")
    for name in ("steps/s", "resets/s", "p50 ms", "p99 ms", "observation", "kB"):
        table.add_column(name, justify="right", min_width=len(name))
    for row in rows:
        table.add_row(
            Text(row["env"]),
            f"{row['steps_per_second']:,.0f}",
            f"{row['resets_per_second']:,.0f}",
            f"{row['step_ms_p50']:.3f}",
            f"{row['step_ms_p99']:.3f}",
            Text(", ".join(row["observation"]) or "text"),
            f"{row['observation_bytes'] / 1000:,.0f}",
        )
    console.print(table)
    console.print(Text("one environment, one thread; the policy's own time is left out", style="dim"))
