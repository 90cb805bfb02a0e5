"""From what the two sides measured to one result: fairness, medians, ratio, and the words for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from step_job import BenchmarkError, Job

SIDES = ("vlrl", "trl")
QUIET_CORES = 0.15
"""Cores that other programs may use in a round that counts as quiet."""
ENOUGH_ROUNDS = 2
"""Quiet rounds below which the medians are of all rounds, and the result says that they are not quiet."""


@dataclass(frozen=True)
class Round:
    """A block of each side, one after the other, and who used the cores meanwhile.

    `idle` is cores used by each side while it was to be asleep, `others` those used by programs that are
    neither side.
    """

    blocks: Mapping[str, Mapping[str, Any]]
    idle: Mapping[str, float]
    others: float

    @property
    def quiet(self) -> bool:
        """Whether the machine was the benchmark's alone."""
        return self.others <= QUIET_CORES


def check_equal_work(job: Job, steps: int, rounds: Sequence[Round]) -> int:
    """Refuse to compare unless each side drew what the job says; returns the prompt's length in tokens."""
    prompt_tokens: dict[str, set[int]] = {}
    wanted = steps * job.completions
    for name, block in (item for r in rounds for item in r.blocks.items()):
        tally = block["tally"]
        if tally["completions"] != wanted:
            raise BenchmarkError(f"{name} drew {tally['completions']} completions in a block, not {wanted}")
        if tally["completion_tokens"] != [job.completion_tokens]:
            drawn = tally["completion_tokens"]
            raise BenchmarkError(f"{name} drew completions of {drawn} tokens, not of {job.completion_tokens}")
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


def summarize(rounds: Sequence[Round]) -> dict[str, Any]:
    """Medians over the quiet rounds, or over all if too few were; the ratio where both sides ran."""
    quiet = [r for r in rounds if r.quiet]
    enough = len(quiet) >= min(ENOUGH_ROUNDS, len(rounds))
    used = quiet if enough else list(rounds)
    names = [name for name in SIDES if name in rounds[0].blocks]
    result: dict[str, Any] = {name: summarize_side(name, used) for name in names}
    result |= {f"{name}_seconds": result[name]["median"] for name in names}
    if len(names) == len(SIDES):
        result["ratio"] = result["trl"]["median"] / result["vlrl"]["median"]
        result["ratio_of_minima"] = result["trl"]["min"] / result["vlrl"]["min"]
        result["ratio_by_round"] = [ratio_of_round(r) for r in used]
    result |= {"quiet": enough, "rounds": len(rounds), "quiet_rounds": len(quiet)}
    return result | {"others_cores": statistics.mean(r.others for r in rounds)}


def summarize_side(name: str, rounds: Sequence[Round]) -> dict[str, Any]:
    """A side's step seconds over all these rounds, and the median of each part."""
    blocks = [r.blocks[name] for r in rounds]
    parts: dict[str, list[float]] = {}
    for block in blocks:
        for part, seconds in block["parts"].items():
            parts.setdefault(part, []).extend(seconds)
    return {
        **spread([second for block in blocks for second in block["seconds"]]),
        "steps": sum(len(block["seconds"]) for block in blocks),
        "parts": {part: statistics.median(seconds) for part, seconds in parts.items()},
        "idle_cores": statistics.mean(r.idle[name] for r in rounds),
    }


def ratio_of_round(round_: Round) -> float:
    """TRL over vlrl, of the round's medians."""
    medians: dict[str, float] = {
        name: statistics.median(block["seconds"]) for name, block in round_.blocks.items()
    }
    return medians["trl"] / medians["vlrl"]


def describe(round_: Round) -> str:
    """One round in a line."""
    medians = {name: statistics.median(block["seconds"]) for name, block in round_.blocks.items()}
    words = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    return words + ("" if round_.quiet else f", not quiet: others used {round_.others:.2f} cores")


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
        by_round = result["ratio_by_round"]
        lines.append(
            f"\nTRL / vlrl: {result['ratio']:.2f} (by round {min(by_round):.2f} to {max(by_round):.2f}, "
            f"fastest step against fastest step {result['ratio_of_minima']:.2f})"
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
    lines.append(
        f"{result['quiet_rounds']} of {result['rounds']} rounds were quiet; others used "
        f"{result['others_cores']:.2f} cores on average"
    )
    if not result["quiet"]:
        lines.append("THE MACHINE WAS NOT QUIET: the medians above are of its noise too; run it again")
    return "\n".join(lines)
