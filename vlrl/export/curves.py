"""The training curves of a model's card, as one PNG."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from vlrl.export.source import accuracies
from vlrl.tracking.sinks import METRICS_FILE, read_metrics

SHOWN: Mapping[str, str] = {
    "reward/mean": "reward",
    "sft/loss": "loss, nats",
    "preference/accuracy": "share of pairs in order",
    "policy/entropy": "entropy, nats",
    "completion/num_tokens_mean": "tokens of a completion",
}
"""Metrics with their axis; those that a run has are drawn, after held-out accuracy, NUM_PANELS at most."""
NUM_PANELS = 4
Curve = dict[int, float]


def draw_curves(run_dir: Path, path: Path) -> bool:
    """Draw a run's curves side by side; False, and no file, if it has none."""
    panels = curves_of(run_dir)
    if not panels:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(panels), 3), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (name, lines) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels.items(), strict=True
    ):
        for label, curve in lines.items():
            mark = "o-" if len(curve) < 30 else "-"
            axes.plot(list(curve), list(curve.values()), mark, markersize=3, linewidth=1, label=label)
        axes.set(xlabel="step", title=name)
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
        if len(lines) > 1:
            axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    return True


def curves_of(run_dir: Path) -> dict[str, dict[str, Curve]]:
    """Lines of each panel, values by step."""
    heldout: dict[str, Curve] = {}
    for step, of_step in accuracies(run_dir).items():
        for how, (mean, _) in of_step.items():
            heldout.setdefault(how, {})[step] = mean
    panels: dict[str, dict[str, Curve]] = {"held-out accuracy": heldout} if heldout else {}
    steps = read_metrics(run_dir / METRICS_FILE)
    for metric, name in SHOWN.items():
        curve = {int(s["step"] or 0): value for s in steps if (value := s.get(metric)) is not None}
        if curve:
            panels[name] = {metric: curve}
    return dict(list(panels.items())[:NUM_PANELS])
