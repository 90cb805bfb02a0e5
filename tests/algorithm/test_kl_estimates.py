"""The forms of k3 whose gradient is the KL's: over a whole distribution, on and off policy."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vlrl.algorithm.loss import kl_k3
from vlrl.algorithm.regularizers import k3_plus, k3_unbiased

LOGITS = torch.tensor([0.3, -1.0, 0.8, 0.1], dtype=torch.float64)
REFERENCE = torch.log_softmax(torch.tensor([0.0, 0.5, -0.2, 1.0], dtype=torch.float64), 0)
SAMPLER = torch.log_softmax(torch.tensor([0.9, -0.3, 0.1, 0.4], dtype=torch.float64), 0)


def kl_and_gradient() -> tuple[float, Tensor]:
    logits = LOGITS.clone().requires_grad_()
    own = torch.log_softmax(logits, 0)
    value = (own.exp() * (own - REFERENCE)).sum()
    (gradient,) = torch.autograd.grad(value, logits)
    return float(value.detach()), gradient


def test_k3_plus_has_the_value_of_k3_and_the_gradient_of_the_kl() -> None:
    kl, expected = kl_and_gradient()
    logits = LOGITS.clone().requires_grad_()
    own = torch.log_softmax(logits, 0)
    found = k3_plus(own, REFERENCE)
    assert torch.allclose(found, kl_k3(own, REFERENCE))
    mean = (own.exp().detach() * found).sum()
    assert float(mean.detach()) == pytest.approx(kl)
    (gradient,) = torch.autograd.grad(mean, logits)
    assert torch.allclose(gradient, expected)


def test_k3_unbiased_is_the_kl_over_tokens_of_another_policy() -> None:
    kl, expected = kl_and_gradient()
    logits = LOGITS.clone().requires_grad_()
    own = torch.log_softmax(logits, 0)
    mean = (SAMPLER.exp() * k3_unbiased(own, REFERENCE, sampler_logprobs=SAMPLER)).sum()
    assert float(mean.detach()) == pytest.approx(kl)
    (gradient,) = torch.autograd.grad(mean, logits)
    assert torch.allclose(gradient, expected)


def test_k3_itself_has_the_gradient_of_the_other_direction() -> None:
    logits = LOGITS.clone().requires_grad_()
    own = torch.log_softmax(logits, 0)
    (gradient,) = torch.autograd.grad((own.exp().detach() * kl_k3(own, REFERENCE)).sum(), logits)
    again = LOGITS.clone().requires_grad_()
    reverse = (REFERENCE.exp() * (REFERENCE - torch.log_softmax(again, 0))).sum()
    (expected,) = torch.autograd.grad(reverse, again)
    assert torch.allclose(gradient, expected)
    assert not torch.allclose(gradient, kl_and_gradient()[1], atol=1e-2)
