"""Groups to branches: the ledgers that have trained tokens, and what is known of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vlrl.config.learning.policies import require_policy
from vlrl.ledger import IntArray
from vlrl.packing.prefix_tree import Branch, Keys
from vlrl.types import Group


def counted(groups: Sequence[Group]) -> list[Group]:
    """The members of each group whose credit counts."""
    found = []
    for group in groups:
        members = [pair for pair in zip(group.trajectories, group.credits, strict=True) if pair[1].counts]
        found.append(Group([t for t, _ in members], [credit for _, credit in members]))
    return found


def branches_of(
    group: Group,
    weights: Sequence[float],
    keys: Keys,
    number: int | None = None,
    policy: int | None = None,
    step_number: int | None = None,
    restricts: bool = False,
) -> list[Branch]:
    """A group's ledgers that have trained tokens.

    Args:
        group: of `counted`.
        weights: [n], of a trajectory's trained tokens.
        keys: of all groups that are packed together.
        number: of the group where all of it must be in one micro-batch.
        policy: number of the group's, where there are several.
        step_number: of the group among the step's, for `Branch.origin`; None where nobody asks.
        restricts: see `PackOptions`.
    """
    return [
        Branch(
            trajectory.sample.id,
            ledger,
            advantages,
            trained,
            weight,
            keys.of(ledger, trained, policy),
            number,
            policy=policy,
            origin=None if step_number is None else (step_number, trajectory.group_index, of_trajectory),
            restricts=restricts,
        )
        for trajectory, credit, weight in zip(group.trajectories, group.credits, weights, strict=True)
        for of_trajectory, (ledger, advantages, trained) in enumerate(
            zip(trajectory.ledgers, credit.advantages, credit.trained, strict=True)
        )
        if trained.any()
    ]


def policies_of(groups: Sequence[Group], numbers: Mapping[str, int]) -> list[int | None]:
    """The policy of each group by number; of all None where there is but one, and of a group without members.

    Args:
        groups: of `counted`.
        numbers: of the policy of each agent; empty for one policy.

    Raises:
        ConfigError: for a group of an agent that no policy plays.
    """
    if not numbers:
        return [None] * len(groups)
    for group in groups:
        if group.trajectories:
            require_policy(group.trajectories[0].sample.id, group.agent, numbers)
    return [numbers[group.agent] if group.trajectories else None for group in groups]


def numbered(branches: Sequence[Branch], groups: Sequence[Group]) -> list[Branch]:
    """Branches that know where their tokens are in their episodes, for a critic.

    Args:
        branches: of `branches_of`.
        groups: all that they are of; episodes are counted through them.
    """
    steps: dict[int, IntArray] = {}
    trajectories = [trajectory for group in groups for trajectory in group.trajectories]
    for episode, trajectory in enumerate(trajectories):
        turn = place = 0
        for ledger in trajectory.ledgers:
            of_ledger = np.zeros((len(ledger.token_ids), 3), np.int64)
            of_ledger[:, 0] = episode
            of_ledger[:, 2] = place + np.arange(len(of_ledger))
            for each in ledger.turns:
                of_ledger[slice(*each.action), 1] = turn
                turn += 1
            place += len(of_ledger)
            steps[id(ledger)] = of_ledger
    return [replace(branch, steps=steps[id(branch.ledger)]) for branch in branches]
