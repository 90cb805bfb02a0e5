"""Turn what two sides measured into one result: fairness, medians, ratios, and the words for people."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from step_job import BenchmarkError, Job

QUIET_CORES = 0.15
"""Cores that other programs may use in a round that counts as quiet."""
ENOUGH_ROUNDS = 2
"""Quiet rounds below which the medians are of all rounds, and the result says that they are not quiet."""
TOLERANCE = 1e-3
"""Losses of two trainers must agree to this, or they did not do the same; bfloat16 is allowed 50 times it."""


@dataclass(frozen=True)
class Round:
    """A block of each side, one after the other, and who used the cores meanwhile.

    Attributes:
        blocks: what each side measured.
        idle: cores used by each side while it was to be asleep.
        others: cores used by programs that are not a side.
        cpu_seconds: of a step of each side, all its processes.
    """

    blocks: Mapping[str, Mapping[str, Any]]
    idle: Mapping[str, float]
    others: float
    cpu_seconds: Mapping[str, float]

    @property
    def quiet(self) -> bool:
        """Whether the machine was the benchmark's alone."""
        return self.others <= QUIET_CORES


def check_equal_work(job: Job, steps: int, rounds: Sequence[Round]) -> int:
    """Refuse unless each side generated what the job says; return the prompt's length in tokens."""
    prompt_tokens: dict[str, set[int]] = {}
    wanted = steps * job.case.completions
    for name, block in (item for r in rounds for item in r.blocks.items()):
        tally = block["tally"]
        if tally["completions"] != wanted:
            raise BenchmarkError(
                f"{name} generated {tally['completions']} completions in a block, not {wanted}"
            )
        if tally["completion_tokens"] != [job.case.completion_tokens]:
            generated, asked = tally["completion_tokens"], job.case.completion_tokens
            raise BenchmarkError(f"{name} generated completions of {generated} tokens, not of {asked}")
        if tally["distinct_rewards"] < tally["completions"] / 2:
            raise BenchmarkError(f"{name}'s rewards do not vary: its groups may have no gradient")
        prompt_tokens.setdefault(name, set()).update(tally["prompt_tokens"])
    lengths = set().union(*prompt_tokens.values())
    if len(lengths) != 1:
        raise BenchmarkError(f"prompts differ in length: {prompt_tokens}")
    return lengths.pop()


def check_equal_losses(job: Job, rounds: Sequence[Round]) -> float:
    """Refuse to compare trainers that computed different losses; returns the largest difference.

    Rates are so small that a step hardly moves the weights, so a round's first losses are compared.
    """
    allowed = TOLERANCE * (1 if job.case.dtype == "float32" else 50)
    worst = 0.0
    for number, one in enumerate(rounds):
        first = {name: block["losses"][0] for name, block in one.blocks.items()}
        difference = max(first.values()) - min(first.values())
        if difference > allowed:
            raise BenchmarkError(f"the sides computed different losses in round {number + 1}: {first}")
        worst = max(worst, difference)
    return worst


def spread(seconds: Sequence[float]) -> dict[str, float]:
    """Minimum, quartiles and median."""
    ordered = sorted(seconds)
    if len(ordered) == 1:
        return dict.fromkeys(("min", "p25", "median", "p75"), ordered[0])
    p25, median, p75 = statistics.quantiles(ordered, n=4, method="inclusive")
    return {"min": ordered[0], "p25": p25, "median": median, "p75": p75}


