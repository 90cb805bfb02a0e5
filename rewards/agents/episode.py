"""Rewards that the environment decides."""

from __future__ import annotations

from typing import Any

from vlrl.scoring.author import reward


@reward
def episode_return(completion: str, answer: Any, *, episode_return: float) -> float:
    """The sum of what the environment gave.

    Σ_t r_t over the episode's turns. Its range is the environment's; 0 where there is none. Source:
    Gymnasium's episodic return. Nothing of the text is looked at, so a degenerate answer earns what the
    environment pays for it: `vlrl env check` shows that.

    Args:
        completion: not looked at.
        answer: not looked at.
        episode_return: the sum.
    """
    return episode_return


@reward(range=(0.0, 1.0))
def success(completion: str, answer: Any, *, success: bool) -> float:
    """Whether the environment says that its task was done.

    1 if the last step's info has a true "success", else 0. Nothing of the text is looked at.

    Args:
        completion: not looked at.
        answer: not looked at.
        success: what info says.
    """
    return float(success)
