"""A weighted list of criteria, some read by a judge and some computed by other rewards, as one reward."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from vlrl.config.options import ScoringConfig
from vlrl.errors import ConfigError
from vlrl.foreign.failure import Failure
from vlrl.parsing.extract import Part
from vlrl.rewards.judge.scores import judge
from vlrl.scoring.author import Scored, reward
from vlrl.scoring.context import context_of
from vlrl.scoring.execute import Executor, ScoringRequest
from vlrl.scoring.functions import RewardFunction, Value, find_reward
from vlrl.scoring.per_loop import PerLoop
from vlrl.types import Media, Sample, Trajectory

MAX_CRITERIA = 64
MAX_CRITERION_CHARS = 4000

CRITERION = (
    "Does the answer below meet this criterion? {{ hi }} if it does, {{ lo }} if it does not, between them "
    "if it does in part. Judge this criterion alone.\nCriterion: {{ metadata.criterion }}"
)

_KEYS = {"judge", "reward", "options", "weight", "name"}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One line of a rubric.

    Attributes:
        name: of its note.
        weight: its points; negative ones are lost where it is met.
        text: what the judge is asked; "" for a reward.
        reward: a registered name or ./file.py:function; "" for the judge.
        options: of the reward.
    """

    name: str
    weight: float
    text: str = ""
    reward: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


@reward(range=(0.0, 1.0))
async def rubric(
    completion: str,
    answer: Any,
    *,
    sample: Sample,
    trajectory: Trajectory | None = None,
    criteria: Sequence[Mapping[str, Any]] = (),
    endpoint: Mapping[str, Any] | None = None,
    part: Part = "answer",
    prompt: Sequence[Mapping[str, Any]] = (),
    media: Sequence[Media] = (),
    step: int = 0,
) -> Scored:
    """max(0, min(1, Σ_j w_j·v_j / Σ_{w_j > 0} w_j)) of criteria j with values v_j in [0, 1].

    Range [0, 1]; every v_j is logged as rubric/NAME. Source: Rubrics as Rewards (Gunjal et al. 2025, arXiv
    2507.17746, equation 1, explicit aggregation); points that are lost, HealthBench (arXiv 2505.08775).

    A criterion is {judge: text} or {reward: name, options: {…}}, with `weight` (1) and `name`. A judge's is
    one question to the endpoint, and what `judge` says of persuasion holds. A reward's runs in processes of
    its own with scoring's default limits, its value cut to [0, 1]; it must not be async or gpu. Criteria of
    the row (metadata key `criteria`) come after the config's; they may be for the judge only, because a
    dataset does not decide which code runs. One criterion that cannot be scored is a failure of the sample.

    Args:
        completion: what the model wrote.
        answer: the reference, for the judge and for rewards.
        sample: for its metadata.
        trajectory: what rewards are given by name.
        criteria: the config's.
        endpoint: who judges, as for `judge`.
        part: what the judge is shown; a reward has this as an option of its own.
        prompt: the question, for the judge.
        media: the question's images, for the judge.
        step: of training, for rewards that ask.

    Raises:
        ConfigError: for criteria that are none, or a judge's without an endpoint.
        ValueError: for a row's criteria that are none.
        RuntimeError: naming the criterion that could not be scored.
    """
    lines = _all_criteria(criteria, sample)
    asked, computed = ([c for c in lines if bool(c.text) is judged] for judged in (True, False))
    if asked and endpoint is None:
        raise ConfigError("rubric: criteria for a judge need the option endpoint, as the reward judge does")
    if computed and trajectory is None:
        raise ConfigError("rubric: criteria that are rewards need the trajectory")

    def ask(criterion: Criterion) -> Any:
        shown = replace(sample, metadata={**sample.metadata, "criterion": criterion.text})
        return judge(
            completion, answer, endpoint=endpoint or {}, rubric=CRITERION, scale=(0, 1), part=part,
            prompt=prompt, media=media, sample=shown,
        )  # fmt: skip

    judged, scored = await asyncio.gather(
        asyncio.gather(*(ask(criterion) for criterion in asked)),
        _computed(computed, completion, answer, trajectory, step),
    )
    verdicts = [each if isinstance(each, Scored) else Scored(each) for each in judged]
    values = [*(verdict.value or 0.0 for verdict in verdicts), *scored]
    by_name = {c.name: v for c, v in zip([*asked, *computed], values, strict=True)}
    reasons = [f"{c.name}: {v.explanation}" for c, v in zip(asked, verdicts, strict=True) if v.explanation]
    return Scored(
        weighted(lines, by_name),
        {f"rubric/{criterion.name}": by_name[criterion.name] for criterion in lines},
        explanation="\n".join(reasons),
    )


