"""The learning rate as a pure function of the step, so that a resumed run needs no scheduler state."""

from __future__ import annotations

import math

from vlrl.config.memory import OptimConfig


def learning_rate(config: OptimConfig, step: int, num_steps: int) -> float:
    """Rate of step 0 ≤ step < num_steps: linear warm-up, then constant, linear or cosine decay.

    The first warm-up step has lr/warmup_steps, the last step of the run min_lr_ratio · lr + a step's share.
    """
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, num_steps - config.warmup_steps)
    shape = {"constant": 1.0, "linear": 1.0 - done, "cosine": 0.5 * (1.0 + math.cos(math.pi * done))}
    return config.lr * (config.min_lr_ratio + (1.0 - config.min_lr_ratio) * shape[config.schedule])
