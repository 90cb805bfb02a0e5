"""The run's reward: plug-ins with weights, gates and clips, every part kept by name.

    value_i  = the reward's number, or the sum of its parts, clipped to rewards[i].clip
    w_i      = rewards[i].weight at this step
    total    = Σ_i w_i · value_i                                     if every gate holds
             = Σ_{gates} w_i · value_i + Σ_{others} min(0, w_i · value_i)   if any does not
    and the total is clipped to scoring.clip.

A gate holds if its reward, before any clip, reaches rewards[i].gate. Behind a closed one the others can only
cost: were penalties forgiven too, a model could break the format to escape them. Parts are logged as the
rewards returned them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Self

from vlrl.config import Config
from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ConfigError
from vlrl.foreign.failure import Failure
from vlrl.rounding import summed
from vlrl.scoring.context import context_of
from vlrl.scoring.execute import Executor, ScoringRequest
from vlrl.scoring.functions import RewardFunction, Value, find_reward, require_single
from vlrl.scoring.metrics import take_metrics
from vlrl.types import Score, Trajectory

WatchFn = Callable[[Sequence[Trajectory], float, float], None]
"""(trajectories that were scored together, start, end), both by time.perf_counter."""
ENV_REWARD = "episode_return"
"""The reward whose value each turn earned a part of: what its environment gave for it."""


class RewardFailure(Exception):
    """A completion that could not be scored; law 7: not a reward.

    Attributes:
        reward: the reward's name.
        sample_id: the sample's.
        reason: what went wrong, in a line.
        trace: the traceback, if the reward raised something.
    """

    def __init__(self, reward: str, sample_id: str, reason: str, trace: str = "") -> None:
        super().__init__(f"reward {reward!r}, sample {sample_id!r}: {reason}")
        self.reward, self.sample_id, self.reason, self.trace = reward, sample_id, reason, trace


@dataclass(frozen=True, slots=True)
class Term:
    """One summand of a source's total: its number among all rewards, its options, its function."""

    number: int
    label: str
    reward: RewardConfig
    function: RewardFunction


class ComposedReward:
    """Scores trajectories by the rewards of their source. Close it: it may have processes."""

    def __init__(
        self,
        configs: Sequence[RewardConfig],
        by_source: Mapping[str, Sequence[RewardConfig]] | None = None,
        scoring: ScoringConfig | None = None,
        *,
        inline: bool = False,
        optional: bool = False,
    ) -> None:
        """Find the plug-ins; no process is started before there is something to score.

        Args:
            configs: the run's rewards.
            by_source: name of a data source → the rewards of its samples; empty means the run's.
            scoring: limits and total clip.
            inline: call every reward in this process, without limits.
            optional: something else teaches too, so there may be none; all completions then score 0.

        Raises:
            ConfigError: for an unknown name, an option no reward takes, or samples without any reward.
        """
        own = {source: rewards for source, rewards in (by_source or {}).items() if rewards}
        self.optional = optional
        if not configs and not optional and len(own) < len(by_source or {"": ()}):
            raise ConfigError("rewards is empty; give at least one, for instance - name: answer_exact")
        self._scoring = scoring or ScoringConfig()
        all_terms: list[Term] = []
        self._terms = _terms(configs, all_terms)
        self._own_terms = {source: _terms(rewards, all_terms) for source, rewards in own.items()}
        self.watch: WatchFn = lambda trajectories, start, end: None  # for traces
        self._executor = Executor(
            [term.function for term in all_terms],
            self._scoring,
            limits_s=[term.reward.timeout_s for term in all_terms],
            inline=inline,
        )

    @classmethod
    def of_run(cls, config: Config, by_source: Mapping[str, Sequence[RewardConfig]]) -> Self:
        """A run's rewards; beside a teacher they are optional."""
        taught = config.algorithm.teacher is not None
        found = cls(config.rewards, by_source, config.scoring, optional=taught)
        if config.algorithm.has_greedy_baseline:
            terms = [term for terms in (found._terms, *found._own_terms.values()) for term in terms]
            counted = [term.function for term in terms if term.reward.weight != 0]
            require_single(counted, config.algorithm.credit.name)
        return found

    def first_part(self, source: str) -> str:
        """Name of the first reward of a source's samples."""
        return self._own_terms.get(source, self._terms)[0].label

    def take_metrics(self) -> dict[str, float]:
        """Numbers that rewards published since they were last taken, such as a judge's tokens and cost."""
        return take_metrics()

    async def score(self, trajectory: Trajectory, step: int = 0) -> Score:
        """Score one trajectory; many are quicker scored together.

        Raises:
            RewardFailure: naming the reward, the sample and what went wrong.
        """
        (result,) = await self.score_all([trajectory], step)
        if isinstance(result, RewardFailure):
            raise result
        return result

    async def score_all(
        self, trajectories: Sequence[Trajectory], step: int = 0, groups: Sequence[int] | None = None
    ) -> list[Score | RewardFailure]:
        """Score finished trajectories under the weights of a step, in their order.

        Args:
            trajectories: to be scored.
            step: of training.
            groups: of each the number of its group, for rewards that see all completions of a prompt; None
                puts every one in a group of its own.
        """
        terms = [self._own_terms.get(t.sample.source, self._terms) for t in trajectories]
        numbers: Sequence[int | None] = groups if groups is not None else [None] * len(trajectories)
        requests = [
            ScoringRequest(
                term.number, t.completion, t.sample.answer, context_of(t, step, term.function), number
            )
            for t, chosen, number in zip(trajectories, terms, numbers, strict=True)
            for term in chosen
        ]
        start = time.perf_counter()
        results = iter(await self._executor.run(requests))
        self.watch(trajectories, start, time.perf_counter())
        return [
            self._composed(t, chosen, [next(results) for _ in chosen], step)
            for t, chosen in zip(trajectories, terms, strict=True)
        ]

    def close(self) -> None:
        """End the pool."""
        self._executor.close()

    def __enter__(self) -> Self:
        """Enter a context: it is closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the pool."""
        self.close()

    def _composed(
        self, trajectory: Trajectory, terms: Sequence[Term], results: Sequence[Value | Failure], step: int
    ) -> Score | RewardFailure:
        values, parts = list[Value](), dict[str, float]()
        num_turns = len(trajectory.turns)
        for term, result in zip(terms, results, strict=True):
            if isinstance(result, Failure):
                return RewardFailure(term.label, trajectory.sample.id, result.reason, result.trace)
            if result.turns and len(result.turns) != num_turns:
                reason = f"returned values of {len(result.turns)} turns for an episode of {num_turns}"
                return RewardFailure(term.label, trajectory.sample.id, reason)
            if term.reward.name == ENV_REWARD:
                result = result._replace(turns=tuple(turn.reward for turn in trajectory.turns))
            values.append(result)
            # A function's own name is not the label of its second use; a name that is taken gets a number.
            for part, number in result.parts.items():
                name = term.label if part == term.function.label else part
                parts[f"{term.label}.{name}" if name in parts else name] = number
        explanations = {t.label: v.explanation for t, v in zip(terms, values, strict=True) if v.explanation}
        numbers = [value.number for value in values]
        turns = _turn_shares([v.turns for v in values], factors(terms, numbers, step), num_turns)
        return Score(total(terms, numbers, step, self._scoring.clip), parts, turns, explanations)


