"""A reward's result for a terminal: a table of checks, and the completions that explain it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.check.rewards.result import verdict

MARKS = {"ok": ("✓", "green"), "warn": ("!", "yellow"), "fail": ("✗", "red"), "info": ("·", "dim")}
MAX_SHOWN = 6
"""Completions printed for a check; --json and --html have more."""


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print a result; what completions and exceptions say is text, never markup."""
    head = f"{result['reward']}  {result['data']}, {result['num_samples']} samples"
    console.print(Text(head, style="bold"), soft_wrap=True)
    show_checks(result["checks"], console)
    for check in result["checks"]:
        if check["status"] == "fail":
            _findings(check, console)
    show_verdict(result["ok"], verdict(result), console)


def show_checks(checks: Sequence[Mapping[str, Any]], console: Console, num_findings: int = 0) -> None:
    """Print one line a check, and under it the first so many lines of what it rests on."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column("mark", no_wrap=True)
    table.add_column("check", no_wrap=True)
    table.add_column("found", overflow="fold")
    for check in checks:
        mark, style = MARKS[check["status"]]
        table.add_row(Text(mark, style), Text(check["name"], "bold"), Text(check["found"]))
        for finding in check["findings"][:num_findings]:
            table.add_row("", "", Text(f"  {finding}", "dim"))
        if num_findings and (left := len(check["findings"]) - num_findings) > 0:
            table.add_row("", "", Text(f"  and {left} more: --json has them", "dim"))
    console.print(table)


def show_verdict(is_ok: bool, words: str, console: Console) -> None:
    """Print the last line: whether all is well, in a sentence."""
    mark, style = MARKS["ok" if is_ok else "fail"]
    console.print(Text.assemble((f"{mark} ", style), (words, "bold")), soft_wrap=True)


def _findings(check: Mapping[str, Any], console: Console) -> None:
    console.print(Text(f"\n{check['name']}", style="bold red"))
    # One of each family: "two answers, right one last" stands for "two answers, right one first".
    families = {finding["case"].partition(",")[0]: finding for finding in check["findings"][::-1]}
    shown = [f for f in check["findings"] if families[f["case"].partition(",")[0]] is f][:MAX_SHOWN]
    for finding in shown:
        score = "" if finding["score"] is None else f"{finding['score']:g}"
        right = "" if finding["right"] is None else f" (right answer {finding['right']:g})"
        text = " ".join(finding["completion"].split())
        console.print(
            Text.assemble(
                ("  ✗ ", "red"),
                (finding["case"], "bold"),
                f"  {score}{right if score else ''}  {finding['why']}",
            ),
            soft_wrap=True,
        )
        console.print(
            Text(f"      {_samples(finding)}: {text[:160] or '(empty)'}", style="dim"), soft_wrap=True
        )
        if trace := finding["trace"].strip().splitlines()[-3:-1]:
            console.print(
                Text("      " + "  ".join(line.strip() for line in trace), style="dim"), soft_wrap=True
            )
    left = len(check["findings"]) - len(shown)
    if left > 0:
        console.print(f"    and {left} more: --html FILE or --json has them", style="dim")


def _samples(finding: Mapping[str, Any]) -> str:
    more = finding["num_samples"] - 1
    return f"sample {finding['sample']}" + (f" and {more} more" if more else "")
