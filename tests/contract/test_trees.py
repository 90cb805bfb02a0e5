"""Any tree of episodes, packed, against transformers' own forward pass of every ledger as a row of its own.

Logprobs and gradients of every parameter, for every family: images and videos, deepstack, mixtures of
experts; episodes that part at any token, branch from each other, or share only how they begin.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked_episodes import FORKED, Family, Turn
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sharers import Sharers
from torch.utils._python_dispatch import TorchDispatchMode

from vlrl.batch import MicroBatch
from vlrl.model import tree_attention
from vlrl.model.attention import Kind
from vlrl.model.kernels import nodes
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.layout import slices_of
from vlrl.packing.pack import branches_of
from vlrl.packing.prefix_tree import Keys
from vlrl.registry import BUILT_IN
from vlrl.types import Group

TOLERANCE = 1e-5
CPU = torch.device("cpu")
# torch's list of what raises under use_deterministic_algorithms on CUDA, as far as it is differentiable or a
# network may call it; `interpolate` is "nearest" or an upsample of one of these names. `histc` is not here:
# the mixtures of experts give it integers on CUDA, which add up to the same in any order.
NOT_ORDERED_ON_CUDA = re.compile(
    r"aten\.(avg_pool3d_backward|_?adaptive_(avg|max)_pool\dd_backward|fractional_max_pool\dd_backward|max_unpool|"
    r"_?upsample_(linear1d|bilinear2d|bicubic2d|trilinear3d)(_aa)?_backward|reflection_pad\dd_backward|nll_loss|"
    r"_ctc_loss_backward|_embedding_bag|put_|bincount|median|grid_sampler_\dd_backward)"
)


TURNS = st.builds(
    Turn,
    after=st.integers(0, 5),
    image=st.none() | st.integers(0, 2),
    generated=st.lists(st.integers(40, 43), min_size=1, max_size=4),
)
EPISODES = st.tuples(st.sampled_from(["", "image", "video"]), st.lists(TURNS, min_size=2, max_size=5))


@pytest.fixture(scope="module", params=[*sorted(BUILT_IN["processors"]), "internvl3_5", "internvl3_5_moe"])
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    return Family.open(request.param, tiny_family(request.param))


@dataclass(frozen=True)
class Plain:
    """What transformers computes of each ledger of some groups as a row of its own.

    Attributes:
        logprobs: of an episode's trained tokens by their advantages: no two episodes have the same.
        gradients: of every parameter.
        num_tokens: in all rows.
    """

    logprobs: dict[tuple[float, ...], torch.Tensor]
    gradients: dict[str, torch.Tensor]
    num_tokens: int

    @classmethod
    def of(cls, family: Family, groups: list[Group]) -> Plain:
        branches = [
            branch
            for group in groups
            for branch in branches_of(group, [1.0] * len(group.trajectories), Keys())
        ]
        weight = 1.0 / sum(int(b.trained.sum()) for b in branches)
        loss: Any = 0.0
        found: dict[tuple[float, ...], torch.Tensor] = {}
        for branch in branches:
            trained = torch.tensor(branch.trained[1:])
            logprobs = family.plain_logprobs(branch.ledger)[trained]
            advantages = torch.tensor(branch.advantages[1:])[trained]
            loss = loss + weight * (advantages * logprobs).sum()
            found[tuple(advantages.tolist())] = logprobs.detach()
        return cls(found, family.gradients(loss), sum(len(b.ledger.token_ids) for b in branches))


@pytest.fixture(scope="module")
def forked(family: Family) -> tuple[list[Group], Plain]:
    """The forked episodes and their rows, computed once for all that packs them."""
    groups = family.groups(FORKED)
    return groups, Plain.of(family, groups)


def check(
    family: Family, groups: list[Group], plain: Plain, max_tokens: int, attention: Kind = "nodes"
) -> int:
    """Hold packed to plain; returns how many tokens packing saved."""
    [micro_batches] = family.packed(groups, max_tokens=max_tokens)
    wrapped = TreeLogprobs(
        family.model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids, attention=attention
    )
    outputs = [wrapped(DeviceBatch.of(m, CPU))[0] for m in micro_batches]
    factors = [torch.tensor(m.weights * m.advantages) for m in micro_batches]
    loss = sum((f * o).sum() for f, o in zip(factors, outputs, strict=True))
    expected = dict(plain.logprobs)
    for micro_batch, output in zip(micro_batches, outputs, strict=True):
        for row in range(len(micro_batch.token_sample_ids)):
            mine = micro_batch.sequence_ids == row
            name = tuple(micro_batch.advantages[mine].tolist())
            assert (output.detach()[torch.tensor(mine)] - expected.pop(name)).abs().max() < TOLERANCE
    assert not expected
    assert_same_gradients(family.gradients(loss), plain.gradients)  # type: ignore[arg-type]
    return plain.num_tokens - sum(m.input_ids.size for m in micro_batches)


def assert_same_gradients(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    # Without an image the tower still takes part, with gradients of zero.
    scale = max(float(g.abs().max()) for g in expected.values())
    assert expected.keys() <= found.keys()
    for name, gradient in found.items():
        difference = gradient - expected[name] if name in expected else gradient
        assert float(difference.abs().max()) <= TOLERANCE * scale, name


@pytest.fixture(scope="module")
def sharers() -> Iterator[Sharers]:
    with Sharers(2) as started:
        yield started


@pytest.mark.parametrize("checkpointed", [False, True])
def test_a_tree_equals_plain_rows(
    family: Family, forked: tuple[list[Group], Plain], checkpointed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes; blocks far smaller than an image, whose masks are kept or computed again; and one mask."""
    groups, plain = forked
    monkeypatch.setattr(nodes, "TOGETHER", 16)
    monkeypatch.setattr(tree_attention, "BLOCK_TOKENS", 16)
    family.checkpointed(checkpointed)
    try:
        assert check(family, groups, plain, 4096) > 0
        check(family, groups, plain, 4096, "blocks")
        monkeypatch.setattr(tree_attention, "KEPT_PAIRS", 0)
        check(family, groups, plain, 4096, "blocks" if checkpointed else "dense")
    finally:
        family.checkpointed(False)


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(EPISODES, min_size=1, max_size=2), st.sampled_from([1, 150, 4096]))
def test_any_tree_equals_plain_rows(
    family: Family, specs: list[tuple[str, list[Turn]]], max_tokens: int
) -> None:
    groups = family.groups(specs)
    check(family, groups, Plain.of(family, groups), max_tokens)


