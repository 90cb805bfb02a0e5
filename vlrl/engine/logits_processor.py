"""A vLLM logits processor: media tokens are impossible for every request (law 3).

In a file of its own because vLLM imports it by name inside the engine.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.v1.sample.logits_processor import BatchUpdate
from vllm.v1.sample.logits_processor import LogitsProcessor as V1LogitsProcessor
from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as V2LogitsProcessor


class MediaTokenBan(V1LogitsProcessor, V2LogitsProcessor):  # type: ignore[misc]
    """Sets the banned ids' logits to -inf; the trainer does the same (`vlrl.model.logprobs`).

    One class for both of vLLM's model runners: which of them an engine has is decided inside vLLM, by its
    platform and configuration, after the processors were named, and each accepts its own base class only.
    """

    def __init__(self, vllm_config: Any, place: Any, is_pin_memory: bool | None = None) -> None:
        """Keep the banned ids in host memory.

        V2 makes processors while it loads the model, in the memory that sleep level 2 gives up: values that
        were on the device then are lost when an engine has taken its first turn.

        Args:
            vllm_config: the engine's; the ids are in its `additional_config`.
            place: the device (V1), or the requests' state, which names it (V2).
            is_pin_memory: V1 alone says.
        """
        banned = vllm_config.additional_config.get("banned_token_ids", [])
        device = getattr(place, "device", place)
        # Pinned, so that the copy of each step does not wait for the GPU.
        self._banned = torch.tensor(banned, dtype=torch.long, pin_memory=device.type == "cuda")

    def apply(self, logits: torch.Tensor, ctx: Any = None) -> torch.Tensor:
        """Mask [num_rows, vocab_size] logits in place; `ctx` is V2's layout of the rows, all alike here."""
        banned = self._banned.to(logits.device, non_blocking=True)
        return logits.index_fill_(1, banned, float("-inf"))

    def is_argmax_invariant(self) -> bool:
        """False: greedy decoding must not generate them either."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Nothing to keep: the ban is the same for every request."""
