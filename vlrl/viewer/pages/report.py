"""One HTML file that shows how a run went. It opens offline: no script, nothing fetched, images inlined."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from vlrl.errors import ConfigError
from vlrl.evaluation.estimates import wilson
from vlrl.tracking.console import duration
from vlrl.tracking.metrics import NODES, TIME_PARTS, describe, is_reward_part
from vlrl.tracking.rollouts.paths import run_dir_of
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.viewer.charts import (
    NOTHING,
    Point,
    Series,
    line_chart,
    short,
    smooth,
    stacked_chart,
)
from vlrl.viewer.page import write_page
from vlrl.viewer.rollouts import Card, RolloutColumn, build_cards
from vlrl.viewer.run import RunFolder, load_run
from vlrl.viewer.verdict import verdict

MULTIPLES = (
    "policy/entropy",
    "policy/sampler_mismatch",
    "policy/kl_reference",
    "distillation/reverse_kl",
    "optim/grad_norm",
    "completion/num_tokens_mean",
    "policy/clip_fraction",
    "off_policy/ess",
    "groups/dropped_share",
    "reward/zero_variance_groups",
)
"""Metrics shown small, next to each other; the others are in a fold."""

GREEDY, SAMPLED = "heldout/accuracy_greedy", "heldout/accuracy_sampled"

DEFAULT_ROLLOUTS = 16
MAX_COMPLETIONS = 512
"""Completions of all samples together on the page of a file."""


@dataclass(frozen=True, slots=True)
class ReportFigure:
    """A chart with its words; legend entries are (css class, name)."""

    title: str
    hint: str
    svg: Markup
    legend: Sequence[tuple[str, str]] = ()
    latest: str = ""


def write_report(run_dir: Path) -> Path:
    """Write RUN/report.html from what is in the folder, and return its path."""
    run = load_run(run_dir)
    columns = [RolloutColumn(heading, run_dir, records) for heading, records in run.columns]
    rollouts = build_cards(columns, int(run.option("logging.num_report_rollouts", DEFAULT_ROLLOUTS)))
    path = run_dir / "report.html"
    write_page(path, "report.html.j2", **context(run, rollouts))
    return path


def write_rollout_report(path: Path, page: Path | None = None) -> Path:
    """Write a page of a file of rollouts, of `vlrl rollout` or `vlrl eval --out`; return its path.

    Args:
        path: the .jsonl file. Of several steps the last is shown, of a sample every completion.
        page: PATH with .html for its ending, unless given.

    Raises:
        ConfigError: if it holds no rollouts.
    """
    records = [record for record in read_rollouts(path) if "ledgers" in record]
    if not records:
        raise ConfigError(f"{path} holds no rollouts: each line is a JSON object as `vlrl rollout` writes it")
    last = max(record.get("step") or 0 for record in records)
    by_heading: dict[str, list[dict[str, Any]]] = {}
    for record in records:
        if (record.get("step") or 0) == last:
            heading = f"{record.get('phase', 'rollout')}, completion {record.get('group_index', 0) + 1}"
            by_heading.setdefault(heading, []).append(record)
    scored = [record["reward"] for record in records if record.get("reward") is not None]
    mean = f", mean reward {sum(scored) / len(scored):.3f}" if scored else ", none of them scored"
    run = RunFolder(name=path.name, summary={}, config={}, config_text="", metrics=[], columns=[])
    page = page or path.with_suffix(".html")
    limit = max(DEFAULT_ROLLOUTS, MAX_COMPLETIONS // len(by_heading))
    cards = build_cards(
        [RolloutColumn(name, run_dir_of(path), shown) for name, shown in by_heading.items()], limit
    )
    sentence = f"{len(records)} rollouts{mean}."
    write_page(page, "report.html.j2", **{**context(run, cards), "tone": "open", "verdict": sentence})
    return page


def context(run: RunFolder, rollouts: Sequence[Card]) -> dict[str, Any]:
    """Everything the template names."""
    shown = {
        "step",
        "reward/mean",
        "sft/loss",
        "preference/loss",
        GREEDY,
        SAMPLED,
        *MULTIPLES,
        *(f"time_s/{part}" for part in TIME_PARTS),
    }
    names = dict.fromkeys(
        name for line in run.metrics for name in line if name not in shown and not name.startswith(NODES)
    )
    parts = [name for name in names if is_reward_part(name)]
    parts = parts if len(parts) > 1 else []  # a single part is the reward itself, up to its weight
    tone, sentence = verdict(run)
    return {
        "run": run,
        "facts": _facts(run),
        "scores": [s for s in (_score(run, "greedy"), _score(run, "sampled")) if s],
        "tone": tone,
        "verdict": sentence,
        "curves": _curves(run),
        "multiples": [_multiple(run, name) for name in (*parts, *MULTIPLES) if run.series(name)],
        "others": [_multiple(run, name) for name in names if name not in parts],
        "time": _time(run),
        "time_rows": _time_rows(run),
        "phases": [(n, duration(float(s))) for n, s in (run.summary.get("seconds_by_phase") or {}).items()],
        "versions": sorted((run.summary.get("versions") or {}).items()),
        "cards": rollouts,
    }


def _score(run: RunFolder, how: str) -> dict[str, str] | None:
    """One of the headline's numbers."""
    before, after = run.accuracy("before", how), run.accuracy("after", how)
    if before is None and after is None:
        return None
    last, count = before if after is None else after, run.summary.get("num_heldout")
    interval = ""
    if count and last is not None and 0 <= last <= 1:
        low, high = wilson(last, count)
        interval = f"95 % interval {low:.3f} to {high:.3f}, {count} held-out samples"
    temperature = run.option("rollout.temperature", 1.0)
    return {
        "name": "greedy" if how == "greedy" else f"sampled at temperature {temperature:g}",
        "before": NOTHING if before is None else f"{before:.3f}",
        "after": NOTHING if after is None else f"{after:.3f}",
        "interval": interval,
    }


