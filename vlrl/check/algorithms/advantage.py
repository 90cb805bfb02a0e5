"""The contract of an advantage: numbers that follow from a group's episodes, however these are ordered."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vlrl.algorithm.credit import turn_advantages
from vlrl.check.algorithms.check import Clause, config_of, divided, judged
from vlrl.check.algorithms.values import check_values
from vlrl.config.algorithm import SHARED, takes_values
from vlrl.errors import ConfigError
from vlrl.ledger import FloatArray, Ledger, Turn
from vlrl.types import Prompt, Sample, Score, Trajectory

SIZES = (2, 3, 5)
"""Members of a group; 2 are what failures may leave."""
SCALES = (1e-6, 1.0, 1e6)
PARTS = ("accuracy", "format")
"""Of each reward, beside those that the options name."""
STEP_TOKENS = 5
"""Of a turn: two that are seen, then three that are generated."""

AdvantageFn = Callable[["GroupEpisodes"], list[FloatArray]]


class GroupEpisodes(NamedTuple):
    """A group's scored members, and the greedy episode of the same sample."""

    members: list[Trajectory]
    greedy: Trajectory


def check_advantage(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Try an advantage; `ok` says whether it keeps the contract.

    Args:
        name: a registered one, or ./file.py:function.
        options: its own, and those beside it in the config, such as discount.

    Raises:
        ConfigError: for a name that is not there, a file that fails, or an option that is not read.
    """
    own, shared = divided(options, SHARED["credit"])
    if takes_values(name):
        return check_values(name, own, shared, options)
    config = config_of({"credit": {"name": name, "options": own}, **shared}, "credit")
    alone = config.has_greedy_baseline
    parts = (*PARTS, *_texts(own))

    def advantage(episodes: GroupEpisodes) -> list[FloatArray]:
        return turn_advantages(episodes.members, config, [episodes.greedy])

    def with_groups(clause: Callable[[AdvantageFn, Sequence[GroupEpisodes]], str]) -> Clause:
        return lambda function: clause(function, list(_groups(parts, alone=alone)))

    clauses = {title: with_groups(clause) for title, clause in CLAUSES.items()}
    return judged(name, options, clauses, advantage)


def numbers(advantage: AdvantageFn, groups: Sequence[GroupEpisodes]) -> str:
    """What it returns has its form, for rewards far apart, close and equal; episodes stay as they were."""
    for episodes in groups:
        before = pickle.dumps(episodes)
        try:
            advantage(episodes)
        except ConfigError as error:
            return str(error)
        if pickle.dumps(episodes) != before:
            return "changes the episodes in place; they are trained, logged and kept as they are"
    return ""


def members(advantage: AdvantageFn, groups: Sequence[GroupEpisodes]) -> str:
    """Episodes get the same in whatever order they come: which is first says nothing of them.

    Of equal ones the first may be taken, as `best_of` does.
    """
    for members, greedy in groups:
        if len({t.score.total for t in members if t.score}) < len(members):
            continue
        found = advantage(GroupEpisodes(members[::-1], greedy))[::-1]
        expected = advantage(GroupEpisodes(members, greedy))
        for one, other in zip(expected, found, strict=True):
            if not np.allclose(one, other, rtol=1e-5, atol=1e-9):
                return "what an episode gets depends on the order of its group's members"
    return ""


def repeats(advantage: AdvantageFn, groups: Sequence[GroupEpisodes]) -> str:
    """Two calls agree to the last bit: a run that is resumed computes the advantages again."""
    for episodes in groups:
        if not all(map(np.array_equal, advantage(episodes), advantage(episodes))):
            return "two calls with the same episodes differ; a resumed run would be another one (law 8)"
    return ""


CLAUSES: Mapping[str, Callable[[AdvantageFn, Sequence[GroupEpisodes]], str]] = {
    "numbers": numbers,
    "members": members,
    "repeats": repeats,
}


def _groups(parts: Sequence[str], *, alone: bool) -> Iterator[GroupEpisodes]:
    """Groups of all sizes and scales, of one turn and of several, and whose rewards are all equal.

    alone: also a single member beside a greedy one.
    """
    rng = np.random.default_rng(0)
    for size in (1, *SIZES) if alone else SIZES:
        for scale in (*SCALES, 0.0):
            for turns in (np.ones(size + 1, int), rng.integers(1, 4, size + 1)):
                totals = 1.0 + scale * rng.permutation(np.linspace(-1.0, 1.0, size + 1))
                *found, greedy = [
                    _episode(index, float(total), int(count), parts)
                    for index, (total, count) in enumerate(zip(totals, turns, strict=True))
                ]
                yield GroupEpisodes(found, greedy)


def _episode(index: int, total: float, num_turns: int, parts: Sequence[str]) -> Trajectory:
    """A scored episode whose turns have earned equal shares of its reward."""
    starts = range(0, num_turns * STEP_TOKENS, STEP_TOKENS)
    turns = tuple(
        Turn((at, at + 2), (at + 2, at + STEP_TOKENS), state=f"state {number % 2}", reward=total / num_turns)
        for number, at in enumerate(starts)
    )
    num_tokens = num_turns * STEP_TOKENS
    ids, positions = np.arange(num_tokens), np.tile(np.arange(num_tokens), (3, 1))
    mask = ids % STEP_TOKENS >= 2
    ledger = Ledger(ids, positions, mask, np.where(mask, -1.0, 0.0).astype(np.float32), (), turns, ())
    sample = Sample("check", (), (), Prompt(ids[:2], ids[:2], positions[:, :2], 2))
    score = Score(total, dict.fromkeys(parts, total), tuple(turn.reward for turn in turns))
    return Trajectory(sample, index, (ledger,), "", "ok", score)


def _texts(value: Any) -> list[str]:
    """The texts in a function's options, any of which may name a part of the reward."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [text for item in value.items() for text in _texts(list(item))]
    return [text for item in value for text in _texts(item)] if isinstance(value, list | tuple) else []
