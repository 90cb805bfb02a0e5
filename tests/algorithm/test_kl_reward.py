"""KL in the reward: its sum by hand, its gradient over a whole tree of sequences, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor

from vlrl.algorithm.penalties.kl_reward import kl_to_go
from vlrl.config import Config, parse_config
from vlrl.errors import ConfigError


def config(*overrides: str, **sections: Any) -> Config:
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "rewards": "answer_exact", **sections}
    return parse_config(tree, overrides=overrides)


def test_a_token_answers_for_itself_and_for_all_after_it_in_its_ledger() -> None:
    sampler = torch.tensor([-1.0, -2.0, -0.5, -1.0])
    reference = torch.tensor([-1.5, -1.0, -1.5, -3.0])  # KL: 0.5, -1, 1 and 2
    found = kl_to_go(sampler, reference, torch.tensor([0, 0, 0, 1]))
    assert found.tolist() == pytest.approx([0.5, 0.0, 1.0, 2.0])
    assert kl_to_go(sampler[:0], reference[:0], torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_the_same_ledger_has_the_same_bits_wherever_it_is_packed() -> None:
    generator = torch.Generator().manual_seed(0)
    sampler, reference = torch.randn(2, 60, generator=generator)
    ids = torch.repeat_interleave(torch.arange(6), 10)
    whole = kl_to_go(sampler, reference, ids)
    alone = [kl_to_go(sampler[i : i + 10], reference[i : i + 10], ids[:10]) for i in range(0, 60, 10)]
    assert torch.equal(whole, torch.cat(alone))


def test_its_policy_gradient_is_the_gradient_of_the_sequences_kl() -> None:
    """Sum over all 27 sequences of three tokens, each with the next token's logits by the token before it."""
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(4, 3, generator=generator, dtype=torch.float64).requires_grad_()
    reference = torch.log_softmax(torch.randn(4, 3, generator=generator, dtype=torch.float64), 1)

    def path(table: Tensor, sequence: tuple[int, ...]) -> Tensor:
        """Log-probabilities [3] of its tokens; row 3 is the beginning."""
        return torch.stack([table[before, token] for before, token in zip((3, *sequence), sequence)])  # noqa: B905

    policy = torch.log_softmax(logits, 1)
    kl, surrogate = policy.new_zeros(()), policy.new_zeros(())
    for sequence in itertools.product(range(3), repeat=3):
        own, other = path(policy, sequence), path(reference, sequence)
        probability = own.sum().exp()
        kl = kl + probability * (own - other).sum()
        to_go = kl_to_go(own, other, torch.zeros(3, dtype=torch.int64))
        surrogate = surrogate + probability.detach() * (to_go * own).sum()
    (expected,) = torch.autograd.grad(kl, logits, retain_graph=True)
    (found,) = torch.autograd.grad(surrogate, logits)
    assert torch.allclose(found, expected)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["algorithm.kl_in=reward"], "kl_in=reward has no effect with kl_coef=0"),
        (
            ["algorithm.kl_in=reward", "algorithm.kl_coef=0.1", "algorithm.kl_estimator=k2"],
            "kl_estimator=k2 with kl_in=reward: in the reward only k1",
        ),
        (
            ["algorithm=reinforce_pp", "algorithm.kl_in=reward", "algorithm.kl_coef=0.1",
             "algorithm.num_minibatches=2"],
            "num_minibatches=2 with kl_in=reward and normalize=batch",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_reinforce_pp_may_have_its_papers_kl() -> None:
    found = config("algorithm=reinforce_pp", "algorithm.kl_in=reward", "algorithm.kl_coef=0.01").algorithm
    assert found.surveys and found.trains_all_groups
    assert not config("algorithm=reinforce_pp").algorithm.surveys
