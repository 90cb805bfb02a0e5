"""A reward run over samples and the battery: in processes under watch, and again in fresh ones."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from vlrl.check.rewards.battery import Case, cases_of
from vlrl.check.rewards.calls import Calls, require_fields
from vlrl.check.rewards.forms import TARGET, Form, candidates, put
from vlrl.check.rewards.samples import built_in_sets
from vlrl.errors import ConfigError
from vlrl.foreign.failure import Failure
from vlrl.scoring.functions import RewardFunction, Value
from vlrl.types import Sample

NUM_TIMED = 200
"""Calls that the speed is taken from, at least; of an async reward fewer, as each may cost money."""
NUM_TIMED_ASYNC = 8
NUM_PROBED = 24
NUM_PROBED_ASYNC = 2
"""Samples on which the form of the answer is looked for, and the built-in set."""
NUM_FIXED = 3
"""Samples on which completions that are the same for every sample are tried."""
EPISODE_NAMES = frozenset({"episode_return", "success"})
"""What a reward may ask for that an environment says, whatever the text."""
SLOW_S = 0.25
"""What takes longer on the first sample is not tried on the others: once is enough to know."""
_ORDINARY = ("reference", "wrong", "empty")
"""Kinds of cases that training brings all the time."""
_GAIN = 1e-3
"""Least gain over the empty completion for a right answer to count as paid."""
_EQUAL = 1e-9

Profile: TypeAlias = Literal["answer", "form", "penalty"]
"""answer: it compares. form: it does not look at the answer. penalty: nothing scores above saying nothing."""


@dataclass(slots=True)
class Try:
    """One case on one sample.

    Attributes:
        sample: whose answer counts.
        case: what was said.
        result: of the first call.
        higher_is_better: as the reward was declared.
        again: values of later calls, NaN for one that failed.
        seconds: of the first call; its share of a batch.
    """

    sample: Sample
    case: Case
    result: Value | Failure
    higher_is_better: bool = True
    again: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def trouble(self) -> Failure | None:
        """Why there is no score, if the call failed."""
        return self.result if isinstance(self.result, Failure) else None

    @property
    def score(self) -> float | None:
        """The higher the better; None for a failure, and where the reward does not apply."""
        if isinstance(self.result, Failure) or not self.result[1]:
            return None
        return self.result[0] if self.higher_is_better else -self.result[0]

    @property
    def timed_out(self) -> bool:
        """It took too long, or its process died."""
        return _timed_out(self.result)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried, and the results.

    Attributes:
        function: the reward.
        data: where the samples are from, in words.
        samples: in order.
        form: in which the reward takes an answer; None if it took none.
        tries: all, sample by sample in the order of the battery.
        profile: what kind of reward this shows itself to be.
        seconds: of calls on ordinary completions.
        notes: what calls did beside returning → details, see `vlrl.check.rewards.watched`.
    """

    function: RewardFunction
    data: str
    samples: Sequence[Sample]
    form: Form | None
    tries: Sequence[Try]
    profile: Profile
    seconds: Sequence[float]
    notes: Mapping[str, Sequence[str]]

    def of(self, sample: Sample) -> list[Try]:
        """A sample's tries."""
        return [one for one in self.tries if one.sample is sample]

    def score_of(self, sample: Sample, kind: Literal["empty", "reference"]) -> float | None:
        """What the empty completion, or the right answer, scores."""
        return next((one.score for one in self.of(sample) if one.case.kind == kind), None)