def summarize(rounds: Sequence[Round], peaks: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """Medians over the quiet rounds, or over all if too few were; ratios if there are two sides.

    Args:
        rounds: all of them.
        peaks: of each side, most bytes of each of its processes; the first is measured against the second.
    """
    quiet = [r for r in rounds if r.quiet]
    enough = len(quiet) >= min(ENOUGH_ROUNDS, len(rounds))
    used = quiet if enough else list(rounds)
    names = list(peaks)
    result: dict[str, Any] = {name: summarize_side(name, used, peaks[name]) for name in names}
    if len(names) == 2:
        ours, theirs = (result[name] for name in names)
        result["speedup"] = theirs["median"] / ours["median"]
        result["cpu_speedup"] = theirs["cpu_seconds"] / ours["cpu_seconds"]
        result["speedup_of_minima"] = theirs["min"] / ours["min"]
        result["speedup_by_round"] = [speedup_of_round(r, names) for r in used]
        result["memory_ratio"] = ours["peak_bytes"] / theirs["peak_bytes"]
    result |= {"quiet": enough, "rounds": len(rounds), "quiet_rounds": len(quiet)}
    return result | {"others_cores": statistics.mean(r.others for r in rounds)}


def summarize_side(name: str, rounds: Sequence[Round], peaks: Mapping[str, int]) -> dict[str, Any]:
    """A side's step seconds over all these rounds, the median of each part, and its memory."""
    blocks = [r.blocks[name] for r in rounds]
    parts: dict[str, list[float]] = {}
    for block in blocks:
        for part, seconds in block["parts"].items():
            parts.setdefault(part, []).extend(seconds)
    on_gpu = max((block.get("gpu_bytes", 0) for block in blocks), default=0)
    return {
        **spread([second for block in blocks for second in block["seconds"]]),
        "steps": sum(len(block["seconds"]) for block in blocks),
        "cpu_seconds": statistics.median(r.cpu_seconds[name] for r in rounds),
        "parts": {part: statistics.median(seconds) for part, seconds in parts.items()},
        "idle_cores": statistics.mean(r.idle[name] for r in rounds),
        "peak_bytes": on_gpu or sum(peaks.values()),
        "largest_process_bytes": max(peaks.values(), default=0),
        "process_bytes": dict(sorted(peaks.items(), key=lambda item: -item[1])),
    }


def speedup_of_round(round_: Round, names: Sequence[str]) -> float:
    """The second side over the first, of the round's medians."""
    ours, theirs = (statistics.median(round_.blocks[name]["seconds"]) for name in names)
    return float(theirs / ours)


def memory_words(result: Mapping[str, Any], names: Sequence[str]) -> str:
    """Private memory of both sides and of their trainers, in a line."""

    def words(prefix: str) -> str:
        sizes = ", ".join(f"{name} {result[name][f'{prefix}private_bytes'] / 1e9:.2f} GB" for name in names)
        others = ", ".join(
            f"{kind} {result[f'{prefix}{kind}_memory_ratio']:.2f}" for kind in ("proportional", "anonymous")
        )
        return f"{sizes}, ratio {result[f'{prefix}private_memory_ratio']:.2f} ({others})"

    costs = ", ".join(f"{result[name]['memory_sample_cpu_seconds'] * 1e3:.0f}" for name in names)
    samples = ", ".join(str(result[name]["memory_samples"]) for name in names)
    return (
        f"private memory in a block not timed: {words('')}; of the trainer: {words('trainer_')}; "
        f"{samples} samples of {costs} ms"
    )


def describe(round_: Round) -> str:
    """One round in a line."""
    medians = {name: statistics.median(block["seconds"]) for name, block in round_.blocks.items()}
    words = ", ".join(f"{name} {seconds:.3f} s" for name, seconds in medians.items())
    return words + ("" if round_.quiet else f", not quiet: others used {round_.others:.2f} cores")


def report(result: Mapping[str, Any], names: Sequence[str]) -> str:
    """A comparison in words, for people."""
    columns = ("median", "min", "p25", "p75", "cpu", "start-up")
    lines = [f"{'step seconds':14}" + "".join(f"{c:>9}" for c in columns) + f"{'GB at peak':>12}"]
    for name in names:
        side = result[name]
        cells = [*(side[key] for key in ("median", "min", "p25", "p75", "cpu_seconds"))]
        cells.append(side["start_up"]["total"])
        peak = f"{side['peak_bytes'] / 1e9:12.2f}"
        lines.append(f"{name:14}" + "".join(f"{cell:9.3f}" for cell in cells) + peak)
    if "speedup" in result:
        by_round = result["speedup_by_round"]
        lines.append(
            f"{names[1]} / {names[0]}: {result['speedup']:.2f} times (by round {min(by_round):.2f} to "
            f"{max(by_round):.2f}, fastest step against fastest step {result['speedup_of_minima']:.2f}, CPU "
            f"seconds {result['cpu_speedup']:.2f}); memory {names[0]} / {names[1]}: "
            f"{result['memory_ratio']:.2f}"
        )
    if "private_memory_ratio" in result:
        lines.append(memory_words(result, names))
    for name in names:
        side = result[name]
        parts = sorted(side["parts"].items(), key=lambda item: -item[1])
        shares = ", ".join(f"{part} {s:.3f} ({s / side['median']:.0%})" for part, s in parts)
        lines.append(f"{name} step, most in {parts[0][0]}: {shares}")
    floor = result["floor"]
    reached = ", ".join(f"{name} reaches {floor['seconds'] / result[name]['median']:.0%}" for name in names)
    lines.append(
        f"floor: {floor['seconds']:.3f} s ({floor['gflop']:.1f} GFLOP at {floor['matmul_gflop_per_s']:.0f} "
        f"GFLOP/s); of it {reached}"
    )
    lines.append(
        f"{result['quiet_rounds']} of {result['rounds']} rounds were quiet; others used "
        f"{result['others_cores']:.2f} cores on average"
    )
    if not result["quiet"]:
        lines.append("THE MACHINE WAS NOT QUIET: the medians above are of its noise too; run it again")
    return "\n".join(lines)
