"""Several policies on real ranks: AdamW of each as if it were alone, and older selves as exact copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, make_group, open_tiny, random_image, row
from loaded_ranks import Slices
from rank_processes import RankProcesses, free_port
from regularized_ranks import with_copies
from torch import Tensor

from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.model.lora import policy_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.types import Group

NUM_STEPS = 3
POLICIES: dict[str, Any] = {
    "giver": {"agents": ["giver"]},
    "guesser": {"agents": ["guesser"]},
    "older": {"agents": ["second"], "copies": "giver", "every": 2},
    "first": {"agents": ["third"], "copies": "guesser"},
}


def config_of(model: Path, num_ranks: int) -> Config:
    return make_config(
        model,
        trainer={"num_ranks": num_ranks},
        lora={"rank": 3, "alpha": 6, "sync": "adapter"},
        policies=POLICIES,
        optim={"max_grad_norm": 1e6},  # the norm is of all policies together
    )


def groups_of(model: Path, step: int) -> list[Group]:
    processor, groups = open_tiny(model), []
    for number, agent in enumerate(("giver", "guesser")):
        shown = row(f"Look {number}.", [random_image(56, 84, 2 * step + number)], row_id=f"s/{agent}")
        sample = replace(processor.sample(shown), agent=agent)
        # Of different lengths: a mean over both policies' tokens would be another.
        lengths = [5 - number, 3 - number]
        groups.append(make_group(lengths, sample=sample, advantages=[1.0, -1.0], seed=2 * step + number))
    return groups


def batches(
    model: Path, num_ranks: int, count: int, agents: Sequence[str] = ("giver", "guesser")
) -> list[Batch]:
    processor = open_tiny(model)
    options = PackOptions.of(config_of(model, num_ranks))
    return [
        pack([g for g in groups_of(model, step) if g.agent in agents], processor.pixels, options)
        for step in range(count)
    ]


def run(
    processes: RankProcesses, model: Path, steps: Sequence[Batch], *folders: Path | None
) -> list[dict[str, Tensor]]:
    """Whole weights of the adapters, at first and after each step."""
    count, port = processes.count, free_port()
    config = config_of(model, count)
    answers: list[list[Slices]] = processes.run(
        with_copies,
        [(config, rank, port, [step[rank] for step in steps], *folders) for rank in range(count)],
    )
    return [
        {
            name: torch.cat([of_rank[name][0] for of_rank in at_once])[: torch.Size(shape).numel()]
            for name, (_, shape) in at_once[0].items()
            if ".lora_" in name
        }
        for at_once in zip(*answers, strict=True)
    ]


def of(weights: dict[str, Tensor], policy: str) -> dict[str, Tensor]:
    return {name.replace(f".{policy}.", "."): w for name, w in weights.items() if policy_of(name) == policy}


def assert_same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys() and found
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []


@pytest.mark.slow
@pytest.mark.timeout(900)  # four starts of ranks
def test_policies_are_trained_as_if_alone_and_copies_are_exact(tiny_model: Path, tmp_path: Path) -> None:
    with RankProcesses(2) as ranks:
        start, one, two, three = run(ranks, tiny_model, batches(tiny_model, 2, NUM_STEPS), tmp_path)
    assert_same(of(start, "older"), of(start, "giver"))  # both halves, before the first step
    assert_same(of(one, "older"), of(start, "giver"))
    assert_same(of(two, "older"), of(two, "giver"))
    assert_same(of(three, "older"), of(two, "giver"))
    assert_same(of(three, "first"), of(start, "guesser"))
    with RankProcesses(1) as rank:
        for policy, other in (("giver", "guesser"), ("guesser", "giver")):
            first, *_, alone = run(rank, tiny_model, batches(tiny_model, 1, NUM_STEPS, [policy]))
            assert_same(first, start)
            assert_same(of(alone, other), of(start, other))  # no token, no step
            for name, expected in of(alone, policy).items():
                assert not torch.equal(expected, of(start, policy)[name])
                # AdamW's first steps are of the size of the rate, 1e-2, whatever the gradient.
                assert torch.allclose(of(three, policy)[name], expected, atol=2e-4), name
        # Another number of ranks has the copies that were saved, not those that are due where it goes on.
        [resumed] = run(rank, tiny_model, [], None, tmp_path)
    assert_same(resumed, three)
