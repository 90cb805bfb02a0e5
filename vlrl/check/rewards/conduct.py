"""Checks of a call's side effects, and of answers that are wrong in one respect."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vlrl.check.rewards.check import Finding, RewardCheck
from vlrl.check.rewards.trial import Trial

_EQUAL = 1e-9


def conduct(trial: Trial) -> Iterator[RewardCheck]:
    """What calls did to their arguments, to batches, to the event loop and to the world."""
    yield _arguments(trial)
    yield from _kind_of_call(trial)
    yield _side_effects(trial)


def places(trial: Trial) -> Iterator[RewardCheck]:
    """Whether a wrong place, action or argument costs anything, where answers have such a thing.

    A reward may look at none of one kind: `action_type` not at places. One that pays some of them fully, and
    others not, lets wrong answers through.
    """
    by_name: dict[str, list[tuple[Finding, bool]]] = {}
    for one in trial.tries if trial.profile == "answer" else ():
        right = trial.score_of(one.sample, "reference")
        if one.case.kind == "misplaced" and one.score is not None and right is not None:
            finding = Finding(one, f"scores {one.score:g}, as the right answer does")
            by_name.setdefault(one.case.name, []).append((finding, one.score >= right - _EQUAL))
    for name, tried in by_name.items():
        paid = [finding for finding, is_paid in tried if is_paid]
        if not paid:
            yield RewardCheck(f"{name}s", "ok", f"{len(tried)} score less than the right answer")
        elif len(paid) == len(tried):
            yield RewardCheck(
                f"{name}s", "warn", f"all {len(tried)} score like the right answer: it does not look at it"
            )
        else:
            yield RewardCheck(
                f"{name}s", "fail", f"{len(paid)} of {len(tried)} score like the right answer", paid
            )


def _arguments(trial: Trial) -> RewardCheck:
    changed = trial.notes.get("changes")
    if not changed:
        return RewardCheck("arguments", "ok", "left as they were")
    words = f"it changes {', '.join(changed)}: copy what is to be changed, as others read it too"
    return RewardCheck("arguments", "fail", words)


def _kind_of_call(trial: Trial) -> Iterator[RewardCheck]:
    """What only batched rewards, or only async ones, can do wrong."""
    if trial.function.declared.batched:
        odd = trial.notes.get("batch", ())
        words = f"in batches it {odd[0]}: give one value a sample" if odd else "one value a sample"
        yield RewardCheck("batches", "fail" if odd else "ok", words)
    if trial.function.is_async:
        blocks = "blocks" in trial.notes
        words = (
            "it computes or sleeps where it ought to wait, and all other calls wait for it: await, use "
            "asyncio.to_thread, or write it without async"
        )
        yield RewardCheck(
            "event loop", "warn" if blocks else "ok", words if blocks else "waits without blocking it"
        )


def _side_effects(trial: Trial) -> RewardCheck:
    kinds = {
        "network": "network",
        "files": "files",
        "processes": "processes",
        "threads": "threads left running",
    }
    seen = [f"{name}: {_few(trial.notes[what])}" for what, name in kinds.items() if trial.notes.get(what)]
    if not seen:
        return RewardCheck("side effects", "ok", "no network, no file written, no process or thread left")
    only_asks = trial.function.is_async and not trial.notes.keys() & {"files", "processes", "threads"}
    return RewardCheck("side effects", "info" if only_asks else "warn", "; ".join(seen))


def _few(details: Sequence[str], most: int = 3) -> str:
    more = f" and {len(details) - most} more" if len(details) > most else ""
    return ", ".join(details[:most]) + more
