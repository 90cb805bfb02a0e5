"""The size of a step: tokens and patches of all groups, and of the largest micro-batch of a rank.

Groups are cut, dealt and filled in by the packer's own rules (`vlrl.packing.pack`), so what it makes is what
is counted: a group's prompt once a tree, no last token of a completion, several groups in one micro-batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlrl.config import Config
from vlrl.model.tree_attention import block_sizes
from vlrl.packing.pack import PIXELS_PER_TOKEN, PackUnit, deal, fill, worth_sharing
from vlrl.plan.shapes import ModelShape
from vlrl.types import IntArray

MAX_UNITS = 256
"""Trees of one rank and step that are dealt out one by one; of more, the numbers are scaled up."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Sizes of prompts, which the config does not say.

    Attributes:
        text_tokens: of a prompt, without its images.
        num_images: of a prompt, and of what an environment answers to an action.
        image_pixels: of each as the model sees it.
        completion_tokens: of a completion, or an action.
        num_turns: actions of an episode.
        longest_tokens: of the longest completion; 0 is as long as the others.
    """

    text_tokens: int
    num_images: int
    image_pixels: int
    completion_tokens: int
    num_turns: int = 1
    longest_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Workload:
    """Tokens of one step, every prompt and image once a tree.

    Attributes:
        step_tokens: of all groups on all ranks, in all optimizer steps on them.
        step_patches: the same in patches of images.
        step_targets: trained tokens.
        step_turns: completions, or actions of all episodes.
        prompt_tokens: of step_tokens, those that engines read and did not generate.
        tree_tokens: of the largest tree: of one group, or what the budget leaves of it.
        micro_tokens: of a rank's largest micro-batch.
        micro_patches: patches in it.
        micro_targets: trained tokens in it.
        micro_pairs: pairs of a query and a key in it, as attention by blocks computes them.
        micro_keys: keys of all its blocks of queries together.
        num_micro_batches: of a rank in one optimizer step.
        num_slices: ranks that share each micro-batch (trainer.sequence_parallel).
        image_patches: of one image, which is in one slice.
    """

    step_tokens: int
    step_patches: int
    step_targets: int
    step_turns: int
    prompt_tokens: int
    tree_tokens: int
    micro_tokens: int
    micro_patches: int
    micro_targets: int
    micro_pairs: int
    micro_keys: int
    num_micro_batches: int
    num_slices: int
    image_patches: int

    @property
    def slice_tokens(self) -> int:
        """Tokens of one slice of the largest micro-batch, on one rank."""
        return -(-self.micro_tokens // self.num_slices)

    @property
    def slice_patches(self) -> int:
        """Patches in a slice, images being whole."""
        num_images = self.micro_patches // max(1, self.image_patches)
        return -(-num_images // self.num_slices) * self.image_patches


@dataclass(frozen=True, slots=True)
class _Ledgers:
    """What each episode of a step becomes: a ledger, and one more for each turn that rewrites its context.

    Attributes:
        prefix: tokens of the prompt, which a group shares.
        body: tokens fed after it; the last token is predicted and never fed.
        patches: of the prompt's images, and of those of one later turn.
        num_turns: that the first ledger shows.
        num_later: ledgers after the first, of the same length, each with one trained turn.
    """

    prefix: int
    body: int
    patches: int
    num_turns: int
    num_later: int

    @property
    def body_patches(self) -> int:
        """Patches of the images after the prompt's."""
        return (self.num_turns - 1) * self.patches