def weighted(lines: Sequence[Criterion], values: Mapping[str, float]) -> float:
    """The formula of `rubric`, of values by the criteria's names."""
    points = math.fsum(line.weight * values[line.name] for line in lines)
    return max(0.0, min(1.0, points / math.fsum(line.weight for line in lines if line.weight > 0)))


def read_criteria(given: Any, *, trusted: bool) -> list[Criterion]:
    """The criteria of a list from a config or a row.

    Args:
        given: the list.
        trusted: whether it may name rewards.

    Raises:
        ValueError: saying what is wrong with which.
    """
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) > MAX_CRITERIA:
        raise ValueError(f"criteria is a list of at most {MAX_CRITERIA}, not {given!r:.60}")
    return [_criterion(number, line, trusted) for number, line in enumerate(given)]


def _criterion(number: int, line: Any, trusted: bool) -> Criterion:
    where = f"criteria.{number}"
    if isinstance(line, str):
        line = {"judge": line}
    if not isinstance(line, Mapping) or (set(line) - _KEYS) or ("judge" in line) is ("reward" in line):
        raise ValueError(f"{where} is {{judge: text}} or {{reward: name, options: {{…}}}}, not {line!r:.80}")
    weight, text, name = line.get("weight", 1.0), line.get("judge", ""), str(line.get("reward", ""))
    is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not is_number or not math.isfinite(weight) or not weight:
        raise ValueError(f"{where}: weight={weight!r:.20} must be a number other than 0")
    if name and not trusted:
        raise ValueError(f"{where}: a row's criteria are for the judge; rewards are named in the config")
    if not name and (not isinstance(text, str) or not text.strip() or len(text) > MAX_CRITERION_CHARS):
        raise ValueError(f"{where}: judge is a text of at most {MAX_CRITERION_CHARS} characters")
    label = str(line.get("name") or (name.rsplit(":", 1)[-1] if name else f"criterion_{number}"))
    return Criterion(label[:60], float(weight), text, name, dict(line.get("options") or {}))


def _all_criteria(given: Sequence[Mapping[str, Any]], sample: Sample) -> list[Criterion]:
    """The config's criteria and the row's, under different names."""
    of_row = sample.metadata.get("criteria") or ()
    try:
        lines = [] if given == of_row else read_criteria(given, trusted=True)
    except ValueError as error:
        raise ConfigError(f"rubric: {error}") from error
    lines += read_criteria(of_row, trusted=False)
    taken: dict[str, int] = {}
    for number, line in enumerate(lines):
        taken[line.name] = taken.get(line.name, 0) + 1
        if taken[line.name] > 1:
            lines[number] = replace(line, name=f"{line.name}_{taken[line.name]}")
    if not any(line.weight > 0 for line in lines):
        raise ValueError("rubric: no criterion of the config or of the row has a weight above 0")
    return lines


async def _computed(
    lines: Sequence[Criterion], completion: str, answer: Any, trajectory: Trajectory | None, step: int
) -> list[float]:
    if not lines or trajectory is None:
        return []
    functions, executor = await _executor(lines)
    requests = [
        ScoringRequest(number, completion, answer, context_of(trajectory, step, function))
        for number, function in enumerate(functions)
    ]
    results: list[Value | Failure] = await executor.run(requests)
    values = []
    for line, result in zip(lines, results, strict=True):
        if isinstance(result, Failure):
            raise RuntimeError(f"criterion {line.name!r} ({line.reward}): {result.reason}")
        values.append(max(0.0, min(1.0, result[0])))
    return values


_Executors: TypeAlias = dict[str, tuple[list[RewardFunction], Executor]]
"""A list of criteria as JSON → its rewards and the processes that call them."""


async def _close(executors: _Executors) -> None:
    for _, executor in executors.values():
        executor.close()


_EXECUTORS: PerLoop[_Executors] = PerLoop(dict, _close)


async def _executor(lines: Sequence[Criterion]) -> tuple[list[RewardFunction], Executor]:
    executors = await _EXECUTORS.get()
    key = json.dumps([[line.reward, dict(line.options)] for line in lines], sort_keys=True)
    if key not in executors:
        functions = [find_reward(line.reward, line.options) for line in lines]
        for line, function in zip(lines, functions, strict=True):
            if function.in_driver or function.declared.batched:
                raise ConfigError(f"rubric: {line.reward!r} is async, batched or gpu; list it in rewards")
        executors[key] = functions, Executor(functions, ScoringConfig())
    return executors[key]