def test_slices_of_two_ranks_add_up_to_the_whole(family: Family, sharers: Sharers) -> None:
    """Ulysses: each rank has half of the tokens, and in attention all tokens and half of the heads."""
    groups, banned = family.groups(FORKED), family.ours.banned_token_ids
    [[whole]] = family.packed(groups)
    shared = family.packed(groups, num_ranks=2, sequence_parallel=2)
    slices = [part for [part] in shared]
    assert all(part.slice_lengths == tuple(len(p.input_ids) for p in slices) for part in slices)
    wrapped = TreeLogprobs(family.model, temperature=1.0, banned_token_ids=banned)
    logprobs = wrapped(DeviceBatch.of(whole, CPU))[0]
    expected = family.gradients((torch.tensor(whole.weights * whole.advantages) * logprobs).sum())
    answers = sharers(Path(family.model.name_or_path), banned, slices)
    start = 0
    for part, (found, _) in zip(slices, answers, strict=True):
        end = start + len(part.input_ids)
        mine = torch.tensor((start <= whole.source_index) & (whole.source_index < end))
        assert torch.tensor(found).sub(logprobs.detach()[mine]).abs().max() < TOLERANCE
        start = end
    names = {name for _, gradients in answers for name in gradients}
    summed = {n: sum(torch.tensor(g[n]) for _, g in answers if n in g) for n in names}
    assert_same_gradients(summed, expected)  # type: ignore[arg-type]


class Operations(TorchDispatchMode):
    """Keeps the names of those that sum in no fixed order on CUDA and have no ordered algorithm there."""

    def __init__(self) -> None:
        super().__init__()
        self.num_seen, self.without_order = 0, set[str]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.num_seen += 1
        output = func(*args, **(kwargs or {}))
        of_floats = isinstance(output, torch.Tensor) and output.is_floating_point()
        if NOT_ORDERED_ON_CUDA.match(str(func)) or (str(func).startswith("aten.cumsum") and of_floats):
            self.without_order.add(str(func))
        return output


def test_every_operation_of_both_passes_has_an_ordered_algorithm_on_cuda(family: Family) -> None:
    """PyTorch refuses the others there with trainer.deterministic, and law 8 cannot hold without it."""
    [[batch]] = family.packed(family.groups(FORKED))
    wrapped = TreeLogprobs(family.model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids)
    with Operations() as operations:
        logprobs, entropy = wrapped(DeviceBatch.of(batch, CPU))
        family.gradients(logprobs.sum() + entropy.sum())
    assert operations.num_seen > 100
    assert not operations.without_order


def test_a_prompt_is_shared_up_to_where_another_image_begins(family: Family) -> None:
    """Not only whole turns: the text before an image, and the image before a text."""
    groups = family.groups([("", []), ("image", []), ("image", [])])
    branches = [b for g in groups for b in branches_of(g, [1.0], Keys())]
    sizes = [b.keys.shape[1] for b in branches]
    pads = family.ours.banned_token_ids

    def packed(*numbers: int) -> MicroBatch:
        keys = Keys()
        branches = [b for i in numbers for b in branches_of(groups[i], [1.0], keys)]
        [whole] = slices_of(branches)
        return whole.micro_batch(family.ours.pixels)

    words, images = packed(0, 1), packed(1, 2)
    assert words.input_ids.size < sizes[0] + sizes[1] - 2  # the system prompt, at least
    num_pads = int(np.isin(branches[1].ledger.token_ids, pads).sum())
    assert np.isin(images.input_ids, pads).sum() == num_pads  # "Task 1." and "Task 2." see the same one
    assert len(images.media_order) == 1
