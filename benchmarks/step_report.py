"""From what the two sides measured to one result: fairness, medians, ratio, and the words for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from step_job import BenchmarkError, Job

SIDES = ("vlrl", "trl")
NOISY_SPREAD = 1.3
"""Upper quartile over lower quartile above which a side's timings are called noisy."""


def check_equal_work(job: Job, steps: int, blocks: Mapping[str, Sequence[Mapping[str, Any]]]) -> int:
    """Refuse to compare unless each side drew what the job says; returns the prompt's length in tokens."""
    prompt_tokens: dict[str, set[int]] = {}
    for name, side_blocks in blocks.items():
        for tally in (block["tally"] for block in side_blocks):
            if tally["completions"] != steps * job.completions:
                wanted = steps * job.completions
                raise BenchmarkError(
                    f"{name} drew {tally['completions']} completions in a block, not {wanted}"
                )
            if tally["completion_tokens"] != [job.completion_tokens]:
                drawn = tally["completion_tokens"]
                raise BenchmarkError(
                    f"{name} drew completions of {drawn} tokens, not of {job.completion_tokens}"
                )
            if tally["distinct_rewards"] < tally["completions"] / 2:
                raise BenchmarkError(f"{name}'s rewards do not vary: its groups may have no gradient")
            prompt_tokens.setdefault(name, set()).update(tally["prompt_tokens"])
    lengths = set().union(*prompt_tokens.values())
    if len(lengths) != 1:
        raise BenchmarkError(f"prompts differ in length: {prompt_tokens}")
    return lengths.pop()


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Minimum, quartiles and median."""
    ordered = sorted(seconds)
    if len(ordered) == 1:
        return dict.fromkeys(("min", "p25", "median", "p75"), ordered[0])
    p25, median, p75 = statistics.quantiles(ordered, n=4, method="inclusive")
    return {"min": ordered[0], "p25": p25, "median": median, "p75": p75}


def summarize(blocks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A side's step seconds over all its blocks, and the median of each part."""
    parts: dict[str, list[float]] = {}
    for block in blocks:
        for name, seconds in block["parts"].items():
            parts.setdefault(name, []).extend(seconds)
    seconds = spread([second for block in blocks for second in block["seconds"]])
    return {
        **seconds,
        "steps": sum(len(block["seconds"]) for block in blocks),
        "noisy": seconds["p75"] > NOISY_SPREAD * seconds["p25"],
        "parts": {name: statistics.median(values) for name, values in parts.items()},
    }


def ratios_by_block(blocks: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[float]:
    """TRL over vlrl, block by block, of the medians."""
    medians = {
        name: [statistics.median(block["seconds"]) for block in blocks[name]] for name in ("trl", "vlrl")
    }
    return [trl / vlrl for trl, vlrl in zip(medians["trl"], medians["vlrl"], strict=True)]


def report(result: Mapping[str, Any]) -> str:
    """The result in words, for people."""
    job = result["job"]
    names = [name for name in SIDES if name in result]
    lines = [
        f"{job['prompts']} prompts of {job['prompt_tokens']} tokens, {job['group_size']} completions each of "
        f"{job['completion_tokens']} tokens, {job['threads']} threads",
        "",
        f"{'step seconds':14}{'median':>9}{'min':>9}{'p25':>9}{'p75':>9}{'start-up':>10}{'idle cores':>12}",
    ]
    for name in names:
        side = result[name]
        cells = "".join(f"{side[key]:9.3f}" for key in ("median", "min", "p25", "p75"))
        start_up = side["start_up"]["total"]
        lines.append(f"{name:14}{cells}{start_up:10.1f}{side['idle_cores']:12.2f}")
    if "ratio" in result:
        by_block = result["ratio_by_block"]
        lines.append(
            f"\nTRL / vlrl: {result['ratio']:.2f} (by block {min(by_block):.2f} to {max(by_block):.2f})"
        )
    for name in names:
        side = result[name]
        parts = sorted(side["parts"].items(), key=lambda item: -item[1])
        shares = ", ".join(f"{part} {s:.3f} ({s / side['median']:.0%})" for part, s in parts)
        starts = ", ".join(f"{part} {s:.1f}" for part, s in side["start_up"].items())
        lines += [f"{name} step, most in {parts[0][0]}: {shares}", f"{name} start-up: {starts}"]
    floor = result["floor"]
    above = ", ".join(
        f"{name} is {result[name]['median'] / floor['seconds']:.1f} times that" for name in names
    )
    lines.append(
        f"floor: {floor['seconds']:.3f} s ({floor['generate_gflop']:.1f} GFLOP to draw and "
        f"{floor['train_gflop']:.1f} to train, at {floor['matmul_gflop_per_s']:.0f} GFLOP/s); {above}"
    )
    noisy = [name for name in names if result[name]["noisy"]]
    if noisy:
        lines.append(f"the machine was not quiet: {' and '.join(noisy)} varied much; run it again")
    return "\n".join(lines)
