"""The choice of who plays: rollout workers where the layout has any, else the driver."""

from __future__ import annotations

from dataclasses import replace

from vlrl.cluster import Reservation
from vlrl.engine.policy import VllmPolicy
from vlrl.run.players.player import Player
from vlrl.run.players.rollouts import InProcess, Rollouts
from vlrl.run.players.workers import RolloutWorkers, TellFn


def open_rollouts(player: Player, reservation: Reservation, policy: VllmPolicy, tell: TellFn) -> Rollouts:
    """Start the workers that the layout has, and wait for them.

    Args:
        player: the driver's.
        reservation: of the run's places.
        policy: owner of the engines.
        tell: called with an event's name and a sentence.
    """
    if not reservation.workers:
        return InProcess(replace(player, policy_of=policy.of_position))
    player.context.timeline.begin()  # the workers go on with its file
    workers = RolloutWorkers(player.config, reservation, policy, tell)
    workers.wait_ready()
    return workers
