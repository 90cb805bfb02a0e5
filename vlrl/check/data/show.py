"""A check's result for people: table, histogram, bad rows, verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vlrl.tracking.console import duration

MAX_BAD_ROWS = 20
"""Bad rows printed; --json has them all."""

MAX_NAME = 28
"""Characters of a source's name in the table; --json has all of them."""

TIMES = "\N{MULTIPLICATION SIGN}"
MEDIA = ("images", "videos", "audios")
NOTHING = "\N{EN DASH}"
BLOCKS = " ▏▎▍▌▋▊▉█"
"""Eighths of a character cell, for bars."""


def show(result: Mapping[str, Any], console: Console) -> None:
    """Print a result of `vlrl.check.data.summary.summarise`; what rows say is text, never markup."""
    console.print(_table(result["sources"]))
    for note in result["notes"]:
        console.print(Text.assemble(("note: ", "yellow"), note), soft_wrap=True)
    if result["token_histogram"]:
        console.print(_histogram(result["token_histogram"], result["token_limit"], console.width))
    if result["nulls"]:
        console.print(_nulls(result["nulls"]))
    if any(source["bad_by_reason"] for source in result["sources"]):
        console.print(_reasons(result["sources"]))
    for row in result["bad"][:MAX_BAD_ROWS]:
        console.print(_bad_row(row), soft_wrap=True)
    if len(result["bad"]) > MAX_BAD_ROWS:
        console.print(f"… and {len(result['bad']) - MAX_BAD_ROWS:,} more bad rows: --json lists them all")
    shared = result["overlap"]["media_in_both_splits"]
    if shared:
        console.print(
            f"{shared:,} media occur in both training and held-out rows, "
            f"{result['overlap']['rows_in_both_splits']:,} rows are identical",
            soft_wrap=True,
        )
    console.print(_verdict(result), soft_wrap=True)


def _table(sources: Sequence[Mapping[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("source", overflow="fold")
    media = [kind for kind in MEDIA if any(source[f"num_{kind}"] for source in sources)] or MEDIA[:1]
    for name in ("rows", "ok", "bad", *media, "tokens", "pixels"):
        table.add_column(name, justify="right", no_wrap=True)
    for source in sources:
        tokens, pixels = source["tokens"], source["pixels"]
        lengths = "/".join(f"{tokens[k]:,}" for k in ("min", "median", "p95", "max")) if tokens else NOTHING
        sizes = " … ".join(TIMES.join(map(str, pixels[k])) for k in ("min", "max")) if pixels else NOTHING
        table.add_row(
            Text(f"{source['section']}  {_short(source['name'])}"),
            f"{source['num_rows']:,}",
            Text(f"{source['num_ok']:,}", style="green"),
            Text(f"{source['num_bad']:,}", style="red" if source["num_bad"] else "dim"),
            *(f"{source[f'num_{kind}']:,}" for kind in media),
            lengths,
            sizes,
        )
    if any(source["tokens"] for source in sources):
        table.caption = "tokens of the prompt: min/median/95th percentile/max; pixels: smallest … largest"
        table.caption_justify = "left"
    return table


def rates_table(rated: Sequence[Mapping[str, Any]]) -> Table:
    """Pass rates of sources, each as `vlrl.data.curriculum.summary.rate_summary` has them."""
    table = _titled("Pass rates")
    table.add_column("source", overflow="fold")
    for name in ("rows", "rated", "mean", "never", "between", "always"):
        table.add_column(name, justify="right")
    table.add_column("0 … 1")
    table.add_column("model")
    for source in rated:
        most, mean = max(source["between"], default=0), source["pass_rate_mean"]
        bars = "".join(BLOCKS[round(8 * count / most)] if most else " " for count in source["between"])
        table.add_row(
            Text(source["section"]),
            f"{source['num_rows']:,}",
            f"{source['num_rated']:,}",
            NOTHING if mean is None else f"{mean:.3f}",
            f"{source['num_never']:,}",
            f"{sum(source['between']):,}",
            f"{source['num_always']:,}",
            bars,
            source["model"],
        )
    return table


def _nulls(nulls: Sequence[Mapping[str, Any]]) -> Table:
    """What policies that look at nothing get right, those marked that beat chance."""
    table = _titled("Without looking")
    table.add_column("source", overflow="fold")
    table.add_column("answers")
    table.add_column("policy")
    for name in ("rows", "right", "chance"):
        table.add_column(name, justify="right")
    table.add_column("gives most")
    for null in nulls:
        style = "yellow" if null["marked"] else ""
        table.add_row(
            Text(_short(null["source"])),
            null["kind"],
            Text(null["policy"], style=style),
            f"{null['num_rows']:,}",
            Text(f"{null['score']:.3f}{' !' if null['marked'] else ''}", style=style),
            f"{null['chance']:.3f}",
            Text(null["example"]),
        )
    if any(null["marked"] for null in nulls):
        table.caption = "! more than 0.05 and two standard errors above chance: won without looking"
        table.caption_justify = "left"
    return table


def _histogram(bins: Sequence[Mapping[str, int]], limit: int | None, width: int) -> Table:
    table = _titled("Prompts by length")
    table.add_column("tokens", justify="right")
    table.add_column("rows", justify="right")
    table.add_column("")
    most, room = max(one["num_rows"] for one in bins), max(10, width - 40)
    for one in bins:
        last = one["below"] - 1
        over = limit is not None and last > limit
        bar = Text(_bar(one["num_rows"] / most * room), style="red" if over else "blue")
        if limit is not None and one["from"] <= limit < last:
            bar.append(f" {limit:,} fit", style="red")
        ends = f"{one['from']:,}" if last == one["from"] else f"{one['from']:,}{NOTHING}{last:,}"
        table.add_row(ends, f"{one['num_rows']:,}", bar)
    return table


def _titled(title: str) -> Table:
    return Table(
        title=f"\n{title}",
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
    )


def _short(name: str) -> str:
    """The end of a long path."""
    return name if len(name) <= MAX_NAME else f"…{name[1 - MAX_NAME :]}"


def _bar(cells: float) -> str:
    """A bar of so many cells, to an eighth; never empty for something."""
    eighths = max(1, round(cells * 8)) if cells > 0 else 0
    return BLOCKS[8] * (eighths // 8) + BLOCKS[eighths % 8].strip()


def _reasons(sources: Sequence[Mapping[str, Any]]) -> Table:
    table = _titled("What is wrong")
    table.add_column("reason")
    table.add_column("rows", justify="right")
    table.add_column("source")
    for source in sources:
        for reason, count in source["bad_by_reason"].items():
            table.add_row(reason, f"{count:,}", Text(source["section"]))
    return table


def _bad_row(row: Mapping[str, Any]) -> Text:
    number = f"row {row['row']}"
    where = " ".join(dict.fromkeys(one for one in (row["id"], row["place"]) if one and one != number))
    text = Text.assemble(("✗ ", "red"), (f"{row['source']} {number}", "bold"), f" {_printable(where)}")
    for problem in row["problems"]:
        text.append(f"\n    {problem['reason']}: ", style="yellow")
        text.append(_printable(problem["message"]))
    return text


def _printable(message: str) -> str:
    """Text without the control characters that a row may carry into a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)


def _verdict(result: Mapping[str, Any]) -> Text:
    rows, bad = result["num_rows"], result["num_bad"]
    took = duration(result["duration_s"])
    if not bad:
        return Text.assemble(("✓ ", "green"), (f"clean: {rows:,} rows", "bold"), f" in {took}")
    return Text.assemble(("✗ ", "red"), (f"{bad:,} of {rows:,} rows are bad", "bold"), f" ({took})")
