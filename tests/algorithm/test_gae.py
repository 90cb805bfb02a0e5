"""GAE against its definition and its closed forms, episodes in any order, and the critic's loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vlrl.algorithm.advantages.gae import gae
from vlrl.algorithm.critic.episodes import Numbers, TokenTable, estimates_of
from vlrl.algorithm.critic.value_loss import value_loss
from vlrl.config.algorithm import AlgorithmConfig, bound_credit
from vlrl.errors import ConfigError

numbers = st.lists(st.tuples(st.floats(-2, 2), st.floats(-2, 2)), min_size=1, max_size=20)
share = st.floats(0, 1)


def errors_of(rewards: Numbers, values: Numbers, discount: float) -> list[float]:
    """δ_t = r_t + γ V_{t+1} - V_t with V = 0 behind the end."""
    following = [*values[1:], 0.0]
    return [r + discount * n - v for r, n, v in zip(rewards, following, values, strict=True)]


def by_definition(rewards: Numbers, values: Numbers, discount: float, lam: float) -> list[float]:
    """The paper's sum, not its recursion: A_t = Σ_l (γλ)^l δ_{t+l}."""
    errors = errors_of(rewards, values, discount)
    return [
        sum((discount * lam) ** later * error for later, error in enumerate(errors[t:]))
        for t in range(len(errors))
    ]


@given(numbers, share, share)
def test_it_is_the_sum_of_its_equation_16(steps: list[tuple[float, float]], gamma: float, lam: float) -> None:
    rewards, values = np.array(steps).T
    found = gae(rewards, values, discount=gamma, lam=lam)
    assert found == pytest.approx(by_definition(rewards, values, gamma, lam), abs=1e-9)


@given(numbers, share)
def test_with_lambda_1_it_is_the_return_minus_the_value(
    steps: list[tuple[float, float]], gamma: float
) -> None:
    rewards, values = np.array(steps).T
    returns = [sum(gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))]
    assert gae(rewards, values, discount=gamma, lam=1.0) == pytest.approx(returns - values, abs=1e-9)


@given(numbers, share)
def test_with_lambda_0_it_is_the_error_of_one_step(steps: list[tuple[float, float]], gamma: float) -> None:
    rewards, values = np.array(steps).T
    errors = errors_of(rewards, values, gamma)
    assert gae(rewards, values, discount=gamma, lam=0.0) == pytest.approx(errors, abs=1e-12)


@given(numbers, share, share)
def test_a_critic_that_is_right_leaves_no_advantage(
    steps: list[tuple[float, float]], gamma: float, lam: float
) -> None:
    rewards = np.array(steps)[:, 0]
    values = np.array([sum(gamma**k * r for k, r in enumerate(rewards[t:])) for t in range(len(rewards))])
    assert gae(rewards, values, discount=gamma, lam=lam) == pytest.approx(np.zeros(len(rewards)), abs=1e-9)


def test_lambda_is_a_share() -> None:
    with pytest.raises(ValueError, match=r"lam=1\.5 is not between 0 and 1"):
        gae(np.ones(1), np.ones(1), lam=1.5)


def table(rows: list[tuple[float, float, float, int, int, int]]) -> TokenTable:
    """Rows of value, reward of the turn, penalty, episode, turn and place."""
    columns = np.array(rows, np.float64).reshape(-1, 6)
    return TokenTable(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3:].astype(np.int64))


def estimator(**options: Any) -> Any:
    return bound_credit(AlgorithmConfig.model_validate({"preset": "ppo", "credit": {"options": options}}))


TWO_TURNS = [
    # value, reward of the turn, penalty, episode, turn, place; places 0, 3 and 4 are prompt and observation
    (0.5, 1.0, 0.0, 0, 0, 1),
    (0.4, 1.0, -0.1, 0, 0, 2),
    (0.8, 2.0, 0.0, 0, 1, 5),
    (0.1, -1.0, 0.0, 1, 0, 7),
]
"""An episode of two turns, the first of two tokens, and one of one token."""


def test_rewards_are_paid_at_the_ends_of_turns_and_observations_are_no_steps() -> None:
    """γ = 1, λ = 0: δ = (0.4 - 0.5, 1 - 0.1 + 0.8 - 0.4, 2 - 0.8), and of the other -1 - 0.1."""
    found = estimates_of(table(TWO_TURNS), estimator(lam=0.0), "token")
    assert found.advantages == pytest.approx([-0.1, 1.3, 1.2, -1.1])
    assert found.returns == pytest.approx([0.4, 1.7, 2.0, -1.0])
    assert found.begins.all()


def test_a_turn_is_a_step() -> None:
    """Values 0.5 and 0.8, rewards 1 - 0.1 and 2: δ = (0.9 + 0.8 - 0.5, 1.2), and λ = 0.5."""
    found = estimates_of(table(TWO_TURNS), estimator(lam=0.5), "turn")
    assert found.advantages == pytest.approx([1.8, 1.8, 1.2, -1.1])
    assert found.returns == pytest.approx([2.3, 2.3, 2.0, -1.0])
    assert found.begins.tolist() == [True, False, True, True]


@given(st.permutations(range(len(TWO_TURNS))), st.sampled_from(["token", "turn"]))
def test_the_order_in_which_tokens_come_makes_no_difference(order: list[int], level: Any) -> None:
    whole = estimates_of(table(TWO_TURNS), estimator(), level)
    found = estimates_of(table([TWO_TURNS[i] for i in order]), estimator(), level)
    for name in ("advantages", "returns", "begins"):
        assert np.array_equal(getattr(found, name), getattr(whole, name)[order])


def test_no_tokens_have_no_advantages() -> None:
    found = estimates_of(table([]), estimator(), "turn")
    assert len(found.advantages) == len(found.returns) == len(found.begins) == 0


@pytest.mark.parametrize("wrong", [lambda r, v: r[:1], lambda r, v: r + np.inf, lambda r, v: 1.0])
def test_a_strangers_estimate_must_be_one_finite_number_a_step(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="must return a finite advantage for each of an episode's 3 steps"):
        estimates_of(table(TWO_TURNS), wrong, "token")


def test_the_loss_by_hand() -> None:
    """ε = 0.2 around 0: 0.1 is free; 0.5 is held at 0.2, far from 1 by 0.8; 0.5 towards 0 keeps its error."""
    values, returns = torch.tensor([0.1, 0.5, 0.5], dtype=torch.float64), torch.tensor([1.0, 1.0, 0.0])
    loss, held = value_loss(values, torch.zeros(3).double(), returns.double(), 0.2)
    assert loss.tolist() == pytest.approx([0.5 * 0.81, 0.5 * 0.64, 0.5 * 0.25])
    assert held.tolist() == [False, True, False]
    plain, held = value_loss(values, torch.zeros(3).double(), returns.double(), None)
    assert plain.tolist() == pytest.approx([0.5 * 0.81, 0.5 * 0.25, 0.5 * 0.25]) and not held.any()


@pytest.mark.parametrize("clip", [None, 0.2, 0.7])
def test_its_gradient_is_that_of_difference_quotients(clip: float | None) -> None:
    noise = torch.randn(3, 40, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = noise[0].clone().requires_grad_()
    loss, held = value_loss(values, noise[1], noise[2], clip)
    (found,) = torch.autograd.grad(loss.sum(), values)
    step = 1e-6
    ends = [value_loss(noise[0] + shift, noise[1], noise[2], clip)[0] for shift in (step, -step)]
    assert torch.allclose((ends[0] - ends[1]) / (2 * step), found, atol=1e-6)
    assert not found[held].any() and found[~held].all()
    assert bool(held.any()) == (clip is not None)
