"""Routers replay an engine's choices of experts in a packed tree as transformers would have made them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from forked_episodes import FORKED, Family

from vlrl.errors import ConfigError, InternalError
from vlrl.ledger import ExpertArray, Ledger
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.mixture.routers import ROUTERS
from vlrl.types import Group

CPU = torch.device("cpu")
TOLERANCE = 1e-5


def routers_of(model: Any) -> list[tuple[int, Any]]:
    """(layer, router) of each layer that has one."""
    layers = enumerate(model.get_decoder().layers)
    return [(n, m) for n, layer in layers for m in layer.modules() if type(m).__name__ in ROUTERS]


def wrapped(family: Family) -> TreeLogprobs:
    """The model with replay."""
    banned = family.ours.banned_token_ids
    return TreeLogprobs(family.model, temperature=1.0, banned_token_ids=banned, replays_routing=True)


def shape_of(model: Any) -> tuple[int, int, int]:
    """(layers, experts of which one is chosen, chosen ones)."""
    router = routers_of(model)[0][1]
    return len(model.get_decoder().layers), router.num_experts, router.top_k


def with_choices(family: Family, groups: Sequence[Group]) -> list[Group]:
    """The groups with choices that no router would make; tokens that branches share have the same ones."""
    num_layers, num_experts, top_k = shape_of(family.model)

    def choices_of(ledger: Ledger) -> ExpertArray:
        rows = []
        for end in range(1, len(ledger.token_ids)):
            rng = np.random.default_rng(ledger.token_ids[:end].tolist())
            rows.append([rng.permutation(num_experts)[:top_k] for _ in range(num_layers)])
        return np.array(rows, np.uint8)

    def chosen(group: Group) -> Group:
        for trajectory in group.trajectories:
            ledgers = tuple(replace(each, routed_experts=choices_of(each)) for each in trajectory.ledgers)
            trajectory.ledgers = ledgers
        return group

    return [chosen(group) for group in groups]


@contextmanager
def choosing(model: Any, choices: ExpertArray) -> Iterator[None]:
    """Routers of a row by their formulas, in which the experts that were not chosen do not exist."""

    def forward(router: Any, layer: int, hidden: torch.Tensor) -> tuple[torch.Tensor, ...]:
        logits = torch.nn.functional.linear(hidden.reshape(-1, router.hidden_dim), router.weight)
        rows = torch.tensor(choices[:, layer].astype(np.int64))
        own = logits.topk(router.top_k).indices[len(rows) :]  # of the last token, which predicts nothing
        experts = torch.cat([rows, own])
        there = torch.zeros_like(logits, dtype=torch.bool).scatter(1, experts, True)
        if hasattr(router, "e_score_correction_bias"):
            scores = logits.sigmoid() * there
            shares = scores / scores.sum(-1, keepdim=True) * router.routed_scaling_factor
        else:
            shares = logits.masked_fill(~there, -torch.inf).softmax(-1)
        return logits, shares.gather(1, experts), experts

    routers = routers_of(model)
    for layer, router in routers:
        router.forward = lambda hidden, router=router, layer=layer: forward(router, layer, hidden)
    try:
        yield
    finally:
        for _, router in routers:
            del router.forward


def gates(model: Any) -> dict[int, torch.Tensor]:
    """Gradients of the routers, which are forgotten."""
    found = {layer: router.weight.grad.clone() for layer, router in routers_of(model)}
    model.zero_grad()
    return found


@pytest.mark.parametrize("recompute", [False, True])
def test_a_packed_tree_replays_what_each_row_was_given(family: Family, recompute: bool) -> None:
    """Logprobs, and the gradients of routers that did not make the choice."""
    groups = with_choices(family, family.groups(FORKED))
    model, expected = family.model, {}
    plain_loss: Any = 0.0
    for group in groups:
        for trajectory, credit in zip(group.trajectories, group.credits, strict=True):
            for ledger, advantages in zip(trajectory.ledgers, credit.advantages, strict=True):
                assert ledger.routed_experts is not None
                with choosing(model, ledger.routed_experts):
                    logprobs = family.plain_logprobs(ledger)
                trained = torch.tensor(ledger.loss_mask[1:])
                key = tuple(advantages[ledger.loss_mask].tolist())
                expected[key] = logprobs[trained].detach()
                plain_loss = plain_loss + (torch.tensor(advantages[1:])[trained] * logprobs[trained]).sum()
    plain_loss.backward()
    plain_gates = gates(model)

    replaying = wrapped(family)
    if recompute:
        model.train().gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    found = {}
    try:
        [micro_batches] = family.packed(groups, max_tokens=100)
        for micro_batch in micro_batches:
            logprobs, _ = replaying(DeviceBatch.of(micro_batch, CPU))
            (logprobs * torch.tensor(micro_batch.advantages)).sum().backward()
            for number in np.unique(micro_batch.sequence_ids):
                mine = micro_batch.sequence_ids == number
                found[tuple(micro_batch.advantages[mine].tolist())] = logprobs[torch.tensor(mine)].detach()
    finally:
        model.gradient_checkpointing_disable()
        model.eval()
    assert len(micro_batches) > 1 and found.keys() == expected.keys()
    for key, logprobs in expected.items():
        assert torch.allclose(found[key], logprobs, atol=TOLERANCE), (found[key] - logprobs).abs().max()
    for layer, gradient in gates(model).items():
        assert gradient.any() and torch.allclose(gradient, plain_gates[layer], atol=1e-4), layer


def test_a_models_own_choices_change_nothing(family: Family) -> None:
    """Equal to the last bit; tokens of which no choice is known are routed as ever."""
    [[micro_batch]] = family.packed(family.groups(FORKED[:1]))
    batch, replaying, own = DeviceBatch.of(micro_batch, CPU), wrapped(family), {}
    hooks = [
        router.register_forward_hook(lambda _, __, output, layer=layer: own.__setitem__(layer, output[2]))
        for layer, router in routers_of(family.model)
    ]
    with torch.no_grad():
        expected, _ = replaying(batch)
        for hook in hooks:
            hook.remove()
        num_layers, _, top_k = shape_of(family.model)
        batch.routed_experts = torch.full((len(batch.input_ids), num_layers, top_k), -1, dtype=torch.int16)
        unknown, _ = replaying(batch)
        for layer, experts in own.items():
            batch.routed_experts[:, layer] = experts.short()
        replayed, _ = replaying(batch)
    assert torch.equal(unknown, expected) and torch.equal(replayed, expected)


def test_choices_for_other_tokens_are_refused(family: Family) -> None:
    [[micro_batch]] = family.packed(family.groups(FORKED[:1]))
    batch, replaying = DeviceBatch.of(micro_batch, CPU), wrapped(family)
    num_layers, _, top_k = shape_of(family.model)
    batch.routed_experts = torch.zeros((3, num_layers, top_k), dtype=torch.int16)
    with pytest.raises(InternalError, match=r"sees \d+ tokens of a micro-batch with choices .* for 3"):
        replaying(batch)


def test_slices_have_their_own_tokens_choices(family: Family) -> None:
    """Also where a sequence is filled up with ignored tokens."""
    groups = with_choices(family, family.groups(FORKED[:1]))
    [[whole]] = family.packed(groups)
    slices = family.packed(groups, num_ranks=2, sequence_parallel=2)
    assert whole.routed_experts is not None and (whole.routed_experts >= 0).all()
    parts = [of_rank[0].routed_experts for of_rank in slices]
    assert np.array_equal(np.concatenate(parts), whole.routed_experts)  # type: ignore[arg-type]


def test_a_ledger_without_choices_beside_one_with_them(family: Family) -> None:
    first, second = family.groups(FORKED[:2])
    [first] = with_choices(family, [first])
    [[both]] = family.packed([first, second])
    assert both.routed_experts is not None
    known = (both.routed_experts >= 0).all(axis=(1, 2))
    assert known.any() and not known.all()
    assert set(both.routed_experts[~known].ravel().tolist()) == {-1}
    [[neither]] = family.packed(family.groups(FORKED[:1]))
    assert neither.routed_experts is None


def test_a_model_without_experts_is_refused(tiny_family: Callable[[str], Path]) -> None:
    dense = Family.open("qwen3_vl", tiny_family("qwen3_vl"))
    with pytest.raises(ConfigError, match=r"generator\.routing_replay: .* has no router of experts"):
        wrapped(dense)
