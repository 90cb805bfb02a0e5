"""Each loss against its paper's formula, written with loops, and its gradient against differences."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from vlrl.algorithm.loss import clipped_surrogate
from vlrl.algorithm.losses.cispo import cispo
from vlrl.algorithm.losses.gmpo import gmpo
from vlrl.algorithm.losses.gspo import gspo
from vlrl.algorithm.losses.policy_gradient import policy_gradient
from vlrl.algorithm.losses.sapo import sapo
from vlrl.algorithm.off_policy import corrected_surrogate, sequence_sums
from vlrl.algorithm.regularizers import k1, k2
from vlrl.config.algorithm import READ_BY_DEFAULT, AlgorithmConfig, FunctionConfig
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN, resolve

LENGTHS = [3, 1, 4, 2]
IDS = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
WEIGHTS = torch.tensor([1.0 / (len(LENGTHS) * n) for n in LENGTHS], dtype=torch.float64)[IDS]
"""aggregation=sequence: 1 / (G |o_i|)."""


class Case:
    """Tokens of four sequences whose advantages differ, in float64."""

    def __init__(self, seed: int, spread: float = 0.4) -> None:
        generator = torch.Generator().manual_seed(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        self.anchor = -1 - normal(len(IDS)).abs()
        self.trainer = (self.anchor + spread * normal(len(IDS))).requires_grad_()
        self.of_sequences = normal(len(LENGTHS))
        self.advantages = self.of_sequences[IDS]

    @property
    def sums(self) -> Callable[[Tensor], Tensor]:
        return lambda values: sequence_sums(values, IDS)

    def gradient(self, value: Tensor) -> Tensor:
        (found,) = torch.autograd.grad(value, self.trainer, retain_graph=True)
        return found

    def sequences(self, values: Tensor) -> list[Tensor]:
        return list(torch.split(values, LENGTHS))


def weighted(returned: tuple[Tensor, Tensor]) -> Tensor:
    return (returned[0] * WEIGHTS).sum()


def same(case: Case, ours: Tensor, theirs: Tensor) -> None:
    """Values and gradients by the log-probabilities."""
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    assert torch.allclose(case.gradient(ours), case.gradient(theirs), rtol=1e-10, atol=1e-14)


def difference_quotients(value: Callable[[Tensor], Tensor], at: Tensor, step: float = 1e-6) -> Tensor:
    found = torch.zeros_like(at)
    for i in range(len(at)):
        shift = torch.zeros_like(at)
        shift[i] = step
        found[i] = (value(at + shift) - value(at - shift)) / (2 * step)
    return found


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("low", "high"), [(3e-4, 4e-4), (0.2, 0.28)])
def test_gspo_is_its_equation_5_with_the_gradient_through_the_whole_sequence(
    seed: int, low: float, high: float
) -> None:
    """-1/G Σ_i min(s_i A_i, clip(s_i) A_i), s_i the geometric mean of ratios; TRL's at its sequence level."""
    case = Case(seed, spread=0.4 if high > 0.1 else 1e-3)
    terms, stopped = [], []
    for trainer, anchor, a in zip(
        case.sequences(case.trainer), case.sequences(case.anchor), case.of_sequences, strict=True
    ):
        s = (trainer - anchor).mean().exp()
        stopped += [bool(s > 1 + high) if a > 0 else bool(s < 1 - low)] * len(trainer)
        terms.append(-torch.minimum(s * a, s.clamp(1 - low, 1 + high) * a))
    ours = gspo(case.trainer, case.anchor, case.advantages, sequence_sums=case.sums, low=low, high=high)
    same(case, weighted(ours), torch.stack(terms).mean())
    assert ours[1].tolist() == stopped


@pytest.mark.parametrize("seed", range(5))
def test_gspo_agrees_with_difference_quotients_of_its_value(seed: int) -> None:
    case = Case(seed)

    def value(trainer: Tensor) -> Tensor:
        return weighted(
            gspo(trainer, case.anchor, case.advantages, sequence_sums=case.sums, low=0.2, high=0.3)
        )

    found = case.gradient(value(case.trainer))
    assert torch.allclose(found, difference_quotients(value, case.trainer.detach()), atol=1e-8)


