"""Filters: which scored groups are trained, as functions of a group with its advantages.

They say whether to keep it. One that is not kept is dropped, and the next sample takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vlrl.errors import ConfigError
from vlrl.rounding import all_equal, summed
from vlrl.types import Group, Trajectory

NamedFilter = tuple[str, Callable[[Group], bool]]
"""What a dropped group is counted under, and whether to keep one."""


TOTAL = "total"
"""Names the weighted sum of all rewards, in place of one of its parts."""


def zero_variance(group: Group, *, reward: str | Sequence[str] = TOTAL) -> bool:
    """Keeps groups that teach something: a trained token has an advantage, and the named reward differs.

    DAPO's dynamic sampling (arXiv 2503.14476, §3.2, the constraint of Eq. 8) keeps groups in which some
    answers are right and some are not: name the accuracy. The total differs as well where all are right and
    one is a little too long. A failed group has no advantages, so it goes too.

    Args:
        group: scored, with credit.
        reward: a part of the reward, or a list of which the first that the group's rewards have is meant.

    Raises:
        ConfigError: if the group's rewards have no such part.
    """
    compared = (*group.trajectories, *(group.greedy or ()))
    if reward != TOTAL and not group.failed and all_equal(_values(compared, reward)):
        return False
    return any(
        bool(advantages[trained].any())
        for credit in group.credits
        for advantages, trained in zip(credit.advantages, credit.trained, strict=True)
    )


def failed(group: Group) -> bool:
    """Keeps groups all of whose members were played and scored; without it the others are trained.

    A greedy episode that they are compared with is among them.
    """
    return not group.failed and len(group.scored) == len(group.trajectories)


def length(group: Group, *, min_tokens: int = 0, max_tokens: int | None = None) -> bool:
    """Keeps groups whose completions have so many generated tokens on average."""
    mean = sum(t.num_action_tokens for t in group.trajectories) / max(1, len(group.trajectories))
    return min_tokens <= mean and (max_tokens is None or mean <= max_tokens)


def truncated(group: Group, *, max_share: float = 0.5) -> bool:
    """Keeps groups of which at most that share of the members was cut short."""
    return sum(t.outcome == "truncated" for t in group.trajectories) <= max_share * len(group.trajectories)


def reward_range(
    group: Group, *, lowest: float = 0.0, highest: float = 1.0, reward: str | Sequence[str] = TOTAL
) -> bool:
    """Keeps groups whose mean reward, as named, lies within the range: neither too hard nor too easy."""
    values = _values(group.trajectories, reward)
    return bool(values) and lowest <= summed(values) / len(values) <= highest


def _values(trajectories: Sequence[Trajectory], reward: str | Sequence[str]) -> list[float]:
    """The named reward of every trajectory that has a score."""
    scores = [t.score for t in trajectories if t.score is not None]
    names = [reward] if isinstance(reward, str) else list(reward)
    known = {TOTAL, *(name for score in scores for name in score.parts)}
    found = next((name for name in names if name in known), None)
    if found is None and scores:
        raise ConfigError(
            f"batch.filters: reward {', '.join(map(repr, names))} is not a part of the score of sample "
            f"{trajectories[0].sample.id!r}, which has {', '.join(sorted(known - {TOTAL}))}; name "
            "one of these, or total; where data sources have different rewards, give a list"
        )
    return [score.total if found == TOTAL else score.parts.get(found or "", 0.0) for score in scores]


def first_refusal(group: Group, filters: Sequence[NamedFilter]) -> str | None:
    """The name of the first filter that does not keep the group; None if all do."""
    return next((name for name, keeps in filters if not keeps(group)), None)
