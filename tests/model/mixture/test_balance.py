"""The routers' auxiliary loss: transformers' value, and its gradient beside that of the logprobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import family_config
from forked_episodes import FORKED, Family
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

from vlrl.errors import ConfigError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.mixture.balance import RouterBalance
from vlrl.model.mixture.routers import ROUTERS, RouterKind

CPU = torch.device("cpu")
COEF = 0.3


def routers_of(model: Any) -> list[tuple[RouterKind, Any]]:
    """(kind, router) of each layer that has one."""
    layers = model.get_decoder().layers
    named = [(type(m).__name__, m) for layer in layers for m in layer.modules()]
    return [(ROUTERS[name], module) for name, module in named if name in ROUTERS]


def wrapped(family: Family, coef: float) -> TreeLogprobs:
    banned = family.ours.banned_token_ids
    return TreeLogprobs(family.model, temperature=1.0, banned_token_ids=banned, router_aux_coef=coef)


def gradients(model: Any) -> dict[str, torch.Tensor]:
    """Each parameter's, which is forgotten."""
    found = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return found


def of_layers(family: Family, batch: DeviceBatch) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """(the loss by its formula, the logits) of each layer, with gradient."""
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def note(kind: RouterKind, output: tuple[torch.Tensor, ...]) -> None:
        logits, _, experts = output
        counts = torch.zeros_like(logits).scatter(1, experts, 1.0)
        means = counts.mean(0) * kind.probabilities(logits).mean(0)
        seen.append((logits.shape[1] * means.sum(), logits))

    hooks = [
        router.register_forward_hook(lambda _, __, output, kind=kind: note(kind, output))
        for kind, router in routers_of(family.model)
    ]
    wrapped(family, 0.0)(batch)
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("recompute", [False, True])
def test_its_gradient_is_added_to_that_of_the_logprobs(family: Family, recompute: bool) -> None:
    [[micro_batch]] = family.packed(family.groups(FORKED[:2]))
    batch, model = DeviceBatch.of(micro_batch, CPU), family.model
    share = batch.weights.sum() / 2  # another micro-batch has the rest
    batch.weights = batch.weights / 2

    logprobs, _ = wrapped(family, 0.0)(batch)
    logprobs.sum().backward()
    plain = gradients(model)
    losses = [loss for loss, _ in of_layers(family, batch)]
    expected_loss = share * torch.stack(losses).mean()
    (COEF * expected_loss).backward()
    auxiliary = gradients(model)

    balanced = wrapped(family, COEF)
    if recompute:
        model.train().gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    try:
        logprobs, _ = balanced(batch)
        logprobs.sum().backward()
    finally:
        model.gradient_checkpointing_disable()
        model.eval()
    both = gradients(model)
    assert balanced.balance is not None
    assert balanced.balance.loss == pytest.approx(float(expected_loss.detach()), rel=1e-5)
    assert any("gate" in name and g.abs().max() > 1e-5 for name, g in auxiliary.items())
    for name, gradient in plain.items():
        whole = gradient + auxiliary.get(name, torch.zeros_like(gradient))
        assert torch.allclose(both[name], whole, atol=1e-4 * max(1.0, float(whole.abs().max()))), name


def test_a_layers_loss_is_transformers_own(tiny_family: Callable[[str], Path]) -> None:
    """Their function pools the layers; given one of them, it is the same."""
    family = Family.open("qwen3_vl_moe", tiny_family("qwen3_vl_moe"))
    [[micro_batch]] = family.packed(family.groups(FORKED[:1]))
    for loss, logits in of_layers(family, DeviceBatch.of(micro_batch, CPU)):
        router = routers_of(family.model)[0][1]
        theirs = load_balancing_loss_func((logits,), router.num_experts, router.top_k)
        assert float(loss.detach()) == pytest.approx(float(theirs), rel=1e-5)


def test_it_evens_the_use_of_experts_out(family: Family) -> None:
    """Routers alone are trained, by this loss alone: some experts were used much more than others."""
    [[micro_batch]] = family.packed(family.groups(FORKED))
    batch, model = DeviceBatch.of(micro_batch, CPU), family.model
    routers = [router for _, router in routers_of(model)]
    before = [router.weight.detach().clone() for router in routers]
    balanced = wrapped(family, 1.0)
    assert balanced.balance is not None
    optimizer, losses = torch.optim.Adam([router.weight for router in routers], lr=0.01), []
    for _ in range(12):
        logprobs, _ = balanced(batch)
        (0.0 * logprobs.sum()).backward()
        losses.append(balanced.balance.loss)
        optimizer.step()
        model.zero_grad()
    top_k = routers[0].top_k
    assert losses[0] > losses[-1] >= 0.98 * top_k
    assert losses[-1] - top_k < 0.8 * (losses[0] - top_k), losses
    with torch.no_grad():
        for router, weight in zip(routers, before, strict=True):
            router.weight.copy_(weight)


def test_a_pass_without_gradient_has_none(family: Family) -> None:
    [[micro_batch]] = family.packed(family.groups(FORKED[:1]))
    balanced = wrapped(family, COEF)
    with torch.no_grad():
        balanced(DeviceBatch.of(micro_batch, CPU))
    assert balanced.balance is not None and balanced.balance.loss == 0.0


def test_a_model_without_experts_is_refused(tiny_model: Path) -> None:
    from transformers import AutoModelForImageTextToText

    path = family_config(tiny_model).model.path
    with pytest.raises(ConfigError, match=r"trainer\.router_aux_coef: .* has no router of experts"):
        RouterBalance(AutoModelForImageTextToText.from_pretrained(path), 0.1)