def test_gspo_token_gives_each_token_its_own_advantage() -> None:
    """Eq. 15: the gradient of token t is s_i A_i,t / |y_i| where nothing is clipped."""
    case = Case(0, spread=0.01)
    advantages = torch.linspace(-1, 1, len(IDS), dtype=torch.float64)
    ours = gspo(case.trainer, case.anchor, advantages, sequence_sums=case.sums, low=0.5, high=0.5)
    lengths = torch.tensor(LENGTHS, dtype=torch.float64)[IDS]
    s = (sequence_sums(case.trainer.detach() - case.anchor, IDS) / lengths).exp()
    assert torch.allclose(case.gradient(weighted(ours)), -s * advantages * WEIGHTS)
    assert resolve("losses", "gspo_token") is resolve("losses", "gspo")


@pytest.mark.parametrize("seed", range(5))
def test_gmpo_is_the_product_of_its_paper(seed: int) -> None:
    """-1/G Σ_i A_i {Π_t min(ρ^sgn, clip(ρ, e^-0.4, e^0.4)^sgn)^sgn}^(1/|o|), powers as they are printed."""
    case = Case(seed)
    low, high = math.exp(-0.4), math.exp(0.4)
    terms = []
    for trainer, anchor, a in zip(
        case.sequences(case.trainer), case.sequences(case.anchor), case.of_sequences, strict=True
    ):
        ratio, sign = (trainer - anchor).exp(), torch.sign(a)
        clipped = torch.minimum(ratio**sign, ratio.clamp(low, high) ** sign) ** sign
        terms.append(-(clipped.prod() ** (1 / len(ratio))) * a)
    ours = gmpo(case.trainer, case.anchor, case.advantages, sequence_sums=case.sums)
    same(case, weighted(ours), torch.stack(terms).mean())
    assert 0 < int(ours[1].sum()) < len(IDS) or seed  # the first has both kinds of tokens


