"""What is unusual in a run's numbers: which steps, and a sentence on what it may mean."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

Line = Mapping[str, float | None]
Points = Sequence[tuple[int, float]]
"""(step, value) of the steps that have a number."""

MIN_POINTS = 8
"""Steps before anything is judged."""
SPIKE = 6.0
"""Times the usual spread above the usual value; of normal noise that is never seen."""
WINDOW = 20
"""Steps before one that say what is usual."""
FAILING = 0.2
"""Share of a source's rollouts that fail, from which it is reported."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something unusual.

    Attributes:
        kind: a short name: "entropy collapse", "KL spike", …
        metric: whose chart shows it.
        first, last: steps that it concerns.
        words: what was seen, and what it may mean.
    """

    kind: str
    metric: str
    first: int
    last: int
    words: str


def findings(
    metrics: Sequence[Line], failures: Mapping[str, Mapping[int, tuple[int, int]]]
) -> list[HealthFinding]:
    """Everything unusual, by its first step.

    Args:
        metrics: a dict for each step, with "step".
        failures: of each source or environment {step: (rollouts that failed, all)}.
    """
    judges: Sequence[Callable[[Mapping[str, Points]], list[HealthFinding]]] = (
        _entropy_collapse,
        _held_out_falls,
        _kl_spikes,
        _gradient_spikes,
        _equal_groups,
        _truncation,
        _mismatch,
    )
    names = {name for line in metrics for name in line}
    series = {name: _points(metrics, name) for name in names}
    found = [finding for judge in judges for finding in judge(series)]
    found += _failing(failures)
    return sorted(found, key=lambda finding: (finding.first, finding.kind))


def as_json(found: Sequence[HealthFinding]) -> list[dict[str, Any]]:
    """The findings as JSON objects."""
    return [asdict(finding) for finding in found]


def _entropy_collapse(series: Mapping[str, Points]) -> list[HealthFinding]:
    """Entropy that falls below a tenth of where it began, and stays there."""
    points = series.get("policy/entropy", ())
    if len(points) < MIN_POINTS:
        return []
    start = statistics.median(value for _, value in points[:5])
    below = _tail(points, lambda value: value < 0.1 * start)
    if start <= 0 or len(below) < 3:
        return []
    words = (
        f"Entropy fell from {start:.3g} to {below[-1][1]:.3g} nats: the policy hardly explores any more. If "
        "the reward still has room, it may be stuck; a higher temperature or an entropy bonus may help."
    )
    return [HealthFinding("entropy collapse", "policy/entropy", below[0][0], below[-1][0], words)]


def _held_out_falls(series: Mapping[str, Points]) -> list[HealthFinding]:
    """Training reward that rises by more than its noise, while held-out accuracy falls from its best."""
    out = []
    reward = series.get("reward/mean", ())
    for name in ("heldout/accuracy_greedy", "heldout/accuracy_sampled"):
        points = series.get(name, ())
        if len(points) < 2:
            continue
        best = max(range(len(points)), key=lambda index: points[index][1])
        (first, high), (last, low) = points[best], points[-1]
        before = [value for step, value in reward if step <= first][-WINDOW:]
        after = [value for step, value in reward if step > first][-WINDOW:]
        if len(before) < 2 or len(after) < 2 or high - low < 0.05:
            continue
        risen = statistics.fmean(after) - statistics.fmean(before)
        noise = max(_spread(before), 1e-9) / len(before) ** 0.5
        if risen > 3 * noise:
            words = (
                f"The reward in training rose by {risen:.3g}, but held-out accuracy fell from {high:.3g} to "
                f"{low:.3g}: the policy may be learning the training rows by heart, or a weakness of the "
                "reward. Read the best-rewarded rollouts of these steps."
            )
            out.append(HealthFinding("reward up, held-out down", name, first, last, words))
    return out


def _kl_spikes(series: Mapping[str, Points]) -> list[HealthFinding]:
    words = (
        "The KL to the reference jumped to {value:.3g} (usual: {usual:.3g}): one update moved the policy "
        "far. Look at the rollouts of the step before; a smaller learning rate or more clipping may help."
    )
    return _spikes(series, "policy/kl_reference", "KL spike", words)


def _gradient_spikes(series: Mapping[str, Points]) -> list[HealthFinding]:
    words = (
        "The gradient norm jumped to {value:.3g} (usual: {usual:.3g}): a few tokens may dominate the update. "
        "Look for rollouts with very unlikely tokens; optim.max_grad_norm limits what it can do."
    )
    return _spikes(series, "optim/grad_norm", "gradient spike", words)


def _equal_groups(series: Mapping[str, Points]) -> list[HealthFinding]:
    """Groups whose rewards are all equal, that come to be most of all."""
    name = "reward/zero_variance_groups"
    points = series.get(name, ())
    if len(points) < MIN_POINTS:
        return []
    start = statistics.fmean(value for _, value in points[:5])
    smooth = [
        (step, statistics.fmean(value for _, value in points[max(0, index - 4) : index + 1]))
        for index, (step, _) in enumerate(points)
    ]
    above = _tail(smooth, lambda value: value > 0.7 and value > start + 0.2)
    if len(above) < 3:
        return []
    words = (
        f"{above[-1][1]:.0%} of the groups have equal rewards ({start:.0%} at the start) and teach nothing: "
        "the rows may have become too easy, or stay too hard. Harder rows or a curriculum give a "
        "signal again."
    )
    return [HealthFinding("equal groups", name, above[0][0], above[-1][0], words)]


def _truncation(series: Mapping[str, Points]) -> list[HealthFinding]:
    """Completions of which more than a third are cut off."""
    name = "completion/truncated_fraction"
    points = series.get(name, ())
    above = _tail(points, lambda value: value > 0.33)
    if len(points) < MIN_POINTS or len(above) < 3:
        return []
    words = (
        f"{above[-1][1]:.0%} of the completions are cut at rollout.max_tokens: they may have no answer to be "
        "scored. Allow more tokens, or penalise length."
    )
    return [HealthFinding("cut off", name, above[0][0], above[-1][0], words)]


def _mismatch(series: Mapping[str, Points]) -> list[HealthFinding]:
    words = (
        "Sampler and trainer drifted apart: the mismatch jumped to {value:.3g} (usual: {usual:.3g}). Stale "
        "tokens or a difference between the two engines may be the cause; see off_policy/staleness_mean."
    )
    return _spikes(series, "policy/sampler_mismatch", "mismatch spike", words)


def _failing(failures: Mapping[str, Mapping[int, tuple[int, int]]]) -> list[HealthFinding]:
    """A source of which a large share of rollouts fails, much larger than that of the others."""
    out = []
    for source, by_step in failures.items():
        bad = [step for step, (failed, count) in by_step.items() if count and failed / count >= FAILING]
        failed = sum(by_step[step][0] for step in bad)
        if not bad or failed < 3:
            continue
        count = sum(by_step[step][1] for step in bad)
        words = (
            f"{failed} of {count} rollouts of {source} failed in these steps: its environment or its reward "
            "may be broken or too slow. Failed rollouts are never trained; filter by failed to "
            "read the reasons."
        )
        out.append(HealthFinding(f"failures: {source}", "failures", min(bad), max(bad), words))
    return out


def _spikes(series: Mapping[str, Points], name: str, kind: str, words: str) -> list[HealthFinding]:
    """Single steps far above the steps before them; neighbours are one finding."""
    points = series.get(name, ())
    out: list[HealthFinding] = []
    for index in range(MIN_POINTS, len(points)):
        step, value = points[index]
        before = [each for _, each in points[max(0, index - WINDOW) : index]]
        usual = statistics.median(before)
        spread = max(_spread(before), 0.05 * abs(usual), 1e-9)
        if value <= usual + SPIKE * spread or value <= 2 * usual:
            continue
        told = words.format(value=value, usual=usual)
        if out and step - out[-1].last <= 2:
            out[-1] = HealthFinding(kind, name, out[-1].first, step, out[-1].words)
        else:
            out.append(HealthFinding(kind, name, step, step, told))
    return out


def _spread(values: Sequence[float]) -> float:
    """The standard deviation, from the median distance to the median: a single outlier changes nothing."""
    middle = statistics.median(values)
    return 1.4826 * statistics.median(abs(value - middle) for value in values)


def _tail(points: Points, holds: Callable[[float], bool]) -> list[tuple[int, float]]:
    """The last points for all of which something holds."""
    out: list[tuple[int, float]] = []
    for point in reversed(points):
        if not holds(point[1]):
            break
        out.append(point)
    return out[::-1]


def _points(metrics: Sequence[Line], name: str) -> list[tuple[int, float]]:
    return [(int(line["step"] or 0), value) for line in metrics if (value := line.get(name)) is not None]
