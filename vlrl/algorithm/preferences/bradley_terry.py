"""Bradley-Terry: a reward model is to score a pair's chosen completion above its rejected one."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def bradley_terry(
    chosen_scores: Tensor, rejected_scores: Tensor, *, margins: Tensor, center_coef: float = 0.0
) -> Tensor:
    """InstructGPT's loss of a reward model (arXiv 2203.02155, Eq. 1): -log σ(r_w - r_l).

        loss = -log σ(r_w - r_l - m) + λ (r_w + r_l)²

    m is Llama 2's margin (arXiv 2307.09288, Eq. 2), the second term centres the scores at zero (Eisenstein et
    al., arXiv 2312.09244, Eq. 2), which the first leaves free to move.

    Args:
        chosen_scores: [M], r_w of the chosen completion.
        rejected_scores: [M], r_l of the rejected one.
        margins: [M] at least 0, of the column that preferences.margin names; 0 without one.
        center_coef: λ, TRL's center_rewards_coefficient; 0.01 is usual.
    """
    if not 0 <= center_coef < float("inf"):
        raise ValueError(f"center_coef={center_coef} must be at least 0")
    loss = -logsigmoid(chosen_scores - rejected_scores - margins)
    return loss + center_coef * (chosen_scores + rejected_scores).square()
