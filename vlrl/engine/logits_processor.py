"""A vLLM logits processor: media tokens are impossible for every request (law 3).

In a file of its own because vLLM imports it by name inside the engine.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor


class MediaTokenBan(LogitsProcessor):  # type: ignore[misc]
    """Sets the banned ids' logits to -inf; the trainer does the same (`vlrl.model.logprobs`)."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        banned = vllm_config.additional_config.get("banned_token_ids", [])
        self._banned = torch.tensor(banned, dtype=torch.long, device=device)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask [num_requests, vocab_size] logits in place."""
        return logits.index_fill_(1, self._banned, float("-inf"))

    def is_argmax_invariant(self) -> bool:
        """False: greedy decoding must not generate them either."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Nothing to keep: the ban is the same for every request."""
