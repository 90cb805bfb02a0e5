"""What each trained token counts for in a batch's loss: the averaging rules."""

from __future__ import annotations

from collections.abc import Sequence

from vlrl.packing.options import Aggregation, PackOptions
from vlrl.types import Group


def token_weights(
    groups: Sequence[Group], aggregation: Aggregation, max_completion_tokens: int, max_turns: int = 1
) -> list[list[float]]:
    """Weight of each trained token of each trajectory, [num_groups][n].

    "token": 1 / Σ|o| over the batch (DAPO, arXiv 2503.14476, Eq. 8). "sequence": 1 / (N·|o_i|) for N
    sequences (GRPO, arXiv 2402.03300, Eq. 3). "constant": 1 / (N·most tokens of a sequence) (Dr. GRPO, arXiv
    2503.20783, §3.2): max_completion_tokens, and max_turns times as many of an episode in an environment.
    "group": 1 / (groups with a trained token), for losses that give each token its part of its group's.
    """
    lengths = [[credit.num_trained for credit in g.credits] for g in groups]
    num_sequences = max(1, sum(len(row) for row in lengths))
    num_tokens = max(1, sum(sum(row) for row in lengths))
    if aggregation == "group":
        num_groups = max(1, sum(any(row) for row in lengths))
        return [[1.0 / num_groups for _ in row] for row in lengths]
    if aggregation == "token":
        return [[1.0 / num_tokens for _ in row] for row in lengths]
    if aggregation == "sequence":
        return [[1.0 / (num_sequences * max(1, n)) for n in row] for row in lengths]
    turns = [[max_turns if t.sample.env else 1 for t in g.trajectories] for g in groups]
    return [[1.0 / (num_sequences * max_completion_tokens * n) for n in row] for row in turns]


def weights_by_policy(
    groups: Sequence[Group], policies: Sequence[int | None], options: PackOptions
) -> list[list[float]]:
    """`token_weights` of each policy's groups by themselves, in the order of the groups.

    Each policy's loss is the mean over its own tokens alone and the step's loss is the sum of these, as if
    each were trained by itself: the long answers of one do not drown the other's.
    """
    found: list[list[float]] = [[] for _ in groups]
    for policy in set(policies):
        mine = [number for number, each in enumerate(policies) if each == policy]
        weights = token_weights(
            [groups[number] for number in mine],
            options.aggregation,
            options.max_completion_tokens,
            options.max_turns,
        )
        for number, of_group in zip(mine, weights, strict=True):
            found[number] = of_group
    return found
