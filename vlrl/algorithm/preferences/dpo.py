"""DPO: a reward model's likelihood of a pair, with the policy as the reward model."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


def dpo(
    chosen_ratios: Tensor, rejected_ratios: Tensor, *, beta: float, label_smoothing: float = 0.0
) -> Tensor:
    """DPO (arXiv 2305.18290, Eq. 7), and with label_smoothing cDPO (Mitchell 2023, Eq. 3).

        h = β (log π(y_w)/π_ref(y_w) - log π(y_l)/π_ref(y_l))
        loss = -(1 - ε) log σ(h) - ε log σ(-h)

    Args:
        chosen_ratios: [M] nats, log π / π_ref of the chosen completion.
        rejected_ratios: [M] nats, that of the rejected one.
        beta: β.
        label_smoothing: ε, the share of pairs whose order is taken to be wrong, below 0.5.
    """
    if not 0 <= label_smoothing < 0.5:
        raise ValueError(f"label_smoothing={label_smoothing} must be at least 0 and below 0.5")
    margin = beta * (chosen_ratios - rejected_ratios)
    return -(1 - label_smoothing) * logsigmoid(margin) - label_smoothing * logsigmoid(-margin)