def run_trial(
    function: RewardFunction,
    samples: Sequence[Sample] | None,
    data: str,
    *,
    timeout_s: float,
    seed: int,
    limit: int,
    on_phase: Callable[[str], None] = lambda name: None,
) -> Trial:
    """Try a reward.

    Args:
        function: the reward.
        samples: to try it on; None takes the built-in set that fits it.
        data: where they are from.
        timeout_s: of one call.
        seed: of random bytes.
        limit: samples of a built-in set at most.
        on_phase: called with what is being done.

    Raises:
        ConfigError: for a reward that refuses its options, or wants metadata that samples have not; for one
            that looks at an episode.
    """
    if asked := function.wanted & EPISODE_NAMES:
        raise ConfigError(
            f"reward {function.source.name!r} looks at the episode ({', '.join(sorted(asked))}), and a text "
            "is none: vlrl env check tries the environment, vlrl reward score a run's episodes again"
        )
    on_phase("looking for the form of its answers")
    with Calls(function, timeout_s) as calls:
        if samples is None:
            name, samples, form = _fitting(calls)
            samples, data = samples[:limit], f"built-in samples: {name}"
        else:
            require_fields(function, samples)
            form = find_form(calls, samples)[0]
        on_phase("running the battery")
        tries = _run_battery(calls, samples, form or ("text", "{}"), seed)
        seconds = _time_ordinary(calls, tries, on_phase)
        notes = calls.notes
    on_phase("running it again, in other processes and another order")
    fine = [one for one in tries[::-1] if one.trouble is None and one.seconds < SLOW_S]
    if function.in_driver:  # it may be a paid service: only what is ordinary is asked again
        fine = [one for one in fine if one.case.kind in ("reference", "wrong")]
    with Calls(function, timeout_s, hash_seed=1) as calls:
        for one, result in zip(fine, calls.score(_pairs(fine)), strict=True):
            one.again.append(float("nan") if isinstance(result, Failure) else result.number)
        for what, details in calls.notes.items():
            notes.setdefault(what, details)
    return Trial(function, data, samples, form, tries, _profile(tries, samples, function), seconds, notes)


def find_form(calls: Calls, samples: Sequence[Sample]) -> tuple[Form | None, bool]:
    """(the form that the right answers score best in or None, whether it does on each of the samples)."""
    samples = samples[: NUM_PROBED_ASYNC if calls.function.in_driver else NUM_PROBED]
    tried = [(i, form, text) for i, sample in enumerate(samples) for form, text in candidates(sample)]
    first = calls.score([(samples[0], ""), *((samples[0], text) for i, _, text in tried if not i)])
    if all(map(_timed_out, first)):  # it ends its process whatever is said
        return None, False
    base = [_number(r, calls) or 0.0 for r in [first[0], *calls.score([(s, "") for s in samples[1:]])]]
    gains: dict[Form, list[float]] = defaultdict(list)
    results = [*first[1:], *calls.score([(samples[i], text) for i, _, text in tried if i])]
    for (i, form, _), result in zip(tried, results, strict=True):
        if (score := _number(result, calls)) is not None:
            gains[form].append(score - base[i])
    if not gains:
        return None, False
    best = max(gains, key=lambda form: (round(sum(gains[form]), 9), form[0] != TARGET))
    return best, len(gains[best]) == len(samples) and min(gains[best]) > _GAIN


def _timed_out(result: Value | Failure) -> bool:
    """Whether a call took too long, or its process died."""
    return isinstance(result, Failure) and result.reason.startswith(
        ("took longer", "its process", "MemoryError")
    )


def _number(result: Value | Failure, calls: Calls) -> float | None:
    if isinstance(result, Failure) or not result[1]:
        return None
    return result[0] if calls.function.declared.higher_is_better else -result[0]


def _fitting(calls: Calls) -> tuple[str, list[Sample], Form | None]:
    """The first built-in set whose right answers score; else the first that the reward does not refuse."""
    function, sets = calls.function, built_in_sets()
    missing = function.required - {name for samples in sets.values() for name in samples[0].metadata}
    if missing:
        raise ConfigError(
            f"reward {function.source.name!r} needs {sorted(missing)[0]!r}, which no built-in sample has: "
            "give data that has it with --data, or a value with --option"
        )

    def misfit(name: str) -> tuple[int, bool]:
        metadata = sets[name][0].metadata.keys()
        wants_places = "canvases" in function.wanted
        has_places = name in ("box", "boxes", "polygon", "action")
        return len(metadata - function.wanted) - len(metadata & function.wanted), wants_places != has_places

    usable: list[tuple[str, list[Sample], Form | None]] = []
    for name in sorted(sets, key=misfit):
        samples = sets[name]
        if function.required - samples[0].metadata.keys():
            continue
        form, scores = find_form(calls, samples)
        if scores and form is not None and name == "text" and _reads_numbers(calls, sets["number"], form):
            return "number", sets["number"], form
        if scores:
            return name, samples, form
        if form is not None:
            usable.append((name, samples, form))
    return usable[0] if usable else ("text", sets["text"], None)


