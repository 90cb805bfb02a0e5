"""Which tokens are trained, and towards what: rewards of episodes and turns to a number for each token."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.algorithm.advantage import group_advantages, tree_advantages
from vlrl.config.options import AlgorithmConfig
from vlrl.errors import ConfigError
from vlrl.ledger import BoolArray
from vlrl.rounding import RESIDUE, summed
from vlrl.types import Credit, FloatArray, Group, Trajectory

Rewards: TypeAlias = npt.NDArray[np.float64]
"""[num_turns]; in float32 the decimal rewards of different histories would differ by more than they must."""

MaskFn = Callable[[Trajectory], Sequence[BoolArray]]
"""trajectory → for each ledger, [num_tokens] bool: which tokens may be trained."""


def assign_credit(groups: Sequence[Group], options: AlgorithmConfig, masks: Sequence[MaskFn] = ()) -> None:
    """Fill each group's credits in place; a member that failed has no part in them (law 7).

    It has zeros, and the others are compared among themselves. All have zeros in a group with fewer than two
    scores.

    Args:
        groups: scored.
        options: how turns are credited.
        masks: a token is trained if all of them say so.
    """
    for group in groups:
        scored = [] if group.failed else group.scored
        of_turns = iter(_of_turns(scored, options) if scored else ())
        group.credits = []
        for trajectory in group.trajectories:
            counts = bool(scored) and trajectory.score is not None
            advantages = next(of_turns) if counts else np.zeros(len(trajectory.turns), np.float32)
            own = (*masks, shared_turn_mask) if counts else (nothing,)
            group.credits.append(replace(token_advantages(trajectory, advantages, own), counts=counts))


def group_with_advantages(trajectories: Sequence[Trajectory], advantages: Sequence[float]) -> Group:
    """A group in which every token of a trajectory that has a score has the same advantage: [n] numbers."""
    return Group(
        list(trajectories),
        [
            replace(
                token_advantages(t, np.full(len(t.turns), advantage, np.float32)), counts=t.score is not None
            )
            for t, advantage in zip(trajectories, advantages, strict=True)
        ],
    )


def _of_turns(trajectories: Sequence[Trajectory], options: AlgorithmConfig) -> list[FloatArray]:
    """The advantage of each turn of each scored trajectory, at least two of them: [n] of [num_turns]."""
    rewards = [turn_rewards(t) for t in trajectories]
    if options.credit == "discounted":
        return discounted_advantages(rewards, discount=options.discount, scale_by_std=options.scale_by_std)
    if options.credit == "turn_groups":
        names = [[str(number) for number in range(len(t.turns))] for t in trajectories]
        return state_advantages(rewards, names, discount=options.discount, scale_by_std=options.scale_by_std)
    totals = [t.score.total for t in trajectories if t.score is not None]
    if any(t.trunk is not None for t in trajectories):
        return _of_trees(trajectories, totals, options)
    episode = group_advantages(totals, scale_by_std=options.scale_by_std)
    whole = [np.full(len(t.turns), a, np.float32) for t, a in zip(trajectories, episode, strict=True)]
    if options.credit == "episode":
        return whole
    states = [[turn.state for turn in t.turns] for t in trajectories]
    among_equals = state_advantages(
        rewards, states, discount=options.discount, scale_by_std=options.scale_by_std
    )
    # GiGPO (arXiv 2505.10978), §4.2: A(a_t) = A^E(τ) + ω · A^S(a_t)
    return [e + np.float32(options.state_weight) * s for e, s in zip(whole, among_equals, strict=True)]


def _of_trees(
    trajectories: Sequence[Trajectory], totals: Sequence[float], options: AlgorithmConfig
) -> list[FloatArray]:
    """The turns before a branch point by their tree, those after it within their tree: [n] of [num_turns].

    Where failures left a single tree, nothing is known of the turns before its branch point.
    """
    trees = [t.group_index if t.trunk is None else t.trunk for t in trajectories]
    if len(set(trees)) > 1:
        among, within = tree_advantages(totals, trees, scale_by_std=options.scale_by_std)
    else:
        within = group_advantages(totals, scale_by_std=options.scale_by_std)
        among = np.zeros_like(within)
    advantages = []
    for number, trajectory in enumerate(trajectories):
        num_shared = trajectory.num_shared if trajectory.trunk is not None else len(trajectory.turns)
        of_turns = np.full(len(trajectory.turns), within[number], np.float32)
        of_turns[:num_shared] = among[number]
        advantages.append(of_turns)
    return advantages


def turn_rewards(trajectory: Trajectory) -> Rewards:
    """[num_turns] rewards that sum to the score: what each turn was given, and the rest on the last turn.

    A turn is given its part of the total by process rewards, and by its environment if the run's rewards name
    `episode_return` (`Score.turns`); what they do not name is paid to nobody.
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
