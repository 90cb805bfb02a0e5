"""Which groups are worth a place in a batch: functions of a scored group, with its credit.

They say whether to keep it. One that is not kept is dropped, and the next sample takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from vlrl.types import Group

FilterFn = Callable[..., bool]
"""(group, **options) → keep it?"""

NamedFilter = tuple[str, Callable[[Group], bool]]
"""What a dropped group is counted under, and whether to keep one."""


def zero_variance(group: Group) -> bool:
    """Keeps groups that teach something: a trained token has an advantage.

    DAPO's dynamic sampling (arXiv 2503.14476, §3.2, the constraint of Eq. 8): with credit by episode that is
    a group whose rewards are not all equal. A group with a failed member has no advantages, so it goes too.
    """
    return any(
        bool(advantages[trained].any())
        for credit in group.credits
        for advantages, trained in zip(credit.advantages, credit.trained, strict=True)
    )


def failed(group: Group) -> bool:
    """Keeps groups all of whose members were played and scored."""
    return not group.failed


def length(group: Group, *, min_tokens: int = 0, max_tokens: int | None = None) -> bool:
    """Keeps groups whose completions have so many drawn tokens on average."""
    mean = sum(t.num_action_tokens for t in group.trajectories) / max(1, len(group.trajectories))
    return min_tokens <= mean and (max_tokens is None or mean <= max_tokens)


def truncated(group: Group, *, max_share: float = 0.5) -> bool:
    """Keeps groups of which at most that share of the members was cut short."""
    return sum(t.outcome == "truncated" for t in group.trajectories) <= max_share * len(group.trajectories)


def reward_range(group: Group, *, lowest: float = 0.0, highest: float = 1.0) -> bool:
    """Keeps groups whose mean reward lies within the range: neither too hard nor too easy."""
    totals = [t.score.total for t in group.trajectories if t.score is not None]
    return bool(totals) and lowest <= sum(totals) / len(totals) <= highest


def first_refusal(group: Group, filters: Sequence[NamedFilter]) -> str | None:
    """The name of the first filter that does not keep the group; None if all do."""
    return next((name for name, keeps in filters if not keeps(group)), None)
