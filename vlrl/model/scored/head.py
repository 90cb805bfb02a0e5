"""A scalar head that answers with scores where a language-model head answers with logprobs."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ScoreHead(nn.Module):
    """The score of a sequence, read at its last token.

    It registers the head's own parameter as its own, as `vlrl.model.head_logprobs.HeadLogprobs` does: ZeRO-3
    gathers what a module holds itself.
    """

    def __init__(self, head: nn.Linear) -> None:
        """Take a linear layer [1, hidden_size] without bias."""
        super().__init__()
        self.weight = head.weight

    def forward(
        self, hidden: Tensor, target_ids: Tensor, allowed: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scores in the place of logprobs.

        Args:
            hidden: [M, hidden_size] last hidden states.
            target_ids: [M], which have no part in it.
            allowed: neither has what could have been in their place.

        Returns:
            (scores [M] float32, zeros [M] in the place of the entropy). The product is float32, as vLLM's:
            bfloat16 would make ties of scores that are closer than 1 %.
        """
        scores = (hidden.float() @ self.weight.float().T).squeeze(1)
        return scores, torch.zeros_like(scores)
