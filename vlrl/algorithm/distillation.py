"""On-policy distillation: a teacher judges each token that the student itself generated.

Reverse KL per token, KL(π_θ || π_T), as GKD has it with the student's data alone (Agarwal et al., arXiv
2306.13649, §3.1, λ = 1) and MiniLLM (Gu et al., arXiv 2306.08543, Eq. 1), estimated on the sampled token as
in Thinking Machines Lab 2025, "On-policy distillation".
"""

from __future__ import annotations

from torch import Tensor


def teacher_advantages(trainer_logprobs: Tensor, teacher_logprobs: Tensor, coef: float) -> Tensor:
    """The advantage that a teacher gives each token: A_t = -coef · (log π_θ - log π_T), a constant.

    Over tokens that π_θ samples, -A_t ∇log π_θ has the mean coef · ∇KL(π_θ || π_T): the derivative of log π_θ
    within the logarithm has a mean of 0. Later tokens' divergences are not credited to earlier ones
    (MiniLLM's R_t, Eq. 2, without its sum), so π_θ is the policy that learns and not the one that sampled:
    a correction's ratio is to it.

    Args:
        trainer_logprobs: [M] nats of the student's tokens; taken as constants.
        teacher_logprobs: [M] nats, at the same temperature.
        coef: weight beside the advantages of rewards.

    Returns:
        [M], without gradient.
    """
    return coef * (teacher_logprobs - trainer_logprobs.detach())