def _reads_numbers(calls: Calls, samples: Sequence[Sample], form: Form) -> bool:
    """Whether 7.0 is the same as 7, and 12 is not, to a reward that also takes texts."""
    sample = samples[0]
    texts = [put(form[1], text) for text in (sample.answer, f"{sample.answer}.0", samples[1].answer)]
    results = [_number(result, calls) for result in calls.score([(sample, text) for text in texts])]
    right, same, other = [0.0 if result is None else result for result in results]
    return same > right - _EQUAL and same > other + _GAIN


def _run_battery(calls: Calls, samples: Sequence[Sample], form: Form, seed: int) -> list[Try]:
    """Every case on the first sample; then on the others, but for what is heavy, slow or hangs.

    A reward that hangs or dies on every ordinary completion of the first sample is tried on nothing else.
    """
    tries: list[Try] = []
    skipped: set[str] = set()
    for number, sample in enumerate(samples):
        cases = cases_of(sample, samples, form, seed)
        if number:
            cases = [case for case in cases if not case.heavy and case.name not in skipped]
        else:
            tries += _tried(calls, sample, [case for case in cases if case.kind in _ORDINARY])
            cases = [case for case in cases if case.kind not in _ORDINARY]
            if all(one.timed_out for one in tries):
                break
        if number >= NUM_FIXED:
            cases = [case for case in cases if not case.fixed]
        tried = _tried(calls, sample, cases)
        tries += tried
        skipped |= {one.case.name for one in tries if one.timed_out or one.seconds >= SLOW_S}
        if sum(one.timed_out for one in tried) > len(tried) / 2:  # it hangs on anything: enough is known
            break
    return tries


def _tried(calls: Calls, sample: Sample, cases: Sequence[Case]) -> list[Try]:
    results = calls.score([(sample, case.text) for case in cases])
    return [
        Try(sample, case, result, calls.function.declared.higher_is_better, seconds=seconds)
        for case, result, seconds in zip(cases, results, calls.seconds, strict=True)
    ]


def _time_ordinary(calls: Calls, tries: Sequence[Try], on_phase: Callable[[str], None]) -> list[float]:
    """Seconds of calls on ordinary completions, many of them, in processes that have made such calls."""
    on_phase("timing it")
    ordinary = [t for t in tries if t.trouble is None and t.case.kind in _ORDINARY]
    if calls.function.is_async:
        ordinary = ordinary[:NUM_TIMED_ASYNC]
    rounds = 1 if calls.function.is_async or not ordinary else -(-NUM_TIMED // len(ordinary))
    calls.score(_pairs(ordinary * rounds))
    return list(calls.seconds)


def _pairs(tries: Sequence[Try]) -> list[tuple[Sample, str]]:
    return [(one.sample, one.case.text) for one in tries]


def _profile(tries: Sequence[Try], samples: Sequence[Sample], function: RewardFunction) -> Profile:
    scores = [(one.case.kind, one.score) for one in tries if one.score is not None]
    base = max((score for kind, score in scores if kind == "empty"), default=0.0)
    every = [score for _, score in scores]
    highest = function.declared.range[1] if function.declared.range else 0.0
    if every and max(every) <= base + _EQUAL and min(every) < base - _EQUAL and highest <= 0:
        return "penalty"
    by_kind = {kind: [score for k, score in scores if k == kind] for kind in ("reference", "wrong")}
    if by_kind["reference"] and by_kind["wrong"]:
        spread = statistics.pstdev([*by_kind["reference"], *by_kind["wrong"]])
        if spread <= _EQUAL and min(by_kind["reference"]) > base + _EQUAL:
            return "form"
    return "answer"
