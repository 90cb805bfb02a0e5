"""Losses of groups: all of a group is in one micro-batch, on any number of ranks, or is refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from builders import make_group, make_sample, no_pixels
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.batch import Batch
from vlrl.errors import DataError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

SIGNS = (1.0, -1.0)


def pairs(lengths: Sequence[tuple[int, int]], prompts: int = 3) -> list[Group]:
    """Pairs of completions of these lengths; few prompts, so that several pairs share one."""
    return [
        make_group(
            pair,
            sample=make_sample([1, 2, 3 + i % prompts] * 4, id=str(i)),
            advantages=SIGNS,
            seed=i,
            vocab=3,
        )
        for i, pair in enumerate(lengths)
    ]


def lay_out(groups: Sequence[Group], num_ranks: int = 1, slices: int = 1, max_tokens: int = 64) -> Batch:
    options = PackOptions(
        num_ranks=num_ranks,
        max_tokens=max_tokens,
        max_completion_tokens=16,
        aggregation="group",
        sequence_parallel=slices,
    )
    return pack(groups, no_pixels, options)


@given(
    st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=12),
    st.sampled_from([(1, 1), (2, 1), (3, 1), (2, 2), (4, 2)]),
)
@settings(max_examples=60)
def test_a_pair_is_whole_wherever_it_is(lengths: list[tuple[int, int]], ranks: tuple[int, int]) -> None:
    num_ranks, slices = ranks
    groups = pairs(lengths)
    batch = lay_out(groups, num_ranks, slices)
    seen: dict[str, tuple[int, int]] = {}
    total = 0.0
    for first in range(0, num_ranks, slices):  # ranks of a row have the slices of the same micro-batches
        for number, parts in enumerate(zip(*batch[first : first + slices], strict=True)):
            signs: defaultdict[int, list[float]] = defaultdict(list)
            samples: defaultdict[int, set[str]] = defaultdict(set)
            for part in parts:
                if not len(part.token_sample_ids):
                    continue
                assert part.group_ids is not None
                total += float(part.weights.sum())
                for group, sequence, sign in zip(
                    part.group_ids.tolist(), part.sequence_ids.tolist(), part.advantages, strict=True
                ):
                    signs[group].append(float(sign))
                    samples[group].add(part.token_sample_ids[sequence])
            for group, ids in samples.items():
                [sample_id] = ids
                assert sample_id not in seen
                seen[sample_id] = (first, number)
                chosen, rejected = lengths[int(sample_id)]
                assert (signs[group].count(1.0), signs[group].count(-1.0)) == (chosen, rejected)
    assert seen.keys() == {str(i) for i in range(len(lengths))}
    num_tokens = sum(map(sum, lengths))
    assert total == pytest.approx(num_tokens / len(lengths), rel=1e-5)  # each token: 1 / groups


def test_a_pair_shares_its_prompt() -> None:
    [[batch]] = lay_out(pairs([(3, 2)]))
    assert len(batch.input_ids) <= 12 + 2 + 1


def test_groups_that_do_not_count_are_none_of_the_average() -> None:
    groups = pairs([(2, 2), (3, 3)])
    for credit in groups[0].credits:
        object.__setattr__(credit, "counts", False)
    [[batch]] = lay_out(groups)
    assert np.allclose(batch.weights, 1.0)
    assert set(batch.token_sample_ids) == {"1"}


def test_a_pair_that_cannot_fit_is_refused_in_words() -> None:
    with pytest.raises(DataError, match=r"sample '0': .* in one micro-batch of 64; raise trainer.max_tokens"):
        lay_out(pairs([(40, 40)]))


def test_other_losses_are_packed_without_group_numbers() -> None:
    options = PackOptions(num_ranks=1, max_tokens=64, max_completion_tokens=16)
    [[batch]] = pack(pairs([(2, 3)]), no_pixels, options)
    assert batch.group_ids is None
