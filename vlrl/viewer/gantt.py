"""An image of a run's timeline: who was busy when, what episodes waited for, when weights changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.tracking.timeline import TIMELINE_FILE, Span, read_timeline

COLORS = {"train": "#2f8f5b", "sync": "#e08a1e", "generate": "#24489c", "paused": "#c8342f"}
BATCHES = ("#c9d6ee", "#cfe6d4", "#f3dcc0", "#e4d0ea")
"""Of an episode, by its batch: while its environment works, or it waits for one."""

LANES = ("trainer", "generator")
EPISODE_HEIGHT = 0.14
"""Of an episode's bar, where a lane is 1."""

NUM_STEPS = 10
"""Shown of a run."""

Bar = tuple[float, float]
"""(start, length) in seconds from the panel's first span."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One run, or a part of it."""

    title: str
    spans: Sequence[Span]

    @property
    def start_s(self) -> float:
        """Start of the first span."""
        return min(span.start_s for span in self.spans)

    @property
    def end_s(self) -> float:
        """End of the last step."""
        steps = [span.end_s for span in self.spans if span.lane == "trainer"]
        return max(steps or [span.end_s for span in self.spans])

    def bars(self, spans: Iterable[Span]) -> list[Bar]:
        """Those that begin before the panel's end, cut there."""
        return [
            (span.start_s - self.start_s, min(span.end_s, self.end_s) - span.start_s)
            for span in spans
            if span.start_s < self.end_s
        ]

    def of(self, lane: str, what: str = "") -> list[Span]:
        """The lane's spans, earliest first."""
        chosen = (s for s in self.spans if s.lane == lane and (not what or s.what == what))
        return sorted(chosen, key=lambda span: span.start_s)


def slots_of(episodes: Iterable[Span]) -> list[list[Span]]:
    """Episodes in as few rows as no two of a row overlap in."""
    rows: list[list[Span]] = []
    for episode in sorted(episodes, key=lambda span: span.start_s):
        free = next((row for row in rows if row[-1].end_s <= episode.start_s), None)
        if free is None:
            rows.append([episode])
        else:
            free.append(episode)
    return rows


def draw_run(run_dir: Path, num_steps: int = NUM_STEPS) -> Path | None:
    """Write RUN/timeline.png of the last steps; None for a run without logging.timeline, or a step."""
    spans = read_timeline(run_dir / TIMELINE_FILE)
    steps = sorted({s.details["step"] for s in spans if s.lane == "trainer"})[-num_steps:]
    if not steps:
        return None
    start_s = min(s.start_s for s in spans if s.lane == "trainer" and s.details["step"] == steps[0])
    shown = [s for s in spans if s.end_s > start_s and s.details.get("batch") != "evaluate"]
    image = run_dir / "timeline.png"
    draw_gantt(image, [Panel(f"{run_dir.name}: steps {steps[0]} to {steps[-1]}", shown)])
    return image


def draw_gantt(path: Path, panels: Sequence[Panel]) -> None:
    """Write the panels one above the other, on one scale of time, as a PNG or SVG by the path's ending."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [len(LANES) + EPISODE_HEIGHT * len(slots_of(p.of("episode"))) for p in panels]
    figure = Figure(figsize=(14, 1.2 + sum(0.45 * h + 0.6 for h in heights)), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for axes, panel in zip(plots, panels, strict=True):
        _draw(axes, panel)
    plots[-1].set(xlabel="seconds", xlim=(0, max(p.end_s - p.start_s for p in panels)))
    figure.legend(handles=_legend(), loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    figure.savefig(path, dpi=130)


def _draw(axes: Any, panel: Panel) -> None:
    def bars(spans: Iterable[Span], top: float, height: float, color: str) -> None:
        axes.broken_barh(panel.bars(spans), (top, height), facecolors=color, linewidth=0)

    for what in ("train", "sync"):
        bars(panel.of("trainer", what), 0.1, 0.8, COLORS[what])
    bars(panel.of("request"), 1.1, 0.8, COLORS["generate"])
    bars(panel.of("generator", "paused"), 1.1, 0.8, COLORS["paused"])
    requests: dict[tuple[Any, Any], list[Span]] = {}
    for request in panel.of("request"):
        requests.setdefault((request.details["sample"], request.details["group_index"]), []).append(request)
    top = float(len(LANES))
    for row in slots_of(panel.of("episode")):
        for episode in row:
            name, batch = (
                (episode.details["sample"], episode.details["group_index"]),
                episode.details["batch"],
            )
            color = BATCHES[batch % len(BATCHES)] if isinstance(batch, int) else "#dddddd"
            bars([episode], top, EPISODE_HEIGHT * 0.9, color)
            own = [r for r in requests.get(name, ()) if episode.start_s <= r.start_s < episode.end_s]
            bars(own, top, EPISODE_HEIGHT * 0.9, COLORS["generate"])
        top += EPISODE_HEIGHT
    for update in panel.of("generator", "paused"):
        if update.end_s <= panel.end_s:
            axes.axvline(update.end_s - panel.start_s, color=COLORS["paused"], linewidth=0.8)
    middle = (len(LANES) + top) / 2
    axes.set(title=panel.title, ylim=(top, 0), yticks=[0.5, 1.5, middle], xmargin=0)
    axes.set_yticklabels([*LANES, "episodes"])
    axes.spines[["top", "right"]].set_visible(False)


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    words = {"train": "trainer steps", "sync": "weights are moved", "generate": "tokens are generated"}
    return [
        *(Patch(color=COLORS[name], label=label) for name, label in words.items()),
        Patch(color=COLORS["paused"], label="engine takes weights"),
        Line2D([], [], color=COLORS["paused"], label="new version"),
        Patch(color=BATCHES[0], label="episode: its environment works (a colour a batch)"),
    ]