@pytest.mark.parametrize("seed", range(5))
def test_gmpo_agrees_with_difference_quotients_of_its_value(seed: int) -> None:
    case = Case(seed)

    def value(trainer: Tensor) -> Tensor:
        return weighted(gmpo(trainer, case.anchor, case.advantages, sequence_sums=case.sums))

    found = case.gradient(value(case.trainer))
    assert torch.allclose(found, difference_quotients(value, case.trainer.detach()), atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_cispo_is_the_cut_weight_times_the_log_likelihood(seed: int) -> None:
    """Eq. 4; TRL's is clamp(ratio, max=epsilon_high).detach() with the bound as a ratio, as here."""
    case = Case(seed, spread=1.0)
    with torch.no_grad():
        weights = (case.trainer - case.anchor).exp().clamp(max=1.5)
    ours = cispo(case.trainer, case.anchor, case.advantages, largest=1.5)
    same(case, ours[0].sum(), -(weights * case.advantages * case.trainer).sum())
    gradient = case.gradient(ours[0].sum())
    assert bool(ours[1].any()) and bool(gradient[ours[1]].all()), "a cut token still has a gradient"


def test_cispo_by_hand() -> None:
    """Ratios 0.5, 2 and 8 with bounds 0.75 and 5: gradients -A w."""
    anchor = torch.tensor([0.4, 0.2, 0.1], dtype=torch.float64).log()
    trainer = torch.tensor([0.2, 0.4, 0.8], dtype=torch.float64).log().requires_grad_()
    advantages = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    loss, cut = cispo(trainer, anchor, advantages, largest=5.0, smallest=0.75)
    (gradient,) = torch.autograd.grad(loss.sum(), trainer)
    assert gradient.tolist() == pytest.approx([-0.75, 4.0, -15.0])
    assert cut.tolist() == [True, False, True]


@pytest.mark.parametrize("seed", range(5))
def test_sapo_is_its_gate(seed: int) -> None:
    """f(x) = σ(τ (x - 1)) · 4/τ, a τ for each sign, and f' = 4 p (1 - p) with p = σ(τ (x - 1))."""
    case = Case(seed)
    ours = sapo(case.trainer, case.anchor, case.advantages)
    ratio = (case.trainer - case.anchor).exp().detach()
    tau = torch.tensor([1.0 if a > 0 else 1.05 for a in case.advantages], dtype=torch.float64)
    p = torch.sigmoid(tau * (ratio - 1))
    assert torch.allclose(ours[0], -p * 4 / tau * case.advantages)
    gradient = case.gradient(ours[0].sum())
    assert torch.allclose(gradient, -4 * p * (1 - p) * ratio * case.advantages)
    quotients = difference_quotients(
        lambda t: sapo(t, case.anchor, case.advantages)[0].sum(), case.trainer.detach()
    )
    assert torch.allclose(gradient, quotients, atol=1e-8)


@pytest.mark.parametrize("name", [n for n in BUILT_IN["losses"]])
def test_where_the_policy_has_not_moved_every_loss_has_the_policy_gradient(name: str) -> None:
    """A sequence-averaged batch has -A / (G |o|) for each token, by each of them."""
    case = Case(1, spread=0.0)
    asked = {"sequence_sums": case.sums} if "sequence_sums" in signature(name) else {}
    options = {"clip_low": 0.2, "clip_high": 0.28} if name == "ppo" else {}
    loss = resolve("losses", name)(case.trainer, case.anchor, case.advantages, **asked, **options)
    assert torch.allclose(case.gradient(weighted(loss)), -case.advantages * WEIGHTS)
    assert not bool(loss[1].any())


def signature(name: str) -> set[str]:
    return set(inspect.signature(resolve("losses", name)).parameters)


def test_the_plain_policy_gradient_knows_no_anchor() -> None:
    case = Case(2)
    loss, stopped = policy_gradient(case.trainer, case.anchor, case.advantages)
    assert torch.equal(loss, -case.advantages * case.trainer) and not bool(stopped.any())


def test_ppo_reads_the_keys_that_the_config_takes_for_granted() -> None:
    assert READ_BY_DEFAULT["loss"] <= signature("ppo") and resolve("losses", "ppo") is clipped_surrogate
    assert READ_BY_DEFAULT["credit"] <= set(inspect.signature(resolve("advantages", "episode")).parameters)


class Batch:
    """What a loss sees of a micro-batch."""

    def __init__(self, case: Case) -> None:
        self.sampler_logprobs, self.advantages = case.anchor, case.advantages
        self.token_staleness, self.sequence_ids = torch.zeros_like(IDS), IDS
        self.proximal_logprobs = None


def test_a_config_names_the_loss_and_its_options_reach_it() -> None:
    case = Case(3)
    options = AlgorithmConfig(loss=FunctionConfig(name="gspo", options={"low": 0.2, "high": 0.28}))
    found = corrected_surrogate(case.trainer, Batch(case), options)  # type: ignore[arg-type]
    expected = gspo(case.trainer, case.anchor, case.advantages, sequence_sums=case.sums, low=0.2, high=0.28)
    assert torch.equal(found.loss, expected[0]) and torch.equal(found.stopped, expected[1])


def test_a_correction_weights_the_loss_that_is_named() -> None:
    """π_p is π_θ before the first update: weight min(ρ, 2) of a gate at ratio 1."""
    case = Case(4, spread=1.0)
    options = AlgorithmConfig.model_validate({"preset": "sapo", "correction": {"kind": "truncated"}})
    found = corrected_surrogate(case.trainer, Batch(case), options)  # type: ignore[arg-type]
    weights = (case.trainer.detach() - case.anchor).exp().clamp(max=2.0)
    assert torch.allclose(case.gradient(found.loss.sum()), -weights * case.advantages)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return logprobs", r"must return \(loss \[M\], stopped \[M\] bool\), not Tensor"),
        (
            "return logprobs.sum(), advantages > 0",
            r"one number a token, \[10\], and returned \[\] and",
        ),
        ("return logprobs, advantages", "must return stopped as bool, not torch.float64"),
    ],
)
def test_a_loss_that_returns_something_else_is_named(tmp_path: Path, body: str, message: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(f"def mine(logprobs, anchor, advantages):\n    {body}\n")
    options = AlgorithmConfig(loss=FunctionConfig(name=f"{file}:mine"))
    case: Any = Case(0)
    with pytest.raises(ConfigError, match=message):
        corrected_surrogate(case.trainer, Batch(case), options)  # type: ignore[arg-type]


def test_k2_has_the_gradient_of_the_kl_and_k1_its_value() -> None:
    """Exactly, over a whole distribution: E[k1] = KL, E[∇k2] = ∇KL and so does k1's."""
    logits = torch.tensor([0.3, -1.0, 0.8, 0.1], dtype=torch.float64, requires_grad=True)
    reference = torch.log_softmax(torch.tensor([0.0, 0.5, -0.2, 1.0], dtype=torch.float64), 0)

    def gradient(value: Tensor) -> Tensor:
        (found,) = torch.autograd.grad(value, logits)
        return found

    def policy() -> Tensor:
        return torch.log_softmax(logits, 0)

    kl = (policy().exp() * (policy() - reference)).sum()
    probabilities = policy().exp().detach()
    value = (probabilities * k1(policy(), reference)).sum()
    assert value.item() == pytest.approx(kl.item())
    expected = gradient(kl)
    for estimator in (k1, k2):
        assert torch.allclose(gradient((probabilities * estimator(policy(), reference)).sum()), expected)
