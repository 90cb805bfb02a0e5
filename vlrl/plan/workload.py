"""The size of a step: tokens and patches of all groups, and of the largest micro-batch of a rank."""

from __future__ import annotations

from dataclasses import dataclass

from vlrl.config import Config
from vlrl.plan.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class Prompts:
    """What a config does not say of its data.

    Attributes:
        text_tokens: of a prompt, without its pictures.
        num_pictures: of a prompt.
        picture_pixels: of each as the model sees it.
        completion_tokens: of a completion.
    """

    text_tokens: int
    num_pictures: int
    picture_pixels: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Workload:
    """Tokens of one step, every prompt and picture once a group (`vlrl.pack`).

    Attributes:
        step_tokens: of all groups on all ranks.
        step_patches: the same in patches of pictures.
        step_targets: trained tokens.
        row_tokens: of one group's tree, or what the budget leaves of it.
        micro_tokens: of a rank's largest micro-batch.
        micro_patches: patches in it.
        micro_targets: trained tokens in it.
        num_micro_batches: of a rank in one optimizer step.
    """

    step_tokens: int
    step_patches: int
    step_targets: int
    row_tokens: int
    micro_tokens: int
    micro_patches: int
    micro_targets: int
    num_micro_batches: int


def workload(shape: ModelShape, prompts: Prompts, config: Config) -> Workload:
    """One step's, if all prompts are of the given size."""
    rollout, trainer = config.rollout, config.trainer
    patches = prompts.num_pictures * -(-prompts.picture_pixels // shape.patch**2)
    prefix = prompts.text_tokens + -(-patches // shape.patches_per_token)
    budget, branches = trainer.max_tokens_per_micro_batch, rollout.group_size
    # A tree that is over the budget is cut into several, and each repeats the prompt.
    per_tree = min(branches, max(1, (budget - prefix) // max(1, prompts.completion_tokens)))
    trees_per_group = -(-branches // per_tree)
    row = prefix + per_tree * prompts.completion_tokens
    num_trees = rollout.prompts_per_step * trees_per_group
    trees_per_rank = -(-num_trees // config.algorithm.num_minibatches // trainer.num_ranks)
    rows = min(max(1, budget // row), trees_per_rank)
    if patches and trainer.max_pixels_per_micro_batch is not None:
        rows = max(1, min(rows, trainer.max_pixels_per_micro_batch // (patches * shape.patch**2)))
    return Workload(
        step_tokens=num_trees * row,
        step_patches=num_trees * patches,
        step_targets=rollout.prompts_per_step * branches * prompts.completion_tokens,
        row_tokens=row,
        micro_tokens=rows * row,
        micro_patches=rows * patches,
        micro_targets=rows * per_tree * prompts.completion_tokens,
        num_micro_batches=-(-trees_per_rank // rows),
    )
