"""What a step knows of all its tokens is the same however they are packed and on how many ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from rank_processes import RankProcesses, free_port
from regularized_ranks import surveyed
from torch import Tensor

from vlrl.algorithm.selections.covariance import clip_cov
from vlrl.algorithm.selections.top_entropy import top_entropy

LENGTHS = (7, 3, 12, 5, 9, 1, 8, 15)
"""Of ledgers."""
ALL = sum(LENGTHS)


def ledgers() -> list[dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(0)
    found = []
    for length in LENGTHS:
        noise = torch.randn(5, length, generator=generator)
        sampler = -noise[0].abs()
        found.append(
            {
                "sampler_logprobs": sampler,
                "reference": sampler + 0.3 * noise[1],
                "policy": sampler + 0.1 * noise[2],
                "advantages": noise[3],
                "entropies": noise[4].abs(),
            }
        )
    return found


def packed(numbers: Sequence[int]) -> dict[str, Tensor]:
    """A micro-batch of these ledgers."""
    parts = [ledgers()[number] for number in numbers]
    lengths = torch.tensor([LENGTHS[number] for number in numbers], dtype=torch.int64)
    names = ledgers()[0]
    joined = {name: torch.cat([part[name] for part in parts]) if parts else torch.zeros(0) for name in names}
    return {**joined, "sequence_ids": torch.repeat_interleave(torch.arange(len(numbers)), lengths)}


class Ranks:
    """Some ranks, which answer by ledger."""

    def __init__(self, processes: RankProcesses) -> None:
        self._processes, self._port = processes, free_port()

    def __call__(
        self, keys: dict[str, Any], layout: Sequence[Sequence[Sequence[int]]]
    ) -> dict[str, list[Tensor]]:
        """What each ledger's tokens get, by name; the layout has ledgers by rank and micro-batch."""
        count = self._processes.count
        answers = self._processes.run(
            surveyed,
            [
                (rank, count, self._port, keys, [packed(numbers) for numbers in of_rank])
                for rank, of_rank in enumerate(layout)
            ],
        )
        found: dict[str, list[Tensor]] = {}
        for of_rank, answer in zip(layout, answers, strict=True):
            for numbers, terms in zip(of_rank, answer, strict=True):
                for name, values in terms.items():
                    row = found.setdefault(name, [torch.zeros(0)] * len(LENGTHS))
                    split = values.split([LENGTHS[number] for number in numbers])
                    for number, part in zip(numbers, split, strict=True):
                        row[number] = part
        return found


@pytest.fixture(scope="module")
def one() -> Iterator[Ranks]:
    with RankProcesses(1) as processes:
        yield Ranks(processes)


@pytest.fixture(scope="module")
def three() -> Iterator[Ranks]:
    with RankProcesses(3) as processes:
        yield Ranks(processes)


TOGETHER = [[[0, 1, 2, 3, 4, 5, 6, 7]]]
APART = [[[7, 1], [4]], [[2, 0], []], [[6, 3], [5]]]
"""On three ranks, one of them with a micro-batch of nothing."""
KEYS: dict[str, dict[str, Any]] = {
    "top_entropy": {"selections": "top_entropy"},
    "clip_cov": {"selections": [{"name": "clip_cov", "options": {"share": 0.2, "low": 0.1}}]},
    "kl_cov": {"selections": [{"name": "kl_cov", "options": {"share": 0.1}}]},
    "kl in the reward": {"kl_coef": 0.3, "kl_in": "reward"},
    "normalised with it": {"kl_coef": 0.3, "kl_in": "reward", "normalize": "batch"},
    "all together": {
        "kl_coef": 0.3, "kl_in": "reward", "normalize": "batch", "selections": ["clip_cov", "top_entropy"],
    },
}  # fmt: skip


@pytest.mark.parametrize("case", KEYS)
def test_packing_and_ranks_change_no_bit(one: Ranks, three: Ranks, case: str) -> None:
    expected, found = one(KEYS[case], TOGETHER), three(KEYS[case], APART)
    assert found.keys() == expected.keys()
    for name, of_ledgers in expected.items():
        assert all(map(torch.equal, of_ledgers, found[name])), name


def test_the_numbers_are_those_of_the_whole_batch(one: Ranks) -> None:
    whole = packed(range(len(LENGTHS)))
    columns = [whole[name].double() for name in ("policy", "advantages", "entropies")]
    found = one(KEYS["top_entropy"], TOGETHER)
    assert torch.equal(torch.cat(found["factors"]).double(), top_entropy(*columns)[0])
    kept = int(torch.cat(found["factors"]).sum())
    assert kept == ALL - int(np.ceil(0.8 * (ALL - 1)))
    found = one(KEYS["clip_cov"], TOGETHER)
    assert torch.equal(
        torch.cat(found["factors"]).double(), clip_cov(*columns, seed=5, share=0.2, low=0.1)[0]
    )


def test_reinforce_pp_by_hand(three: Ranks) -> None:
    """A_t - β Σ_{i ≥ t} KL_i, then the mean and the deviation over all tokens of all ranks."""
    expected = []
    for ledger in ledgers():
        kl = (ledger["sampler_logprobs"] - ledger["reference"]).double().tolist()
        advantages = ledger["advantages"].double().tolist()
        expected += [advantage - 0.3 * sum(kl[t:]) for t, advantage in enumerate(advantages)]
    values = np.array(expected)
    plain = three(KEYS["kl in the reward"], APART)["advantages"]
    assert torch.cat(plain).numpy() == pytest.approx(values, abs=1e-5)
    scaled = three(KEYS["normalised with it"], APART)["advantages"]
    assert torch.cat(scaled).numpy() == pytest.approx((values - values.mean()) / values.std(), abs=1e-5)


def test_ranks_that_share_ledgers_add_what_comes_after_theirs(three: Ranks, one: Ranks) -> None:
    """Each of the ledgers is cut in three; the middle one of the shortest has nothing."""
    keys = {"kl_coef": 0.3, "kl_in": "reward"}
    whole = packed([2, 1])
    cuts = [(0, 4, 9, 12), (12, 14, 14, 15)]
    parts = [torch.cat([torch.arange(cut[rank], cut[rank + 1]) for cut in cuts]) for rank in range(3)]
    answers = three._processes.run(
        surveyed,
        [
            (rank, 3, three._port, {**keys, "shares": True},
             [{name: values[part] for name, values in whole.items()}])
            for rank, part in enumerate(parts)
        ],
    )  # fmt: skip
    found = torch.zeros(15)
    for part, answer in zip(parts, answers, strict=True):
        found[part] = answer[0]["advantages"]
    by_ledger = one(keys, TOGETHER)["advantages"]
    assert torch.allclose(found, torch.cat([by_ledger[2], by_ledger[1]]), atol=1e-6)
