"""What a run's folder grows to: checkpoints, the model, rollouts with their images."""

from __future__ import annotations

from vlrl.config import Config
from vlrl.plan.memory import state_bytes, trained_models
from vlrl.plan.phases import GIB
from vlrl.plan.shapes import ModelShape
from vlrl.plan.workload import Prompts, Workload

TOKEN_BYTES = 24
"""Of a token of a kept rollout, with its values of the sampler and the trainer; the quickstart takes 6."""
PIXEL_BYTES = 1.5
"""Of a kept image's pixel, as PNG: a photograph; drawings take less."""
MASTER_BYTES = 4
"""Of a trained weight's float32 copy, which a checkpoint holds beside both moments."""


def checkpoints_bytes(checkpoint: int, config: Config) -> int:
    """Those that are kept, and the next one, which is written aside before the oldest is removed."""
    num_saved = _num_saved(config)
    return (min(config.checkpoint.keep, num_saved) + (num_saved > 1)) * checkpoint


def checkpoint_bytes(shape: ModelShape, config: Config) -> int:
    """One checkpoint: the whole model, and of what is trained the float32 copy and both moments."""
    states = sum(state_bytes(model, config) for model in trained_models(shape))
    return (shape.num_params + shape.adapters) * shape.weight_bytes + states


def rollouts_bytes(prompts: Prompts, work: Workload, config: Config) -> int:
    """Rollouts of all steps that are kept, as if no two prompts had an image in common; at most max_gib."""
    options = config.logging.rollouts
    if not options.every:
        return 0
    num_steps = -(-config.num_steps // options.every)
    num_groups, num_kept = config.rollout.prompts_per_step, options.num_kept_steps
    share = min(1.0, options.groups / num_groups) if options.groups is not None else 1.0
    num_images = prompts.num_images * num_groups
    if prompts.num_turns > 1:  # an episode's screenshots are its own
        num_images *= config.rollout.group_size * prompts.num_turns
    step = share * (TOKEN_BYTES * work.step_tokens + PIXEL_BYTES * num_images * prompts.image_pixels)
    kept = min(num_steps, num_kept) if num_kept is not None else num_steps
    return int(min(kept * step, options.max_gib * GIB))


def _num_saved(config: Config) -> int:
    """Checkpoints that a whole run writes, by steps; the last step's is always one."""
    every = config.checkpoint.every
    return -(-config.num_steps // every) if every else 1
