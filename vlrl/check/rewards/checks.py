"""What a trial says about a reward: checks with a status, and what was found."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from vlrl.check.rewards.battery import IN_TAGS
from vlrl.check.rewards.check import Finding, RewardCheck
from vlrl.check.rewards.conduct import conduct, places
from vlrl.check.rewards.trial import Trial, Try
from vlrl.foreign.failure import Failure

MARGIN = 0.1
"""Of the way from the empty completion's score to the right answer's, what a completion without an answer may
earn."""
_EQUAL = 1e-9
_SLOW_S = 1.0


def run_checks(trial: Trial, margin: float = MARGIN) -> list[RewardCheck]:
    """All checks of a trial, in the order in which an author should read them."""
    return [
        _exceptions(trial),
        _time_limit(trial),
        _range(trial),
        _determinism(trial),
        *conduct(trial),
        _reference(trial),
        _wrong(trial),
        *places(trial),
        _hollow(trial, margin),
        _variance(trial),
        _tags(trial, margin),
        _variants(trial, margin),
        _speed(trial),
    ]


def earned(trial: Trial, one: Try) -> float | None:
    """Share of the way from nothing said to the right answer that a completion without an answer earns.

    None if it has no score, or is in form where the form is all that a reward looks at.
    """
    has_form = trial.profile == "form" and trial.form is not None and trial.form[1] != "{}"
    base = trial.score_of(one.sample, "empty")
    if one.case.kind != "hollow" or one.score is None or base is None or (has_form and one.case.in_form):
        return None
    right = trial.score_of(one.sample, "reference")
    gap = right - base if right is not None and right > base else _width(trial)
    return (one.score - base) / gap


def is_hole(trial: Trial, one: Try, margin: float) -> bool:
    """Whether a completion without an answer scores more than it may."""
    fair = 2 / (one.case.num_hedged + 1) if one.case.num_hedged else 0.0
    share = earned(trial, one)
    return share is not None and share > margin + fair + _EQUAL


def _exceptions(trial: Trial) -> RewardCheck:
    found = [
        Finding(one, one.trouble.reason)
        for one in trial.tries
        if one.trouble and not one.timed_out and "outside its declared range" not in one.trouble.reason
    ]
    if not found:
        return RewardCheck("exceptions", "ok", f"none in {len(trial.tries):,} calls")
    kinds = _counted(finding.why.partition(":")[0] for finding in found)
    return RewardCheck(
        "exceptions", "fail", f"{len(found):,} of {len(trial.tries):,} calls failed: {kinds}", found
    )


def _time_limit(trial: Trial) -> RewardCheck:
    found = [Finding(one, one.trouble.reason) for one in trial.tries if one.trouble and one.timed_out]
    if found:
        return RewardCheck("time and memory", "fail", f"{len(found):,} calls had to be ended", found)
    slowest = max(trial.tries, key=lambda one: one.seconds)
    words = f"slowest call {duration_of(slowest.seconds)}: {slowest.case.name}"
    if slowest.seconds > _SLOW_S:
        return RewardCheck("time and memory", "warn", words, [Finding(slowest, "slow")])
    return RewardCheck("time and memory", "ok", words if slowest.seconds else "every call ended in time")


def _range(trial: Trial) -> RewardCheck:
    declared = trial.function.declared.range
    sign = 1 if trial.function.declared.higher_is_better else -1
    seen = sorted(sign * one.score for one in trial.tries if one.score is not None)
    words = f"seen {seen[0]:g} … {seen[-1]:g}" if seen else "no score seen"
    if declared is None:
        return RewardCheck("range", "warn", f"not declared; {words}: say @reward(range=(lowest, highest))")
    found = [
        Finding(one, one.trouble.reason)
        for one in trial.tries
        if one.trouble and "outside its declared range" in one.trouble.reason
    ]
    ends = f"[{declared[0]:g}, {declared[1]:g}]"
    if found:
        return RewardCheck("range", "fail", f"{len(found):,} scores outside {ends}", found)
    return RewardCheck("range", "ok", f"declared {ends}, {words}")


def _determinism(trial: Trial) -> RewardCheck:
    found = []
    for one in trial.tries:
        if isinstance(one.result, Failure):
            continue
        first = one.result[0]
        other = [v for v in one.again if not math.isclose(v, first, rel_tol=1e-9, abs_tol=1e-12)]
        if other:
            found.append(Finding(one, f"{first:g}, then {other[0]:g}"))
    num = sum(bool(one.again) for one in trial.tries)
    if found:
        return RewardCheck(
            "determinism", "fail", f"{len(found):,} of {num:,} completions score differently again", found
        )
    if not num:
        return RewardCheck("determinism", "warn", "not tried: no completion was scored twice")
    return RewardCheck(
        "determinism", "ok", f"{num:,} completions score the same in other processes and orders"
    )


def _reference(trial: Trial) -> RewardCheck:
    name = "right answers"
    if trial.profile == "penalty":
        return RewardCheck(name, "info", "nothing scores above saying nothing: a penalty")
    unpaid, beaten = [], []
    for sample in trial.samples:
        tries = trial.of(sample)
        right = next((one for one in tries if one.case.kind == "reference"), None)
        base = trial.score_of(sample, "empty")
        if right is None or right.score is None or base is None:
            continue
        if right.score <= base + _EQUAL:
            unpaid.append(Finding(right, f"scores {right.score:g}, and an empty completion {base:g}"))
        best = max((t for t in tries if t.score is not None), key=lambda t: t.score or 0.0)
        if best.score is not None and best.score > right.score + _EQUAL:
            beaten.append(Finding(best, f"scores {best.score:g}, and the right answer {right.score:g}"))
    scores = [s for sample in trial.samples if (s := trial.score_of(sample, "reference")) is not None]
    if not scores:
        return RewardCheck(
            name, "fail", "no right answer could be scored: check the answers, or give a target"
        )
    if unpaid:
        words = f"{len(unpaid)} of {len(scores)} score no more than saying nothing: check the answer's form"
        return RewardCheck(name, "fail", words, unpaid)
    if beaten:
        return RewardCheck(
            name, "fail", f"on {len(beaten)} of {len(scores)} samples another scores more", beaten
        )
    words = f"score {min(scores):g}" + (f" … {max(scores):g}" if max(scores) > min(scores) + _EQUAL else "")
    form = trial.form[1] if trial.form else "{}"
    words += f" as {form.format('…')!r}" if trial.form else ""
    declared = trial.function.declared
    top = None
    if declared.range:
        top = declared.range[1] if declared.higher_is_better else -declared.range[0]
    if top is not None and min(scores) < top - _EQUAL:
        return RewardCheck(name, "warn", f"{words}; the declared range goes to {top:g}")
    return RewardCheck(name, "ok", words)


def _wrong(trial: Trial) -> RewardCheck:
    name = "wrong answers"
    tried = [one for one in trial.tries if one.case.kind == "wrong" and one.score is not None]
    if trial.profile == "penalty":
        return RewardCheck(name, "info", "score no more than saying nothing")
    if trial.profile == "form":
        words = (
            "score like right ones: it does not look at the answer; use it as a gate or with a small weight"
        )
        return RewardCheck(name, "warn", words)
    if not tried:
        return RewardCheck(name, "warn", "none tried: no two answers of the data are plainly different")
    found = [
        Finding(one, f"scores {one.score:g}, as the right answer does")
        for one in tried
        if (right := trial.score_of(one.sample, "reference")) is not None
        and one.score is not None
        and one.score >= right - _EQUAL
    ]
    if found:
        return RewardCheck(name, "fail", f"{len(found):,} of {len(tried):,} score like the right one", found)
    highest = max(one.score for one in tried if one.score is not None)
    return RewardCheck(name, "ok", f"{len(tried):,} score at most {highest:g}")


def _hollow(trial: Trial, margin: float) -> RewardCheck:
    shares = [(one, share) for one in trial.tries if (share := earned(trial, one)) is not None]
    shares.sort(key=lambda pair: -pair[1])
    holes = [
        Finding(one, f"earns {share:.0%} of what the right answer does")
        for one, share in shares
        if is_hole(trial, one, margin)
    ]
    if holes:
        names = len({finding.attempt.case.name for finding in holes})
        return RewardCheck("no answer", "fail", f"{names} ways to score without an answer", holes)
    if not shares:
        return RewardCheck("no answer", "warn", "not tried: no completion without an answer could be scored")
    highest = shares[0][1]
    which = "completions out of form" if trial.profile == "form" else "completions without an answer"
    if highest <= _EQUAL:
        return RewardCheck("no answer", "ok", f"{len(shares):,} {which} score nothing")
    words = f"{len(shares):,} {which} earn at most {highest:.1%} of what the right answer does"
    return RewardCheck("no answer", "ok", f"{words}: {shares[0][0].case.name}")


def _variance(trial: Trial) -> RewardCheck:
    """Check groups of eight: four right answers and four that are wrong or empty."""
    spreads = []
    for sample in trial.samples:
        right = trial.score_of(sample, "reference")
        kinds = ("wrong", "empty")
        others = [t.score for t in trial.of(sample) if t.case.kind in kinds and t.score is not None]
        if right is not None and others:
            group = [right] * 4 + [others[i % len(others)] for i in range(4)]
            spreads.append(statistics.pstdev(group))
    if trial.profile == "penalty":
        return RewardCheck("group variance", "info", "right and wrong are not told apart: a penalty")
    live = sum(spread > _EQUAL for spread in spreads)
    words = f"{live} of {len(spreads)} groups of right and wrong answers teach something"
    if not live:
        return RewardCheck("group variance", "fail", words)
    return RewardCheck("group variance", "ok", f"{words}; mean deviation {statistics.mean(spreads):.3f}")


def _variants(trial: Trial, margin: float) -> RewardCheck:
    """Which odd ways to say the right answer count; nothing to judge."""
    counted: dict[str, bool] = {}
    for one in trial.tries:
        base, right = trial.score_of(one.sample, "empty"), trial.score_of(one.sample, "reference")
        if one.case.kind == "variant" and None not in (one.score, base, right):
            pays = (one.score or 0.0) - (base or 0.0) > margin * ((right or 0.0) - (base or 0.0)) + _EQUAL
            counted[one.case.name] = counted.get(one.case.name, False) or pays
    taken = [name.removeprefix("right, ") for name, pays in counted.items() if pays]
    return RewardCheck("also counted", "info", "; ".join(taken) or "no odd spelling of the right answer")


def _tags(trial: Trial, margin: float) -> RewardCheck:
    """Whether a reward of bare answers sees one in tags: of a model that writes them, it would pay none."""
    name, found = "answer tags", []
    in_tags = [one for one in trial.tries if one.case.name == IN_TAGS]
    scored = [one for one in in_tags if one.score is not None]
    is_seen = any(trial.score_of(sample, "reference") is not None for sample in trial.samples)
    if not scored and (in_tags or not is_seen):
        return RewardCheck(name, "warn", "not tried: no answer in tags could be scored")
    for one in scored:
        base, right = (
            trial.score_of(one.sample, "empty") or 0.0,
            trial.score_of(one.sample, "reference") or 0.0,
        )
        if (one.score or 0.0) - base <= margin * (right - base) + _EQUAL:
            found.append(Finding(one, f"scores {one.score:g}, and the bare answer {right:g}"))
    words = "the right answer in <answer> tags scores nothing: read it there, or ask for the bare answer"
    fine = "the right answer is also seen where a model writes <answer> tags around it"
    return RewardCheck(name, "warn" if found else "ok", words if found else fine, found)


def _speed(trial: Trial) -> RewardCheck:
    if not trial.seconds:
        return RewardCheck("speed", "warn", "no call to time")
    ordered = sorted(trial.seconds)
    median, p95 = statistics.median(ordered), ordered[int(0.95 * (len(ordered) - 1))]
    rate = len(ordered) / max(sum(ordered), 1e-9)
    words = (
        f"median {duration_of(median)}, 95th percentile {duration_of(p95)}, {rate:,.0f} scores/s in a process"
    )
    return RewardCheck("speed", "info", words)


def duration_of(seconds: float) -> str:
    """Seconds in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _width(trial: Trial) -> float:
    declared = trial.function.declared.range
    return declared[1] - declared[0] if declared else 1.0


def _counted(names: Iterator[str]) -> str:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} ×{count}" for name, count in sorted(counts.items(), key=lambda kv: -kv[1]))
