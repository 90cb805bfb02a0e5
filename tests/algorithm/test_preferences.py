"""Losses of preferences: their papers' formulas, and that a token's loss is its part of its group's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_group, make_sample, make_trajectory
from rank_processes import RankProcesses, free_port
from torch import Tensor
from torch.nn.functional import logsigmoid

from vlrl.algorithm.credit import nothing
from vlrl.algorithm.off_policy import sequence_sums
from vlrl.algorithm.preferences.bradley_terry import bradley_terry
from vlrl.algorithm.preferences.dpo import dpo
from vlrl.algorithm.preferences.ipo import ipo
from vlrl.algorithm.preferences.kto import kto
from vlrl.algorithm.preferences.online import assign_pairs
from vlrl.algorithm.preferences.tokens import (
    COLUMNS,
    PreferenceLoss,
    PreferenceObjective,
    preference_losses,
    preference_metrics,
)
from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.errors import ConfigError
from vlrl.types import Group

BETA = 0.3


@dataclass
class Tokens:
    """Completions of groups, token by token, in float64: what `preference_losses` reads of a batch.

    Attributes:
        advantages: [M], the signs.
        group_ids: [M].
        sequence_ids: [M], of each completion its own.
        weights: [M].
        trainer: [M], with gradient.
        reference: [M].
    """

    advantages: Tensor
    group_ids: Tensor
    sequence_ids: Tensor
    weights: Tensor
    trainer: Tensor
    reference: Tensor

    @classmethod
    def of(cls, groups: Sequence[Sequence[tuple[int, int]]], seed: int = 0) -> Tokens:
        """Groups of completions, each of a number of tokens and a sign."""
        generator = torch.Generator().manual_seed(seed)
        each = [(g, sign, n) for g, members in enumerate(groups) for n, sign in members]
        lengths = torch.tensor([n for _, _, n in each])

        def spread(values: list[int]) -> Tensor:
            return torch.tensor(values).repeat_interleave(lengths)

        size = int(lengths.sum())
        reference = -torch.rand(size, generator=generator, dtype=torch.float64) - 0.5
        noise = 0.5 * torch.randn(size, generator=generator, dtype=torch.float64)
        return cls(
            spread([sign for _, sign, _ in each]).double(),
            spread([g for g, _, _ in each]),
            spread(list(range(len(each)))),
            torch.full((size,), 1 / len(groups), dtype=torch.float64),
            (reference + noise).requires_grad_(),
            reference,
        )

    def only(self, mask: Tensor) -> Tokens:
        """Some of the tokens, as a slice or a micro-batch has them."""
        parts = {name: value[mask].detach() for name, value in vars(self).items()}
        return replace(Tokens(**parts), trainer=parts["trainer"].requires_grad_())

    def losses(self, sums: Any = sequence_sums, kl: float = 0.0, **options: Any) -> PreferenceLoss:
        """The loss under `preferences` with these options."""
        objective = PreferenceObjective(PreferencesConfig(**{"beta": BETA, **options}), kl)
        return preference_losses(self.trainer, self.reference, self, objective, sums)  # type: ignore[arg-type]

    def gradient(self, value: Tensor) -> Tensor:
        return torch.autograd.grad(value, self.trainer, retain_graph=True)[0]


PAIRS = Tokens.of([[(3, 1), (2, -1)], [(1, 1), (4, -1)], [(2, 1), (2, -1)]])
_SCORES = Tokens.of([[(1, 1), (1, -1)] for _ in range(3)], seed=2)
SCORES = replace(_SCORES, reference=torch.zeros_like(_SCORES.reference))
LABELLED = Tokens.of([[(3, 1), (2, 0)], [(4, -1), (1, 0)], [(2, -1), (3, 0)]], seed=1)


def plain(tokens: Tokens, loss_of: Callable[[Tensor, Tensor, int, int], Tensor]) -> Tensor:
    """The mean over groups of a loss of whole log-ratios, with sums that carry gradient: no part of ours."""
    ratios, values = tokens.trainer - tokens.reference, []
    for group in tokens.group_ids.unique():
        chosen, rejected = ((tokens.group_ids == group) & (tokens.advantages == sign) for sign in (1, -1))
        values.append(
            loss_of(ratios[chosen].sum(), ratios[rejected].sum(), int(chosen.sum()), int(rejected.sum()))
        )
    return torch.stack(values).mean()


def trl_sigmoid(chosen: Tensor, rejected: Tensor, smoothing: float = 0.0) -> Tensor:
    """TRL's DPOTrainer, loss_type="sigmoid", as its documentation writes it."""
    delta = chosen - rejected
    return -logsigmoid(BETA * delta) * (1 - smoothing) - logsigmoid(-BETA * delta) * smoothing


