"""Advantages of single turns: rewards from a turn on, compared with similar turns of the group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.algorithm.advantage import group_advantages
from vlrl.algorithm.advantages.episode import episode
from vlrl.ledger import FloatArray
from vlrl.rounding import RESIDUE, summed
from vlrl.types import Trajectory

Rewards: TypeAlias = npt.NDArray[np.float64]
"""[num_turns]; in float32 the decimal rewards of different histories would differ by more than they must."""


def discounted(
    trajectories: Sequence[Trajectory], *, discount: float = 1.0, scale_by_std: bool = True
) -> list[FloatArray]:
    """Each turn's return, discounted, against the mean of all turns of its group."""
    rewards = [turn_rewards(t) for t in trajectories]
    return discounted_advantages(rewards, discount=discount, scale_by_std=scale_by_std)


def turn_groups(
    trajectories: Sequence[Trajectory], *, discount: float = 1.0, scale_by_std: bool = True
) -> list[FloatArray]:
    """Each turn's return, discounted, among those of the group's turns of the same number."""
    rewards = [turn_rewards(t) for t in trajectories]
    names = [[str(number) for number in range(len(t.turns))] for t in trajectories]
    return state_advantages(rewards, names, discount=discount, scale_by_std=scale_by_std)


def state_groups(
    trajectories: Sequence[Trajectory],
    *,
    discount: float = 1.0,
    scale_by_std: bool = True,
    state_weight: float = 1.0,
) -> list[FloatArray]:
    """GiGPO (arXiv 2505.10978), §4.2: A(a_t) = A^E(τ) + ω · A^S(a_t), among turns of equal states."""
    rewards = [turn_rewards(t) for t in trajectories]
    states = [[turn.state for turn in t.turns] for t in trajectories]
    whole = episode(trajectories, scale_by_std=scale_by_std)
    among_equals = state_advantages(rewards, states, discount=discount, scale_by_std=scale_by_std)
    return [e + np.float32(state_weight) * s for e, s in zip(whole, among_equals, strict=True)]


def turn_rewards(trajectory: Trajectory) -> Rewards:
    """[num_turns] rewards that sum to the score: what each turn was given, and the rest on the last turn.

    A turn is given its part of the total by process rewards, and by its environment if the run's rewards name
    `episode_return` (`Score.turns`); rewards of the environment that they do not name are not used.
    """
    rewards = np.zeros(len(trajectory.turns), dtype=np.float64)
    total = trajectory.score.total if trajectory.score is not None else 0.0
    if trajectory.score is not None and trajectory.score.turns:
        rewards += trajectory.score.turns
    if len(rewards):
        rewards[-1] = summed([total, *(-rewards[:-1])])
    return rewards


def returns(rewards: Rewards, discount: float) -> Rewards:
    """[num_turns] G_t = Σ_k γ^k · r_{t+k}, the rewards still to come; 0 where only rounding is left."""
    found = np.zeros(len(rewards), np.float64)
    running = largest = 0.0
    for index in range(len(rewards) - 1, -1, -1):
        reward = float(rewards[index])
        running = reward + discount * running
        largest = max(abs(reward), discount * largest)
        found[index] = running = running if abs(running) > RESIDUE * largest else 0.0
    return found


def discounted_advantages(
    rewards: Sequence[Rewards], *, discount: float, scale_by_std: bool
) -> list[FloatArray]:
    """Each turn's return against the mean (and deviation) of all turns of its group.

    Args:
        rewards: [n] of [num_turns].
        discount: γ.
        scale_by_std: divide by the deviation.
    """
    found = [returns(of_one, discount) for of_one in rewards]
    flat = group_advantages(np.concatenate(found).tolist(), scale_by_std=scale_by_std)
    return np.split(flat, np.cumsum([len(of_one) for of_one in found])[:-1])


def state_advantages(
    rewards: Sequence[Rewards], states: Sequence[Sequence[str]], *, discount: float, scale_by_std: bool
) -> list[FloatArray]:
    """GiGPO's step-level advantage (arXiv 2505.10978, §4.2): a turn's return among those of its state.

    Args:
        rewards: [n] of [num_turns].
        states: [n] of [num_turns] names; equal ones are one anchor state.
        discount: γ.
        scale_by_std: divide by the deviation within the state.

    Returns:
        [n] of [num_turns]; zero for a state that was met once.
    """
    found = [returns(of_one, discount) for of_one in rewards]
    members: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for i, names in enumerate(states):
        for t, name in enumerate(names):
            members[name].append((i, t))
    advantages = [np.zeros(len(of_one), np.float32) for of_one in found]
    for places in members.values():
        if len(places) > 1:
            among = group_advantages([float(found[i][t]) for i, t in places], scale_by_std=scale_by_std)
            for (i, t), advantage in zip(places, among, strict=True):
                advantages[i][t] = advantage
    return advantages
