"""Credit assignment: rewards of episodes and turns become an advantage for each token, and a mask."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np

from vlrl.algorithm.advantages.turns import turn_rewards
from vlrl.config.algorithm import AlgorithmConfig, bound_credit
from vlrl.errors import ConfigError
from vlrl.ledger import BoolArray
from vlrl.types import Credit, FloatArray, Group, Trajectory

MaskFn = Callable[[Trajectory], Sequence[BoolArray]]
"""trajectory → for each ledger, [num_tokens] bool: which tokens may be trained."""


def assign_credit(
    groups: Sequence[Group],
    options: AlgorithmConfig,
    masks: Sequence[MaskFn] = (),
    untrained: Collection[str] = (),
) -> None:
    """Fill each group's credits in place; a member that failed has no part in them (law 7).

    It has zeros, and the others are compared among themselves, or with the group's greedy episode. All have
    zeros in a group without a baseline (`Group.failed`).

    Args:
        groups: scored.
        options: how turns are credited.
        masks: a token is trained if all of them say so.
        untrained: agents that a frozen policy plays; their groups have zeros.
    """
    for group in groups:
        scored = [] if group.failed or group.agent in untrained else group.scored
        of_turns = iter(turn_advantages(scored, options, group.greedy or ()) if scored else ())
        group.credits = []
        for trajectory in group.trajectories:
            counts = bool(scored) and trajectory.score is not None
            advantages = next(of_turns) if counts else np.zeros(len(trajectory.turns), np.float32)
            own = (*masks, shared_turn_mask) if counts else (nothing,)
            group.credits.append(replace(token_advantages(trajectory, advantages, own), counts=counts))


def group_with_advantages(
    trajectories: Sequence[Trajectory], advantages: Sequence[float], masks: Sequence[MaskFn] = ()
) -> Group:
    """A group in which every token of a trajectory that has a score has the same advantage: [n] numbers.

    Only tokens are trained that all masks leave in.
    """
    return Group(
        list(trajectories),
        [
            replace(
                token_advantages(t, np.full(len(t.turns), advantage, np.float32), masks),
                counts=t.score is not None,
            )
            for t, advantage in zip(trajectories, advantages, strict=True)
        ],
    )


def turn_advantages(
    trajectories: Sequence[Trajectory], options: AlgorithmConfig, greedy: Sequence[Trajectory] = ()
) -> list[FloatArray]:
    """The advantage of each turn by the config's function: [n] of [num_turns] float32.

    With a critic it is the turn's reward, of which the trainer's ranks make advantages: they know the values.

    Args:
        trajectories: the scored ones of a group, at least two, or at least one beside a greedy episode.
        options: which function, and its options.
        greedy: that episode, scored, for a function that asks for it by name.

    Raises:
        ConfigError: if it returns anything but a number, or an array of them by turn, for each trajectory.
    """
    if options.critic is not None:
        return [turn_rewards(trajectory).astype(np.float32) for trajectory in trajectories]
    found = bound_credit(options)(trajectories, greedy=next(iter(greedy), None))
    what = f"algorithm.credit: {options.credit.name!r} of sample {trajectories[0].sample.id!r}"
    if len(found) != len(trajectories):
        raise ConfigError(f"{what} returned {len(found)} advantages for {len(trajectories)} trajectories")
    advantages = []
    for value, trajectory in zip(found, trajectories, strict=True):
        array, num_turns = np.asarray(value, np.float32), len(trajectory.turns)
        if array.shape not in ((), (num_turns,)) or not np.isfinite(array).all():
            raise ConfigError(
                f"{what} must return a finite number, or one a turn, for each trajectory; for one of "
                f"{num_turns} turns it returned {value!r}"
            )
        advantages.append(np.full(num_turns, array, np.float32) if array.ndim == 0 else array)
    return advantages


def token_advantages(trajectory: Trajectory, advantages: FloatArray, masks: Sequence[MaskFn] = ()) -> Credit:
    """Every generated token gets its turn's advantage.

    Args:
        trajectory: the episode.
        advantages: [num_turns].
        masks: which tokens may be trained.

    Raises:
        ConfigError: if a mask has another shape than the ledger.
    """
    allowed = [mask(trajectory) for mask in masks]
    values, trained, number = [], [], 0
    for index, ledger in enumerate(trajectory.ledgers):
        of_tokens = np.zeros(len(ledger.token_ids), np.float32)
        for turn in ledger.turns:
            of_tokens[slice(*turn.action)] = advantages[number]
            number += 1
        mask = ledger.loss_mask.copy()
        for by_ledger in allowed:
            if len(by_ledger) != len(trajectory.ledgers) or by_ledger[index].shape != mask.shape:
                raise ConfigError(
                    f"algorithm.masks: a mask of sample {trajectory.sample.id!r} must give a bool array "
                    f"of num_tokens for each ledger; ledger {index} has {len(mask)}"
                )
            mask &= by_ledger[index]
        values.append(of_tokens)
        trained.append(mask)
    return Credit(tuple(values), tuple(trained))


def shared_turn_mask(trajectory: Trajectory) -> list[BoolArray]:
    """Leave out the turns before a branch point, except in the trunk, so that each token is trained once."""
    first = trajectory.num_shared if trajectory.trunk != trajectory.group_index else 0
    return _but_turns(trajectory, lambda number: number < first)


def nothing(trajectory: Trajectory) -> list[BoolArray]:
    """Leaves out everything."""
    return [np.zeros(len(ledger.token_ids), np.bool_) for ledger in trajectory.ledgers]


def last_token(trajectory: Trajectory) -> list[BoolArray]:
    """Leaves out all but the last token of each ledger."""
    found = nothing(trajectory)
    for mask in found:
        mask[-1:] = True
    return found


def _but_turns(trajectory: Trajectory, left_out: Callable[[int], bool]) -> list[BoolArray]:
    """True but in the actions of the turns, by number, that are left out."""
    found, number = [], 0
    for ledger in trajectory.ledgers:
        mask = np.ones(len(ledger.token_ids), np.bool_)
        for turn in ledger.turns:
            mask[slice(*turn.action)] = not left_out(number)
            number += 1
        found.append(mask)
    return found


def truncated(trajectory: Trajectory) -> list[BoolArray]:
    """Leaves out actions that were cut at the limit (DAPO's overlong filtering, arXiv 2503.14476, §3.4)."""
    turns = trajectory.turns
    return _but_turns(trajectory, lambda number: not turns[number].finished)


def invalid(trajectory: Trajectory) -> list[BoolArray]:
    """Leaves out actions that the environment could not read."""
    turns = trajectory.turns
    return _but_turns(trajectory, lambda number: turns[number].invalid)


def all_but_last(trajectory: Trajectory) -> list[BoolArray]:
    """Leaves out every turn but the last."""
    last = len(trajectory.turns) - 1
    return _but_turns(trajectory, lambda number: number != last)