def trl_kto(ratio: Tensor, is_desirable: bool, kl: float, weight: float) -> Tensor:
    """TRL's KTOTrainer: 1 - σ(β (logratio - kl)), or 1 - σ(β (kl - logratio)), times its weight."""
    return weight * (1 - torch.sigmoid(BETA * (ratio - kl) if is_desirable else BETA * (kl - ratio)))


def trl_reward(chosen: Tensor, rejected: Tensor, margin: float = 0.0, centre: float = 0.0) -> Tensor:
    """TRL's RewardTrainer with a margin and center_rewards_coefficient, as its compute_loss writes it."""
    return -logsigmoid(chosen - rejected - margin) + centre * (chosen + rejected) ** 2


KTO_OPTIONS = {"desirable_weight": 1.5, "undesirable_weight": 0.5}
CASES: dict[str, tuple[Tokens, dict[str, Any], Callable[[Tensor, Tensor, int, int], Tensor]]] = {
    "dpo": (PAIRS, {}, lambda c, r, n, m: trl_sigmoid(c, r)),
    "cdpo": (
        PAIRS,
        {"loss": {"name": "dpo", "options": {"label_smoothing": 0.2}}},
        lambda c, r, n, m: trl_sigmoid(c, r, 0.2),
    ),
    "ipo": (PAIRS, {"loss": "ipo"}, lambda c, r, n, m: (c / n - r / m - 1 / (2 * BETA)) ** 2),
    "ipo as printed": (
        PAIRS,
        {"loss": {"name": "ipo", "options": {"average": False}}},
        lambda c, r, n, m: (c - r - 1 / (2 * BETA)) ** 2,
    ),
    "bradley_terry": (
        SCORES,
        {"loss": {"name": "bradley_terry", "options": {"center_coef": 0.05}}, "beta": 0.1},
        lambda c, r, n, m: trl_reward(c, r, 0.0, 0.05),
    ),
    "kto": (
        LABELLED,
        {"loss": {"name": "kto", "options": KTO_OPTIONS}, "kl": 0.4},
        lambda c, r, n, m: trl_kto(c + r, n > 0, 0.4, 1.5 if n else 0.5),
    ),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Any:
    return CASES[request.param]


def test_tokens_add_up_to_the_loss_of_groups_and_its_gradient(case: Any) -> None:
    tokens, options, loss_of = case
    found, expected = tokens.losses(**options), plain(tokens, loss_of)
    value = (found.loss * tokens.weights).sum()
    assert value.item() == pytest.approx(expected.item(), rel=1e-12)
    assert torch.allclose(tokens.gradient(value), tokens.gradient(expected), rtol=1e-10, atol=1e-12)
    own = tokens.advantages != 0
    assert (tokens.gradient(value)[own] != 0).all()
    assert (tokens.gradient(value)[~own] == 0).all()  # the other row's completion is only read


def test_the_gradient_is_that_of_difference_quotients(case: Any) -> None:
    tokens, options, _ = case
    gradient = tokens.gradient((tokens.losses(**options).loss * tokens.weights).sum())
    for place in range(len(gradient)):
        values = []
        for step in (1e-6, -1e-6):
            moved = tokens.trainer.detach().clone()
            moved[place] += step
            shifted = replace(tokens, trainer=moved.requires_grad_())
            values.append((shifted.losses(**options).loss * tokens.weights).sum().item())
        assert (values[0] - values[1]) / 2e-6 == pytest.approx(float(gradient[place]), rel=1e-4, abs=1e-9)


def test_micro_batches_of_whole_groups_add_up(case: Any) -> None:
    tokens, options, _ = case
    whole = tokens.losses(**options)
    parts = [tokens.only(tokens.group_ids == group) for group in tokens.group_ids.unique()]
    found = [part.losses(**options) for part in parts]
    assert torch.allclose(torch.cat([each.loss for each in found]), whole.loss)
    assert np.allclose(sum(each.sums for each in found), whole.sums)
    assert sum(each.kl for each in found) == pytest.approx(whole.kl, abs=1e-12)


def test_no_tokens_have_no_loss_and_no_sums(case: Any) -> None:
    tokens, options, _ = case
    found = tokens.only(torch.zeros(len(tokens.weights), dtype=torch.bool)).losses(**options)
    assert found.loss.shape == (0,)
    assert not found.sums.any()
    assert preference_metrics(found.sums, PreferencesConfig()) == {}


def of_slice(rank: int, port: int, half: Tokens, options: dict[str, Any]) -> tuple[Any, Any, float]:
    """Loss, sums and KL that a rank computes of its slice; the other one has the rest of each group."""
    from functools import partial

    import torch.distributed as dist

    from vlrl.model.sequence_parallel import join_group, shared_sums

    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    group = join_group(2)
    assert group is not None
    found = half.losses(partial(shared_sums, group), **options)
    gradient = half.gradient((found.loss * half.weights).sum())
    return gradient.numpy(), found.sums, found.kl


def test_slices_of_one_sequence_on_two_ranks_have_the_same_gradient_and_sums() -> None:
    """Neither rank has a whole completion, and for one group the second rank has nothing at all."""
    port = free_port()
    with RankProcesses(2) as ranks:
        for tokens, options, _ in CASES.values():
            places = torch.arange(len(tokens.weights))
            first = (places % 2 == 0) | (tokens.group_ids == 1)
            halves = [tokens.only(first), tokens.only(~first)]
            found = ranks.run(of_slice, [(rank, port, half, options) for rank, half in enumerate(halves)])
            whole = tokens.losses(**options)
            gradient = tokens.gradient((whole.loss * tokens.weights).sum())
            together = torch.zeros_like(gradient)
            together[first], together[~first] = (torch.as_tensor(each[0]) for each in found)
            assert torch.allclose(together, gradient, rtol=1e-10, atol=1e-12)
            assert np.allclose(found[0][1] + found[1][1], whole.sums)
            assert found[0][2] + found[1][2] == pytest.approx(whole.kl, abs=1e-12)


def test_dpo_by_hand() -> None:
    """π_ref gives ln 1/2 to both, π gives ln 3/4 and ln 1/4: h = β ln 3."""
    chosen, rejected = torch.tensor([math.log(1.5)]), torch.tensor([math.log(0.5)])
    assert float(dpo(chosen, rejected, beta=1.0)) == pytest.approx(-math.log(3 / 4))  # σ(ln 3) = 3/4
    assert float(dpo(chosen, chosen, beta=1.0)) == pytest.approx(math.log(2))
    smoothed = float(dpo(chosen, rejected, beta=1.0, label_smoothing=0.25))
    assert smoothed == pytest.approx(-0.75 * math.log(3 / 4) - 0.25 * math.log(1 / 4))
    extreme = torch.tensor([-1e4], requires_grad=True)
    loss = dpo(extreme, torch.zeros(1), beta=1.0)
    loss.backward()
    assert loss.item() == pytest.approx(1e4)
    assert extreme.grad is not None and float(extreme.grad) == -1.0


def test_ipo_by_hand() -> None:
    chosen, rejected, lengths = torch.tensor([2.0]), torch.tensor([-1.0]), torch.tensor([2.0])
    options = {"chosen_lengths": lengths, "rejected_lengths": lengths / 2, "beta": 0.25}
    assert float(ipo(chosen, rejected, **options)) == pytest.approx((1 + 1 - 2) ** 2)  # type: ignore[arg-type]
    assert float(ipo(chosen, rejected, average=False, **options)) == pytest.approx((3 - 2) ** 2)  # type: ignore[arg-type]


def test_kto_by_hand() -> None:
    ratios, desirable = torch.tensor([1.0, 1.0]), torch.tensor([True, False])
    found = kto(ratios, desirable=desirable, kl=1.0 - math.log(3), beta=1.0, undesirable_weight=2.0)
    assert found.tolist() == pytest.approx([1 / 4, 2 * 3 / 4])


def test_bradley_terry_by_hand() -> None:
    """σ(ln 3) = 3/4, of which the margin ln 3 leaves σ(0); scores that sum to 2 cost 4 λ."""
    chosen, rejected, none = (
        torch.tensor([1 + math.log(3) / 2]),
        torch.tensor([1 - math.log(3) / 2]),
        torch.zeros(1),
    )
    assert float(bradley_terry(chosen, rejected, margins=none)) == pytest.approx(-math.log(3 / 4))
    assert float(bradley_terry(chosen, rejected, margins=none + math.log(3))) == pytest.approx(math.log(2))
    centred = float(bradley_terry(chosen, rejected, margins=none, center_coef=0.1))
    assert centred == pytest.approx(-math.log(3 / 4) + 0.4)
    with pytest.raises(ValueError, match="center_coef=-1 must be at least 0"):
        bradley_terry(chosen, rejected, margins=none, center_coef=-1)


def test_a_pairs_margin_is_in_its_advantages() -> None:
    margins = torch.tensor([0.0, 0.5, 2.0], dtype=torch.float64)
    tokens = replace(SCORES, advantages=SCORES.advantages * (1 + margins[SCORES.group_ids]))
    found = tokens.losses(loss="bradley_terry", beta=0.1)
    chosen, rejected = (SCORES.trainer[SCORES.advantages == sign] for sign in (1, -1))
    expected = torch.stack(
        [trl_reward(c, r, m) for c, r, m in zip(chosen, rejected, margins.tolist(), strict=True)]
    )
    value = (found.loss * tokens.weights).sum()
    assert value.item() == pytest.approx(expected.mean().item(), rel=1e-12)
    assert torch.allclose(tokens.gradient(value), tokens.gradient(expected.mean()))


def test_a_reward_models_metrics_are_of_scores() -> None:
    options = PreferencesConfig(loss="bradley_terry")  # type: ignore[arg-type]
    found = preference_metrics(SCORES.losses(loss="bradley_terry", beta=0.1).sums, options)
    scores = SCORES.trainer.detach()
    chosen, rejected = (scores[SCORES.advantages == sign] for sign in (1, -1))
    assert found == pytest.approx(
        {
            "preference/loss": trl_reward(chosen, rejected).mean().item(),
            "preference/accuracy": (chosen > rejected).double().mean().item(),
            "preference/chosen_reward": chosen.mean().item(),
            "preference/rejected_reward": rejected.mean().item(),
            "preference/margin": (chosen - rejected).mean().item(),
            "preference/mean_reward": scores.mean().item(),
        }
    )


def test_the_kl_of_other_rows_is_the_mean_of_their_whole_completions() -> None:
    ratios = LABELLED.trainer.detach() - LABELLED.reference
    others = [float(ratios[(LABELLED.group_ids == g) & (LABELLED.advantages == 0)].sum()) for g in range(3)]
    assert LABELLED.losses(loss="kto").kl == pytest.approx(sum(others) / 3)


def test_the_metrics_are_those_of_whole_completions() -> None:
    ratios = (PAIRS.trainer - PAIRS.reference).detach()
    whole = {
        sign: [float(ratios[(PAIRS.group_ids == g) & (PAIRS.advantages == sign)].sum()) for g in range(3)]
        for sign in (1, -1)
    }
    found = preference_metrics(PAIRS.losses().sums, PreferencesConfig(beta=BETA))
    right = [c > r for c, r in zip(whole[1], whole[-1], strict=True)]
    assert found["preference/accuracy"] == pytest.approx(np.mean(right))
    assert found["preference/chosen_reward"] == pytest.approx(BETA * np.mean(whole[1]))
    assert found["preference/margin"] == pytest.approx(BETA * (np.mean(whole[1]) - np.mean(whole[-1])))
    logprobs = [
        float(PAIRS.trainer[(PAIRS.group_ids == g) & (PAIRS.advantages == -1)].sum()) for g in range(3)
    ]
    assert found["preference/rejected_logprob"] == pytest.approx(np.mean(logprobs))
    tied = replace(PAIRS, trainer=PAIRS.reference.clone().requires_grad_()).losses()
    assert preference_metrics(tied.sums, PreferencesConfig())["preference/accuracy"] == pytest.approx(0.5)
    assert tied.sums[COLUMNS.index("loss")] == pytest.approx(3 * math.log(2))


def test_without_a_reference_the_ratios_are_the_log_probabilities() -> None:
    objective = PreferenceObjective(PreferencesConfig(reference="none"))
    found = preference_losses(PAIRS.trainer, None, PAIRS, objective, sequence_sums)  # type: ignore[arg-type]
    uniform = replace(PAIRS, reference=torch.zeros_like(PAIRS.reference))
    expected = preference_losses(PAIRS.trainer, uniform.reference, uniform, objective, sequence_sums)  # type: ignore[arg-type]
    assert torch.equal(found.loss, expected.loss)


OWN = '''
def hinge(chosen_ratios, rejected_ratios, *, beta, edge=1.0):
    """SLiC's hinge (arXiv 2305.10425)."""
    return (edge - beta * (chosen_ratios - rejected_ratios)).clamp(min=0)

def a_mean(chosen_ratios, rejected_ratios):
    return (rejected_ratios - chosen_ratios).mean()
'''


def test_a_files_function_is_a_loss(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    options = {"loss": {"name": f"{tmp_path}/own.py:hinge", "options": {"edge": 0.5}}}
    value = (PAIRS.losses(**options).loss * PAIRS.weights).sum()
    expected = plain(PAIRS, lambda c, r, n, m: (0.5 - BETA * (c - r)).clamp(min=0))
    assert value.item() == pytest.approx(expected.item())
    assert torch.allclose(PAIRS.gradient(value), PAIRS.gradient(expected))
    with pytest.raises(ConfigError, match="must return one number for each log-ratio"):
        objective = PreferenceObjective(PreferencesConfig(loss=f"{tmp_path}/own.py:a_mean"))  # type: ignore[arg-type]
        preference_losses(PAIRS.trainer, PAIRS.reference, PAIRS, objective, sequence_sums)  # type: ignore[arg-type]


def signs(group: Group) -> list[tuple[bool, float]]:
    return [(credit.counts, float(credit.advantages[0][-1])) for credit in group.credits]


def rewarded(*rewards: float | None) -> Group:
    sample = make_sample([1, 2])
    return Group([make_trajectory(sample, [5, 6 + i], index=i, reward=r) for i, r in enumerate(rewards)])


def test_the_best_and_the_worst_of_a_group_are_its_pair() -> None:
    group = rewarded(0.5, 1.0, 0.0, None, 1.0)
    assign_pairs([group])
    assert signs(group) == [(False, 0), (True, 1), (True, -1), (False, 0), (False, 0)]


@pytest.mark.parametrize("rewards", [(0.3, 0.1 + 0.2, 0.3), (1.0, None), (None, None)])
def test_a_group_without_a_difference_gives_no_pair(rewards: tuple[float | None, ...]) -> None:
    group = rewarded(*rewards)
    assign_pairs([group])
    assert not any(credit.counts for credit in group.credits)


def test_a_pair_of_which_one_is_masked_is_left_out() -> None:
    group = make_group([2, 3])
    assign_pairs(
        [group], [lambda trajectory: nothing(trajectory) if trajectory.group_index else every(trajectory)]
    )
    assert not any(credit.counts for credit in group.credits)


def every(trajectory: Any) -> list[Any]:
    return [np.ones(len(ledger.token_ids), np.bool_) for ledger in trajectory.ledgers]
