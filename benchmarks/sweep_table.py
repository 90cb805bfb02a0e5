"""Tables and the chart of step_sweep.py's points."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweep_points import CURVES, HOST, Curve, Points, last_exponent

GIB = 1 << 30
SIDES = {"trainer": ("packed", "rows"), "whole": ("vlrl", "trl")}
COLORS = {"packed": "#1b6ca8", "rows": "#c0504d", "vlrl": "#1b6ca8", "trl": "#c0504d", "floor": "#777777"}
HEAD = (
    "| quantity | CPU s: {0} | {1} | times | share of the floor | tokens | private memory, GiB | ratio |\n"
    "|---|---|---|---|---|---|---|---|"
)


def tables(points: Points) -> str:
    """Every part's table, and under each the exponents, in Markdown."""
    parts = [part_table(part, points) for part in SIDES]
    return "\n\n".join([*(table for table in parts if table), host_table(points)])


def part_table(part: str, points: Points) -> str:
    """A row for each point of the trainer alone, or of whole steps; nothing if there is none."""
    rows = []
    for curve in CURVES:
        for point in of_part(curve, part):
            if (record := points.find(part, point.case)) is not None:
                rows.append(row_of(f"{point.size:g} {curve.title}", record, SIDES[part]))
    if not rows:
        return ""
    slopes = [words for curve in CURVES if (words := exponent_words(curve, part, points))]
    return "\n".join([HEAD.format(*SIDES[part]), *rows, "", "Exponents: " + "; ".join(slopes) + "."])


def of_part(curve: Curve, part: str) -> Sequence[Any]:
    """A curve's points of a part."""
    return curve.whole if part == "whole" else curve.points


def row_of(name: str, record: dict[str, Any], sides: tuple[str, str]) -> str:
    """One point."""
    ours, theirs = (record[side] for side in sides)
    cpu, memory = cpu_of(record, sides), memory_of(record, sides)
    cells = [name, *(words(value, one) for value, one in zip(cpu, (ours, theirs), strict=True))]
    cells.append(f"**{cpu[1] / cpu[0]:.1f}**" if cpu[0] and cpu[1] else "")
    cells.append(f"{record['floor_seconds'] / cpu[0]:.0%}" if cpu[0] and "floor_seconds" in record else "")
    cells.append(", ".join(f"{one['num_tokens']:,}" for one in (ours, theirs) if "num_tokens" in one))
    cells.append(", ".join(f"{value / GIB:.2f}" if value else "–" for value in memory))
    cells.append(f"{memory[0] / memory[1]:.2f}" if memory[0] and memory[1] else "")
    return f"| {' | '.join(cells)} |"


def cpu_of(record: dict[str, Any], sides: Sequence[str]) -> list[float | None]:
    """Least CPU seconds of each side; None for one that exceeded a limit."""
    return [min(record[side]["cpu"]) if "over" not in record[side] else None for side in sides]


def memory_of(record: dict[str, Any], sides: Sequence[str]) -> list[float | None]:
    """Private bytes of each side's process that trains."""
    return [record[side].get("trainer_private_bytes") for side in sides]


def words(value: float | None, side: dict[str, Any]) -> str:
    """A figure, or why there is none."""
    return f"{value:.3g}" if value is not None else side["over"]


def exponent_words(curve: Curve, part: str, points: Points) -> str:
    """The slopes between a curve's last two points: CPU seconds and memory of either side, and tokens."""
    found = [
        (point.size, record) for point in of_part(curve, part) if (record := points.find(part, point.case))
    ]
    sizes, sides = [size for size, _ in found], SIDES[part]
    slopes = []
    for index, side in enumerate(sides):
        seconds = last_exponent(sizes, [cpu_of(record, sides)[index] for _, record in found])
        memory = last_exponent(sizes, [memory_of(record, sides)[index] for _, record in found])
        if seconds is not None and memory is not None:
            slopes.append(f"{side} {seconds:.2f} (memory {memory:.2f})")
    tokens = last_exponent(sizes, [record[sides[0]].get("num_tokens") for _, record in found])
    slopes += [f"its tokens {tokens:.2f}"] if tokens is not None and slopes else []
    return f"{curve.title} {', '.join(slopes)}" if slopes else ""


def host_table(points: Points) -> str:
    """CPU seconds of sessions and packing by turns, with the exponents in tokens of the ledgers."""
    rows = []
    for curve in HOST:
        found = [(point, record) for point in curve.points if (record := points.find("host", point.case))]
        for point, record in found:
            seconds = [f"{min(record[name]['cpu']):.3f}" for name in ("sessions", "packing")]
            rows.append(
                f"| {point.size:g} {curve.title} | {record['num_tokens']:,} | {' | '.join(seconds)} |"
            )
        tokens = [record["num_tokens"] for _, record in found]
        for name in ("sessions", "packing"):
            slope = last_exponent(tokens, [min(record[name]["cpu"]) for _, record in found])
            rows += [f"| exponent of {name}, in tokens | {slope:.2f} | | |"] if slope is not None else []
    head = "| 64 episodes | tokens | sessions, CPU s | packing, CPU s |\n|---|---|---|---|"
    return "\n".join([head, *rows]) if rows else ""


def measured(curve: Curve, points: Points) -> list[Any]:
    """A curve's points that there are, of both parts."""
    return [p for part in SIDES for p in of_part(curve, part) if points.find(part, p.case) is not None]


def draw(points: Points, path: Path) -> None:
    """CPU seconds above and private memory below, logarithmic, a column for each quantity that has points."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    curves = [curve for curve in CURVES if len(measured(curve, points)) > 1]
    figure = Figure(figsize=(3 + 2 * len(curves), 6), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(2, len(curves), sharex="col", sharey="row", squeeze=False)
    for column, curve in enumerate(curves):
        above, below = plots[:, column]
        for part, style in (("trainer", "-"), ("whole", "--")):
            _draw(curve, part, points, above, below, style)
        above.set(xscale="log", yscale="log", title=curve.title)
        below.set(xscale="log", yscale="log")
        sizes = [point.size for point in curve.points]
        below.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=8)
        below.minorticks_off()
        for axes in (above, below):
            axes.grid(alpha=0.3)
    plots[0, 0].set_ylabel("CPU seconds of a step")
    plots[1, 0].set_ylabel("private memory, GiB")
    handles = dict(zip(*reversed(plots[0, 0].get_legend_handles_labels()), strict=True))
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=6, frameon=False, fontsize=9
    )
    figure.savefig(path, dpi=110)


def _draw(curve: Curve, part: str, points: Points, above: Any, below: Any, style: str) -> None:
    found = [
        (point.size, record) for point in of_part(curve, part) if (record := points.find(part, point.case))
    ]
    sides, kind = SIDES[part], "whole step" if part == "whole" else "trainer alone"
    for index, side in enumerate(sides):
        for axes, values, unit in (
            (above, [cpu_of(record, sides)[index] for _, record in found], 1),
            (below, [memory_of(record, sides)[index] for _, record in found], GIB),
        ):
            known = [(size, v / unit) for (size, _), v in zip(found, values, strict=True) if v]
            if known:
                line = {"color": COLORS[side], "marker": ".", "linestyle": style}
                axes.plot(*zip(*known, strict=True), label=f"{side}, {kind}", **line)
    floors = [(size, record["floor_seconds"]) for size, record in found if "floor_seconds" in record]
    if floors and part == "trainer":
        above.plot(*zip(*floors, strict=True), color=COLORS["floor"], linestyle=":", label=f"floor, {kind}")
