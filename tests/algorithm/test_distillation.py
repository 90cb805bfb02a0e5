"""What a teacher adds to advantages, against the exact gradient of the reverse KL over all tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vlrl.algorithm.distillation import teacher_advantages
from vlrl.algorithm.loss import clipped_surrogate
from vlrl.algorithm.losses.policy_gradient import policy_gradient

VOCAB = 7


def distributions(seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of a student (with gradient), of a teacher, and of what sampled, over one token, in float64."""
    generator = torch.Generator().manual_seed(seed)
    student, teacher, sampler = (
        torch.randn(VOCAB, generator=generator, dtype=torch.float64) for _ in range(3)
    )
    return student.requires_grad_(), teacher, sampler


def exact_gradient(student: Tensor, teacher: Tensor) -> Tensor:
    """Gradient of KL(student || teacher), GKD's reverse KL; TRL's generalized_jsd_loss with beta=1."""
    own, other = student.log_softmax(0), teacher.log_softmax(0)
    (found,) = torch.autograd.grad((own.exp() * (own - other)).sum(), student)
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("coef", [1.0, 0.3])
def test_over_all_tokens_it_is_the_gradient_of_the_reverse_kl(seed: int, coef: float) -> None:
    student, teacher, _ = distributions(seed)
    own, other = student.log_softmax(0), teacher.log_softmax(0)
    advantages = teacher_advantages(own, other, coef)
    loss, _ = policy_gradient(own, own.detach(), advantages)
    (found,) = torch.autograd.grad((own.detach().exp() * loss).sum(), student)
    assert torch.allclose(found, coef * exact_gradient(student, teacher), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_with_tokens_of_older_weights_too_if_their_ratio_is_not_clipped(seed: int) -> None:
    """Therefore the advantage is of the policy that learns; with the sampler's there is a bias."""
    student, teacher, behaviour = distributions(seed)
    own, other, sampler = student.log_softmax(0), teacher.log_softmax(0), behaviour.log_softmax(0)

    def gradient(judged: Tensor) -> Tensor:
        advantages = teacher_advantages(judged, other, 1.0)
        loss, clipped = clipped_surrogate(own, sampler, advantages, clip_low=0.999, clip_high=1e6)
        assert not clipped.any()
        (found,) = torch.autograd.grad((sampler.exp() * loss).sum(), student, retain_graph=True)
        return found

    exact = exact_gradient(student, teacher)
    assert torch.allclose(gradient(own), exact, rtol=1e-10, atol=1e-14)
    assert float((gradient(sampler) - exact).abs().max()) > 0.01


def test_it_is_a_constant_and_zero_where_both_agree() -> None:
    student, teacher, _ = distributions(0)
    own = student.log_softmax(0)
    assert not teacher_advantages(own, teacher.log_softmax(0), 1.0).requires_grad
    assert teacher_advantages(own, own, 5.0).abs().max() == 0


def test_tokens_by_hand() -> None:
    """The student is surer than the teacher of the first token, and less sure of the second."""
    own, other = torch.tensor([0.5, 0.25]).log(), torch.tensor([0.25, 0.5]).log()
    assert teacher_advantages(own, other, 2.0).tolist() == pytest.approx([-1.386294, 1.386294], rel=1e-6)