def _facts(run: RunFolder) -> list[tuple[str, str]]:
    summary = run.summary
    size = summary.get("num_parameters")
    rows = (
        ("task", _sources(run)),
        ("model", summary.get("model_path", run.option("model.path"))),
        ("parameters", f"{size / 1e6:,.1f} M" if size else None),
        ("steps", run.num_steps or None),
        ("wall time", duration(run.seconds) if run.seconds else None),
        ("device", summary.get("device")),
        ("seed", summary.get("seed", run.option("run.seed"))),
    )
    return [(name, str(value)) for name, value in rows if value is not None]


def _sources(run: RunFolder) -> str | None:
    """Names of what it was trained on."""
    train = run.option("data.train", [])
    names = [str(source.get("name")) for source in (train if isinstance(train, list) else [train])]
    return ", ".join(names) or None


def window_of(points: Sequence[Point]) -> int:
    """Steps over which a curve of so many points is averaged."""
    return max(5, len(points) // 20)


def heldout_series(run: RunFolder) -> list[Series]:
    """Held-out accuracy by step: what was logged in training, and the summary's before and after."""
    out = []
    for color, (name, how) in enumerate(((GREEDY, "greedy"), (SAMPLED, "sampled"))):
        # Logged with step s, measured after it: with the weights after s + 1 updates.
        points = {step + 1: value for step, value in run.series(name)}
        for when, step in (("before", 0.0), ("after", float(run.num_steps))):
            value = run.accuracy(when, how)
            if value is not None:
                points[step] = value
        if points:
            out.append(Series(how, sorted(points.items()), color, "dots" if color == 0 else "rings"))
    return out


def _curves(run: RunFolder) -> list[ReportFigure]:
    out = []
    for name, title in (
        ("reward/mean", "Reward in training"),
        ("sft/loss", "Loss"),
        ("preference/loss", "Loss"),
    ):
        if points := run.series(name):
            window = window_of(points)
            mean = f"mean of the last {window} steps"
            svg = line_chart([Series("each step", points, 0, "faint"), Series(mean, smooth(points, window))])
            legend = [("s0 faint", "each step"), ("s0", mean)]
            out.append(ReportFigure(title, describe(name), Markup(svg), legend))
    if heldout := heldout_series(run):
        target = run.target
        svg = line_chart(heldout, y_range=(0.0, 1.04), target=target)
        legend = [("f0" if line.mark == "dots" else "s1 ring", line.name) for line in heldout]
        legend += [("target", f"target {target:g}")] if target is not None else []
        hint = "Accuracy before and after"
        if run.option("eval.every", 0):
            hint = f"Accuracy; in between on {run.option('eval.during_samples', 'fewer')} samples"
        out.append(ReportFigure("Held-out accuracy", hint, Markup(svg), legend))
    return out


def _multiple(run: RunFolder, name: str) -> ReportFigure:
    points = run.series(name)
    known = [y for _, y in points if y is not None]
    chart = line_chart([Series(name, points)], height=130)
    latest = f"{short(known[0])} → {short(known[-1])}" if known else "never finite"
    return ReportFigure(name, describe(name), Markup(chart), latest=latest)


def _time_parts(run: RunFolder) -> list[tuple[str, list[float]]]:
    lines = [line for line in run.metrics if line.get("time_s/step") is not None]
    parts = [(part, [line.get(f"time_s/{part}") or 0.0 for line in lines]) for part in TIME_PARTS]
    known = [sum(values) for values in zip(*(values for _, values in parts), strict=True)]
    steps = [line["time_s/step"] or 0.0 for line in lines]
    other = [max(0.0, step - part) for step, part in zip(steps, known, strict=True)]
    # The trainer's parts add up; a stranger's may not.
    return [*parts, ("other", other)] if sum(other) > 0.005 * sum(steps) else parts


def _time(run: RunFolder) -> ReportFigure | None:
    steps = [float(line["step"] or 0) for line in run.metrics if line.get("time_s/step") is not None]
    if not steps:
        return None
    parts = _time_parts(run)
    legend = [(f"f{i}", name) for i, (name, _) in enumerate(parts)]
    return ReportFigure(
        "Seconds per step",
        "Where a step's time goes",
        Markup(stacked_chart(steps, parts, height=340)),
        legend,
    )


def _time_rows(run: RunFolder) -> list[tuple[str, str, str, str]]:
    """(part, median, total, share of all steps) for the table."""
    parts = _time_parts(run)
    everything = sum(sum(values) for _, values in parts)
    return [
        (
            name,
            duration(statistics.median(values), 3),
            duration(sum(values)),
            f"{sum(values) / everything:.0%}",
        )
        for name, values in parts
        if values and everything > 0
    ]
