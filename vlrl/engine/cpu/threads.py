"""How many threads an engine on a CPU computes a step with: one where there is too little to share.

Each of a layer's kernels wakes the other threads, which sleep at barriers, and waits for them: 45 µs, ten
times a layer. A step of few tokens of a small model takes less than that to compute. The results are the same
to the last bit.
"""

from __future__ import annotations

from typing import Any

import torch

SHARED_FROM = 2e8
"""Operations of one layer in a step from which all threads were measured faster than one."""
FEWEST_TOKENS = 40
"""A step takes the time of so many at least, since it reads all weights: large ones are for all threads."""
NUM_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")
"""Names that configs of mixtures have for the number of a layer's experts."""


def share_large_steps(model_runner: Any) -> None:
    """Have a runner of vLLM compute small steps with one thread, and all others as before."""
    of_token = layer_operations(model_runner.model_config.hf_text_config)
    execute, num_threads = model_runner.execute_model, torch.get_num_threads()

    def execute_model(scheduled: Any, *args: Any, **options: Any) -> Any:
        operations = of_token * max(FEWEST_TOKENS, scheduled.total_num_scheduled_tokens)
        if operations >= SHARED_FROM or scheduled.scheduled_encoder_inputs:
            return execute(scheduled, *args, **options)
        # vLLM replaces torch.set_num_threads by a warning; this is the function that it was.
        torch._C.set_num_threads(1)
        try:
            return execute(scheduled, *args, **options)
        finally:
            torch._C.set_num_threads(num_threads)

    model_runner.execute_model = execute_model


def layer_operations(config: Any) -> int:
    """Operations of a layer's products for one token, about, from the config of a language model.

    All experts of a mixture count: a step reads most of them, however few each token has.
    """
    width = config.hidden_size
    inner = getattr(config, "moe_intermediate_size", None) or config.intermediate_size
    counts = (getattr(config, name, None) for name in NUM_EXPERTS)
    num_experts = next((count for count in counts if count), 1)
    operations: int = 2 * (4 * width**2 + 3 * width * inner * num_experts)
    return operations
