"""One sentence on what a run's numbers show."""

from __future__ import annotations

import math

from vlrl.viewer.run import RunFolder


def verdict(run: RunFolder) -> tuple[str, str]:
    """("good" | "bad" | "open", what happened in words)."""
    planned = run.option("num_steps")
    early = (
        f" It stopped after {run.num_steps} of {planned} steps."
        if planned and run.num_steps < planned
        else ""
    )
    tone, sentence = _judge(run)
    return tone, sentence + early


def _judge(run: RunFolder) -> tuple[str, str]:
    before, after, target = run.accuracy("before", "greedy"), run.accuracy("after", "greedy"), run.target
    if not run.summary:
        return "open", "No summary.json: the run has not finished, and this is what it wrote so far."
    if after is None:
        return (
            "open",
            "Not evaluated on held-out data, so this says nothing about samples it did not train on.",
        )
    change, risen = _change(before, after, run.summary.get("num_heldout"))
    if target is None:
        return {1: "good", 0: "open", -1: "bad"}[risen], f"Greedy held-out accuracy {change}."
    if after < target:
        return "bad", f"Target missed: greedy held-out accuracy {change}, below the target of {target:g}."
    return "good", f"Target reached: greedy held-out accuracy {change}; the target was {target:g}."


def _change(before: float | None, after: float, count: int | None) -> tuple[str, int]:
    """The change in words, and 1 for a rise, -1 for a fall, 0 for what may be noise."""
    if before is None:
        return f"is {after:.3f} (not measured before)", 0
    if before == after:
        return f"stayed at {after:.3f}", 0
    words = f"{'rose' if after > before else 'fell'} from {before:.3f} to {after:.3f}"
    direction = 1 if after > before else -1
    if not count or not (0 <= before <= 1 and 0 <= after <= 1):
        return words, direction
    # As if the two were measured on different samples; on the same ones the noise is smaller, if anything.
    noise = 1.96 * math.sqrt((before * (1 - before) + after * (1 - after)) / count)
    if abs(after - before) <= noise:
        return f"{words}, which is within the noise of {count} samples (±{noise:.3f})", 0
    return f"{words} on {count} samples", direction
