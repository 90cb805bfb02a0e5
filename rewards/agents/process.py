"""Rewards for the steps of an episode or of a thought, rather than for its end."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

from vlrl.errors import ConfigError
from vlrl.parsing.extract import MAX_CHARS, THINK_ANSWER
from vlrl.rewards.inner import inner_reward
from vlrl.scoring.author import Scored, reward
from vlrl.types import Turn

MAX_STEPS = 256

Aggregate: TypeAlias = Literal["min", "mean", "product", "last"]
_AGGREGATES: Mapping[Aggregate, Callable[[Sequence[float]], float]] = {
    "min": min,
    "mean": lambda values: math.fsum(values) / len(values),
    "product": math.prod,
    "last": lambda values: values[-1],
}


@reward
def turn_process(
    completion: str,
    answer: Any,
    *,
    turns: Sequence[Turn],
    measure: str,
    measure_options: Mapping[str, Any] | None = None,
    references: Literal["same", "each"] = "same",
    mean: bool = True,
    **context: Any,
) -> Scored:
    """Another reward's value of every turn: Σ_k m(turn k) / n, and what of it each turn earned.

    With `algorithm.credit` discounted, turn_groups or state_groups a turn is paid for its own value, as for
    what its environment gives; with episode the sum counts. Range: that of `measure` (times the number of
    turns without `mean`). With `references: each` the answer is a list of one reference a turn, such as the
    actions of a recorded episode; n is the larger of their number and the turns', and a turn beyond
    them earns 0, so that neither stopping early nor going on pays.

    Args:
        completion: not looked at; the turns' texts are.
        answer: for `measure`: the sample's for every turn, or a list of one a turn.
        turns: of the episode.
        measure: the reward that is asked about each: a plain function. It sees the images of its turn as
            `canvases`.
        measure_options: its options.
        references: "same" or "each".
        mean: divide by n; False is the sum, which more turns can raise.
        context: the sample's metadata, for `measure`.

    Raises:
        ConfigError: for a measure that is not a plain function, or other references.
        ValueError: for `each`, if the answer is not a list; if `measure` finds the sample unusable.
    """
    inner = inner_reward(measure, measure_options, "turn_process")
    if references not in ("same", "each"):
        raise ConfigError(f"references={references!r}; give same or each")
    expected: Sequence[Any] = [answer] * len(turns)
    if references == "each":
        if not isinstance(answer, Sequence) or isinstance(answer, str) or not answer:
            raise ValueError("references: each needs an answer that is a list of one reference a turn")
        expected = answer
    n = max(len(expected), len(turns), 1) if mean else 1
    earned = []
    for number, turn in enumerate(turns):
        given = {**context, "canvases": turn.canvases}
        value = inner(turn.text, expected[number], given) if number < len(expected) else 0.0
        earned.append(value / n)
    return Scored(math.fsum(earned), {"turn_process/num_turns": float(len(turns))}, tuple(earned))


@reward
def step_process(
    completion: str,
    answer: Any,
    *,
    measure: str,
    measure_options: Mapping[str, Any] | None = None,
    separator: str = "\n\n",
    aggregate: Aggregate = "min",
    part: Literal["think", "whole"] = "think",
    **context: Any,
) -> float:
    """Another reward's value of every step of a thought, as one number: their minimum, mean, product or last.

    Steps are the pieces between separators that are not blank, of the think part of a strict think/answer
    completion or of the whole. Range: that of `measure`. Source of the aggregates: min, Math-Shepherd (arXiv
    2312.08935, section 3.4); product, Let's Verify Step by Step (arXiv 2305.20050, section 2.6). No step,
    more than MAX_STEPS, and a completion out of form score 0. With mean a policy is paid for good steps put
    between bad ones; with min and product for saying less: keep an outcome reward beside it.

    Args:
        completion: what the model wrote.
        answer: for `measure`.
        measure: the reward that is asked about each step: a plain function.
        measure_options: its options; a step has no tags, so those of text rewards want `part: whole`.
        separator: between steps, as it is.
        aggregate: of the steps' values.
        part: where steps are looked for.
        context: the sample's metadata, for `measure`.

    Raises:
        ConfigError: for a measure that is not a plain function, an empty separator, another aggregate or
            part.
        ValueError: if `measure` finds the sample unusable.
    """
    if not separator or aggregate not in _AGGREGATES or part not in ("think", "whole"):
        raise ConfigError(
            f"step_process: separator={separator!r} must not be empty, aggregate={aggregate!r} one of "
            f"{', '.join(get_args(Aggregate))}, part={part!r} think or whole"
        )
    inner = inner_reward(measure, measure_options, "step_process")
    steps = _steps(completion, separator, part)
    if not 0 < len(steps) <= MAX_STEPS:
        inner("", answer, context)  # a sample that is unusable is so whatever was said (law 7)
        return 0.0
    return _AGGREGATES[aggregate]([inner(step, answer, context) for step in steps])


def _steps(completion: str, separator: str, part: str) -> list[str]:
    match = THINK_ANSWER.fullmatch(completion) if part == "think" else None
    text = completion if part == "whole" else match.group(1) if match else ""
    if len(text) > MAX_CHARS:
        return []
    return [step.strip() for step in text.split(separator) if step.strip()]