def total(
    terms: Sequence[Term], values: Sequence[float], step: int, clip: tuple[float, float] | None = None
) -> float:
    """The formula on top of this file, of the terms' values at a step."""
    shares = [share for share, _ in _shares(terms, values, step)]
    return _clipped(summed(shares), clip)


def factors(terms: Sequence[Term], values: Sequence[float], step: int) -> list[float]:
    """What each term's value is multiplied with to give its share of the total, before the total's clip."""
    return [factor for _, factor in _shares(terms, values, step)]


def _shares(terms: Sequence[Term], values: Sequence[float], step: int) -> list[tuple[float, float]]:
    """What each term adds to the total, and that over its value: (share, factor)."""
    is_open = True
    for term, value in zip(terms, values, strict=True):
        if (gate := term.reward.gate) is not None:
            is_open = is_open and (value >= gate if _higher_is_better(term) else value <= gate)
    shares = []
    for term, value in zip(terms, values, strict=True):
        weight = weight_at(term.reward.weight, step)
        share = weight * _clipped(value, term.reward.clip)
        if is_open or term.reward.gate is not None or share < 0:
            shares.append((share, share / value if value else weight))
        else:
            shares.append((0.0, 0.0))
    return shares


def _turn_shares(
    of_terms: Sequence[Sequence[float]], by: Sequence[float], num_turns: int
) -> tuple[float, ...]:
    """What the terms that say so add to the total, by turn; empty if none does."""
    by_turn = [(turns, factor) for turns, factor in zip(of_terms, by, strict=True) if turns]
    if not by_turn:
        return ()
    return tuple(summed(factor * turns[number] for turns, factor in by_turn) for number in range(num_turns))


def weight_at(weight: float | Sequence[tuple[int, float]], step: int) -> float:
    """A weight at a step: linear between the given [step, weight], constant before and after them."""
    if isinstance(weight, int | float):
        return weight
    for (start, low), (end, high) in pairwise(weight):
        if step < end:
            return low + (high - low) * max(0, step - start) / (end - start)
    return weight[-1][1]


def _terms(configs: Sequence[RewardConfig], all_terms: list[Term]) -> list[Term]:
    """The plug-ins of a list of rewards under names of their own; they are added to all_terms."""
    terms: list[Term] = []
    for config in configs:
        function = find_reward(config.name, config.options, config.adapter)
        namesakes = sum(term.function.label == function.label for term in terms)
        label = f"{function.label}_{namesakes + 1}" if namesakes else function.label
        terms.append(Term(len(all_terms), label, config, function))
        _require_sign(terms[-1])
        all_terms.append(terms[-1])
    return terms


def _require_sign(term: Term) -> None:
    weight = term.reward.weight
    highest = weight if isinstance(weight, int | float) else max(each for _, each in weight)
    if highest > 0 and not _higher_is_better(term):
        raise ConfigError(
            f"reward {term.reward.name!r}: lower is better, so weight={weight} would reward the wrong thing; "
            "give it a negative weight"
        )


def _higher_is_better(term: Term) -> bool:
    return term.function.declared.higher_is_better


def _clipped(value: float, ends: tuple[float, float] | None) -> float:
    return value if ends is None else min(max(value, ends[0]), ends[1])
