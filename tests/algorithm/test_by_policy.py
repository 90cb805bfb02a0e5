"""Sums of tokens by policy, worked out by hand, however they are cut into micro-batches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from vlrl.algorithm.by_policy import no_sums, policy_metrics, policy_sums
from vlrl.tracking.metrics import describe

NAMES = ("giver", "guesser", "older")
POLICIES = torch.tensor([0, 1, 0, 0])
ENTROPY = torch.tensor([1.0, 4.0, 2.0, 3.0])
TRAINER = torch.tensor([-1.0, -2.0, -1.0, -1.0])
SAMPLER = torch.tensor([-1.0, -2.0, -1.0, -1.5])
REFERENCE = torch.tensor([-1.0, -3.0, -1.0, -1.0])


def sums(rows: slice = slice(None)) -> np.ndarray:
    return policy_sums(POLICIES[rows], 3, ENTROPY[rows], TRAINER[rows], SAMPLER[rows], REFERENCE[rows])


def test_each_policy_has_the_mean_over_its_own_tokens() -> None:
    found = policy_metrics(sums(), NAMES, has_reference=True)
    assert found.pop("policies/giver/entropy") == pytest.approx(2.0)
    # k3 of KL(sampler ‖ trainer), e^d - 1 - d with d = trainer - sampler, 0.5 at one of three tokens
    assert found.pop("policies/giver/mismatch") == pytest.approx((math.exp(0.5) - 1.5) / 3)
    assert found.pop("policies/giver/kl_reference") == 0.0
    assert found.pop("policies/guesser/entropy") == pytest.approx(4.0)
    assert found.pop("policies/guesser/mismatch") == 0.0
    # k3 of KL(trainer ‖ reference), d = reference - trainer = -1
    assert found.pop("policies/guesser/kl_reference") == pytest.approx(math.exp(-1))
    counts = {
        f"policies/{name}/num_trained_tokens": float(n) for name, n in zip(NAMES, (3, 1, 0), strict=True)
    }
    assert found == counts


def test_sums_of_micro_batches_add_up_to_the_whole() -> None:
    assert np.allclose(no_sums() + sums(slice(0, 1)) + sums(slice(1, None)), sums())


def test_without_a_reference_there_is_no_kl() -> None:
    without = policy_sums(POLICIES, 3, ENTROPY, TRAINER, SAMPLER, None)
    assert not any("kl" in name for name in policy_metrics(without, NAMES, has_reference=False))
    assert not policy_metrics(no_sums(), (), has_reference=True)


def test_the_metrics_are_described() -> None:
    for name in policy_metrics(sums(), NAMES, has_reference=True):
        assert describe(name).startswith("Policy ")
    assert "reward" in describe("policies/older/reward_mean")
