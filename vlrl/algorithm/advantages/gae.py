"""Generalised advantage estimation: a critic's values and the rewards of an episode to advantages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def gae(
    rewards: npt.NDArray[np.float64],
    values: npt.NDArray[np.float64],
    *,
    discount: float = 1.0,
    lam: float = 0.95,
) -> npt.NDArray[np.float64]:
    """GAE (arXiv 1506.02438, Eq. 16): A_t = Σ_l (γλ)^l δ_{t+l}, δ_t = r_t + γ V(s_{t+1}) - V(s_t).

    λ = 1 is the return minus the value, λ = 0 the error of one step. The last step has no successor: its
    V(s_{t+1}) is 0, however the episode ended. What the policy would have seen after a limit of tokens or
    turns is never generated, so there is nothing to bootstrap from, and the limit is part of the task.

    Args:
        rewards: [n] of an episode's steps, in their order.
        values: [n], V before each step.
        discount: γ of a step, which is a token or a turn (algorithm.critic.level).
        lam: λ, between 0 (least variance) and 1 (no bias of the critic).

    Returns:
        [n] advantages.
    """
    if not 0 <= lam <= 1:
        raise ValueError(f"lam={lam} is not between 0 and 1")
    advantages = np.zeros(len(rewards), np.float64)
    running = following = 0.0
    for step in range(len(rewards) - 1, -1, -1):
        delta = float(rewards[step]) + discount * following - float(values[step])
        running = delta + discount * lam * running
        advantages[step], following = running, float(values[step])
    return advantages
