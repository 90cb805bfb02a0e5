"""Tokens of all of a step's episodes, in any order, to advantages and returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.errors import ConfigError

Numbers: TypeAlias = npt.NDArray[np.float64]
EstimateFn: TypeAlias = Callable[[Numbers, Numbers], Numbers]
"""([n] rewards, [n] values) of an episode's steps → [n] advantages, such as `gae` with its options."""


@dataclass(frozen=True, slots=True)
class TokenTable:
    """Trained tokens of all ranks.

    Attributes:
        values: [N] V of what came before each token.
        turn_rewards: [N] of each token's whole turn.
        penalties: [N] added to the reward of each token: the KL's, or 0.
        steps: [N, 3] int64: number of its episode, of its turn in it, and its own place in it.
    """

    values: Numbers
    turn_rewards: Numbers
    penalties: Numbers
    steps: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimates:
    """Advantage and return of each token.

    Attributes:
        advantages: [N]; at level turn all tokens of a turn have the same.
        returns: [N] A + V of the token's step, which its value should have been: the λ-return.
        begins: [N] bool, whether a step begins with the token. The values of these are used and learnt.
    """

    advantages: Numbers
    returns: Numbers
    begins: npt.NDArray[np.bool_]


def estimates_of(table: TokenTable, advantages_of: EstimateFn, level: Literal["token", "turn"]) -> Estimates:
    """Advantages and returns of every token.

    A step of the decision process is a token, or a turn whose state is that before its first token. A turn's
    reward is that of its last trained token. What lies between trained tokens, prompts and observations, is
    no step: the next trained token of the episode is the successor, in whichever ledger it is.

    Args:
        table: of all tokens of the episodes, in any order, so that packing and ranks make no difference.
        advantages_of: rewards and values of one episode's steps to advantages.
        level: what a step is.

    Raises:
        ConfigError: if the function returns anything but a finite number for each step.
    """
    num_tokens = len(table.values)
    if num_tokens == 0:
        nothing = np.zeros(0)
        return Estimates(nothing, nothing, np.zeros(0, np.bool_))
    order = np.lexsort((table.steps[:, 2], table.steps[:, 1], table.steps[:, 0]))
    steps = table.steps[order]
    begins_episode, begins_turn = _changes(steps[:, :1]), _changes(steps[:, :2])
    ends_turn = np.append(begins_turn[1:], True)
    rewards = table.penalties[order] + np.where(ends_turn, table.turn_rewards[order], 0.0)
    begins = np.ones(num_tokens, np.bool_) if level == "token" else begins_turn
    firsts = np.flatnonzero(begins)
    step_rewards, step_values = np.add.reduceat(rewards, firsts), table.values[order][firsts]
    cuts = np.flatnonzero(begins_episode[firsts])[1:]
    episodes = zip(np.split(step_rewards, cuts), np.split(step_values, cuts), strict=True)
    found = np.concatenate([_checked(advantages_of(*of_one), *of_one) for of_one in episodes])
    lengths = np.diff(np.append(firsts, num_tokens))
    back = np.argsort(order, kind="stable")
    return Estimates(
        np.repeat(found, lengths)[back], np.repeat(found + step_values, lengths)[back], begins[back]
    )


def _changes(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """[N] whether a row differs from the one before it."""
    return np.append(True, (keys[1:] != keys[:-1]).any(axis=1))


def _checked(advantages: Numbers, rewards: Numbers, values: Numbers) -> Numbers:
    found = np.asarray(advantages, np.float64)
    if found.shape != rewards.shape or not np.isfinite(found).all():
        raise ConfigError(
            f"algorithm.credit must return a finite advantage for each of an episode's {len(rewards)} steps; "
            f"of rewards {rewards[:4]} and values {values[:4]} it returned {advantages!r:.200}"
        )
    return found
