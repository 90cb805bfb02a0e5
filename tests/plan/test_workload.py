"""The size of a step that `vlrl plan` counts: the packer's own, for questions and for episodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import make_config, make_sample, make_trajectory
from planned_models import SEVEN, with_trainer

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.model.tree_attention import block_sizes
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.plan.workload import Prompts, workload
from vlrl.types import Media


def packed(prompts: Prompts, config: Config, num_images: int) -> Any:
    """The packer's batch of groups of this size, whose images take 56 × 56 pixels and 4 tokens."""
    rng = np.random.default_rng(0)
    groups = []
    for number in range(config.rollout.prompts_per_step):
        flat = np.full((1, 56, 56, 3), number, np.uint8)
        media = tuple(
            Media("image", f"{number}.{i}", flat, (56, 56), (1, 4, 4), 4) for i in range(num_images)
        )
        ids = [1000 + number, *rng.integers(10, 99, prompts.text_tokens + 4 * num_images - 1).tolist()]
        sample = make_sample(ids, id=str(number), media=media)
        generated = [  # each begins with a token of its own, so that nothing is shared after the prompt
            [100 + i, *rng.integers(10, 99, prompts.completion_tokens - 1).tolist()]
            for i in range(config.rollout.group_size)
        ]
        groups.append(
            group_with_advantages(
                [make_trajectory(sample, tokens) for tokens in generated], [1.0] * len(generated)
            )
        )
    return pack(
        groups,
        lambda media: {"marks": np.array([int(m.frames[0, 0, 0, 0]) for m in media])},
        PackOptions(
            num_ranks=config.trainer.num_ranks,
            sequence_parallel=config.trainer.sequence_parallel,
            max_tokens=config.trainer.max_tokens_per_micro_batch,
            max_pixels=config.trainer.max_pixels_per_micro_batch,
            aggregation="token",
            max_completion_tokens=prompts.completion_tokens,
            keep_zero_advantage=True,
        ),
    )


@pytest.mark.parametrize(
    ("text", "images", "generated", "group_size", "budget", "num_ranks", "max_pixels"),
    [
        (94, 1, 25, 4, 1024, 1, None),  # several groups a micro-batch
        (94, 1, 25, 4, 1024, 2, None),
        (94, 1, 25, 4, 1024, 1, 2 * 56 * 56),
        (94, 2, 400, 4, 1024, 1, None),  # two completions a tree, the prompt again
        (94, 1, 400, 5, 1024, 1, None),  # and one that is left over
        (20, 1, 90, 4, 256, 1, None),
        (8, 0, 300, 4, 512, 1, None),  # sharing is not worth it
        (30, 1, 1, 8, 128, 1, None),
    ],
)  # fmt: skip
def test_work_is_what_the_packer_makes(
    text: int,
    images: int,
    generated: int,
    group_size: int,
    budget: int,
    num_ranks: int,
    max_pixels: int | None,
) -> None:
    config = make_config(rollout={"prompts_per_step": 6, "group_size": group_size})
    config = with_trainer(
        config, max_tokens_per_micro_batch=budget, num_ranks=num_ranks, max_pixels_per_micro_batch=max_pixels
    )
    prompts = Prompts(text, images, 56 * 56, generated)
    work = workload(SEVEN, prompts, config)
    ranks = packed(prompts, config, images)
    sizes = [len(m.input_ids) for rank in ranks for m in rank]
    largest = max((m for rank in ranks for m in rank), key=lambda m: len(m.input_ids))
    assert work.num_micro_batches == len(ranks[0])
    assert work.step_tokens == sum(sizes)
    assert work.step_targets == 6 * group_size * generated
    assert work.micro_tokens == max(sizes)
    assert work.micro_targets == len(largest.target_ids)
    assert work.micro_patches == 16 * len(largest.media_keys)
    seen_until = largest.seen_until.astype(np.int64)
    assert (work.micro_pairs, work.micro_keys) == pytest.approx(block_sizes(seen_until), rel=0.02)


@pytest.mark.parametrize("images", [0, 1, 3])
def test_ranks_that_share_sequences_are_counted_by_their_slices(images: int) -> None:
    """Four ranks, two for a sequence: half the micro-batches' tokens and images on each of them."""
    config = make_config(rollout={"prompts_per_step": 6, "group_size": 4})
    config = with_trainer(config, max_tokens_per_micro_batch=1024, num_ranks=4, sequence_parallel=2)
    prompts = Prompts(94, images, 56 * 56, 60)
    work = workload(SEVEN, prompts, config)
    ranks = packed(prompts, config, images)
    assert work.num_micro_batches == len(ranks[0])
    slices = [m for rank in ranks for m in rank]
    assert work.step_tokens == sum(len(m.input_ids) for m in slices)
    assert work.micro_tokens == max(len(m.seen_until) for m in slices)
    assert work.slice_tokens == pytest.approx(max(len(m.input_ids) for m in slices), abs=4)
    assert work.slice_patches == pytest.approx(16 * max(len(m.media_keys) for m in slices), abs=16)


@pytest.mark.parametrize(
    ("context", "turns", "ledger_turns"),
    [
        ({"policy": "full"}, 3, 3),
        ({"policy": "full"}, 30, 7),  # an eighth would not fit in 512 tokens
        ({"policy": "last_images", "num_images": 2}, 5, 2),
        ({"policy": "window", "num_turns": 2}, 5, 3),
        ({"policy": "summary"}, 5, 1),
    ],
)
def test_episodes_become_the_ledgers_that_their_context_policy_makes(
    context: dict[str, Any], turns: int, ledger_turns: int
) -> None:
    """Images of 30 tokens, actions of 30: a ledger of n turns feeds 100 + 60 n - 31 tokens."""
    config = make_config(
        rollout={"prompts_per_step": 2, "group_size": 4, "max_tokens": 30},
        episodes={"context": context},
        trainer={"max_tokens_per_micro_batch": 512},
    )
    prompts = Prompts(70, 1, 120 * 14 * 14, 30, num_turns=turns)
    work = workload(SEVEN, prompts, config)
    later = 0 if context["policy"] == "full" else turns - ledger_turns
    played = ledger_turns + later
    assert work.step_turns == 2 * 4 * played
    assert work.step_targets == work.step_turns * 30
    body = 60 * ledger_turns - 31
    whole = 100 + body
    # In the budget's 512 tokens are the prompt, once for a tree, and as many branches as fit.
    num_trees = -(-4 // max(1, 412 // body)) if 4 * whole * 0.9 >= 100 + 4 * body else 4
    assert work.step_tokens == 2 * (num_trees * 100 + 4 * body + 4 * later * whole)
    assert work.step_patches == 120 * 2 * (num_trees + 4 * (played - 1))
    assert work.prompt_tokens == work.step_tokens - work.step_turns * 30 + 2 * 4
    assert work.micro_tokens <= 512