def _ledgers(shape: ModelShape, prompts: Prompts, config: Config) -> _Ledgers:
    """An episode ends where it fills the engine's context, unless older turns are left out of it."""
    patches = prompts.num_images * -(-prompts.image_pixels // shape.patch**2)
    observation = -(-patches // shape.patches_per_token)
    prefix, action = prompts.text_tokens + observation, prompts.completion_tokens
    room = 1 + max(0, config.generator.max_model_len - prefix - action) // (observation + action)
    context, wanted = config.episodes.context, prompts.num_turns
    shown = {
        "full": wanted,
        "last_images": max(1, context.num_images // max(1, prompts.num_images)),
        "window": context.num_turns + 1,
        "summary": 1,
    }[context.policy]
    first = min(wanted, shown, room)
    later = 0 if context.policy == "full" else wanted - first
    if context.thoughts == "drop":
        later = wanted - 1
    return _Ledgers(prefix, first * action + (first - 1) * observation - 1, patches, first, later)


def without_rollouts(config: Config, pairs: bool) -> Config:
    """A config whose step trains given completions: sft.batch_size, or preferences.batch_size pairs."""
    size = config.sft.batch_size
    if pairs and config.preferences is not None:
        size = config.preferences.batch_size
    sizes = {"prompts_per_step": size, "group_size": 2 if pairs else 1}
    return config.model_copy(update={"rollout": config.rollout.model_copy(update=sizes)})


def workload(shape: ModelShape, prompts: Prompts, config: Config) -> Workload:
    """One step's, if all prompts are of the given size and no two begin alike."""
    rollout, trainer = config.rollout, config.trainer
    each = _ledgers(shape, prompts, config)
    num_dealt = trainer.world_size // trainer.sequence_parallel  # ranks that share a sequence count as one
    prefix, body = each.prefix, each.body
    branches = _trees(prefix, body, rollout.group_size, trainer.max_tokens_per_micro_batch)
    alone = [1] * (rollout.group_size * each.num_later)
    num_groups = -(-rollout.prompts_per_step // config.algorithm.num_minibatches)
    counted = min(num_groups, -(-MAX_UNITS // (len(branches) + len(alone))) * num_dealt)

    def unit(count: int) -> PackUnit:
        tokens, patches = prefix + count * body, each.patches + count * each.body_patches
        pixels = patches * shape.patch**2
        return PackUnit((), tokens, pixels, tokens + pixels / PIXELS_PER_TOKEN)

    units = [unit(count) for _ in range(counted) for count in (*branches, *alone)]
    ranks = deal(units, num_dealt)
    limits = trainer.max_tokens_per_micro_batch, trainer.max_pixels_per_micro_batch
    filled = [fill(of_one, *limits) for of_one in ranks]
    largest = max((units for bins in filled for units in bins), key=_num_tokens)
    trees = [(unit.num_tokens - prefix) // body if body else rollout.group_size for unit in largest]
    pairs, keys = block_sizes(_seen_until(prefix, body, trees))
    num_prompts = rollout.prompts_per_step
    episodes, num_turns = num_prompts * rollout.group_size, each.num_turns + each.num_later
    step_tokens = num_prompts * (len(branches) * prefix + sum(branches) * body + len(alone) * (prefix + body))
    return Workload(
        step_tokens=step_tokens,
        step_patches=num_prompts * len(branches) * each.patches + episodes * (num_turns - 1) * each.patches,
        step_targets=episodes * num_turns * prompts.completion_tokens,
        step_turns=episodes * num_turns,
        prompt_tokens=step_tokens - episodes * (num_turns * prompts.completion_tokens - 1),
        tree_tokens=prefix + max(branches) * body,
        micro_tokens=_num_tokens(largest),
        micro_patches=sum(each.patches + count * each.body_patches for count in trees),
        micro_targets=sum(trees) * each.num_turns * prompts.completion_tokens,
        micro_pairs=pairs,
        micro_keys=keys,
        num_micro_batches=-(-max(map(len, filled)) * num_groups // counted),
        num_slices=trainer.sequence_parallel,
        image_patches=each.patches // prompts.num_images if prompts.num_images else 0,
    )


def _num_tokens(units: Sequence[PackUnit]) -> int:
    return sum(unit.num_tokens for unit in units)


def _trees(prefix: int, body: int, group_size: int, budget: int) -> list[int]:
    """How many branches each tree of a group has: all in one, or as many as fit, or each alone."""
    if not worth_sharing(prefix, [prefix + body] * group_size):
        return [1] * group_size
    each = min(group_size, max(1, (budget - prefix) // body)) if body else group_size
    whole, rest = divmod(group_size, each)
    return [each] * whole + [rest] * (rest > 0)


def _seen_until(prefix: int, body: int, trees: list[int]) -> IntArray:
    """Trees of one prefix and some branches, one after the other, see `vlrl.batch.MicroBatch`."""
    found, start = [], 0
    for count in trees:
        end = start + prefix + count * body
        firsts = start + prefix + body * np.arange(count)
        found += [np.full(prefix, end), np.repeat(firsts + body, body)]
        start = end
    joined: IntArray = np.concatenate(found).astype(np.int64)
    return joined
