"""Draw a run's learning curve: `tools/learning_curve.py RUN FILE.png`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vlrl.viewer.charts import Point, Series, smooth
from vlrl.viewer.pages.report import heldout_series, window_of
from vlrl.viewer.run import load_run


def write_learning_curve(run_dir: Path, path: Path) -> None:
    """Draw the metrics of a run's folder."""
    run = load_run(run_dir)
    reward = run.series("reward/mean")
    draw(path, reward, window_of(reward), heldout_series(run), run.target)


def draw(
    path: Path, reward: Sequence[Point], window: int, heldout: Sequence[Series], target: float | None
) -> None:
    """Draw reward and held-out accuracy side by side, on white.

    Args:
        path: of the PNG.
        reward: mean reward by step.
        window: steps over which the bold line averages.
        heldout: accuracy by step, greedy and sampled.
        target: eval.target_accuracy, if the run has one.
    """
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    nan = float("nan")
    known = [(x, nan if y is None else y) for x, y in reward]
    smoothed = [(x, nan if y is None else y) for x, y in smooth(reward, window)]
    if known:
        left.plot(*zip(*known, strict=True), color="#3b6fd4", alpha=0.3, linewidth=1)
        left.plot(*zip(*smoothed, strict=True), color="#3b6fd4", linewidth=2)
    left.set(title="Reward in training", xlabel="step", ylabel=f"mean reward (bold: last {window} steps)")
    for series, color, fill in zip(heldout, ("#3b6fd4", "#d9782d"), ("#3b6fd4", "white"), strict=False):
        points = [(x, y) for x, y in series.points if y is not None]
        if points:
            right.plot(*zip(*points, strict=True), "o-", color=color, markerfacecolor=fill, label=series.name)
    if target is not None:
        right.axhline(target, color="#777", linestyle="--", linewidth=1, label=f"target {target:g}")
    right.set(title="Held-out accuracy", xlabel="step", ylim=(0, 1.02))
    if right.get_legend_handles_labels()[0]:
        right.legend(frameon=False, loc="lower right")
    for axes in (left, right):
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    write_learning_curve(Path(sys.argv[1]), Path(sys.argv[2]))
