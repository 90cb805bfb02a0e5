"""Selections by hand, and against the formulas of their papers; none depends on the order of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vlrl.algorithm.selections.chosen import selected
from vlrl.algorithm.selections.covariance import clip_cov, covariances, kl_cov
from vlrl.algorithm.selections.top_entropy import top_entropy
from vlrl.check.algorithms.kinds import check_function
from vlrl.config import Config, parse_config
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN


def config(*overrides: str, **sections: Any) -> Config:
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "rewards": "answer_exact", **sections}
    return parse_config(tree, overrides=overrides)


def tokens(count: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    noise = torch.randn(3, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return -noise[0].abs(), 2 * noise[1], noise[2].abs()


def test_top_entropy_keeps_the_tokens_at_which_the_policy_hesitates() -> None:
    entropies = torch.tensor([0.1, 0.9, 0.2, 0.8, 0.3, 0.0, 0.4, 0.5, 0.6, 0.7], dtype=torch.float64)
    factors, penalties = top_entropy(entropies, entropies, entropies, share=0.2)
    assert factors.tolist() == [0, 1, 0, 1, 0, 0, 0, 0, 0, 0] and not penalties.any()
    assert top_entropy(entropies, entropies, entropies, share=1.0)[0].all()
    assert top_entropy(entropies[:1], entropies[:1], entropies[:1])[0].tolist() == [1]


@pytest.mark.parametrize("count", [1, 2, 5, 7, 50, 333])
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5, 0.9])
def test_the_threshold_is_the_quantile_of_trl(count: int, share: float) -> None:
    """Its mask is entropies >= quantile(entropies, 1 - share), over all processes."""
    _, _, entropies = tokens(count)
    expected = entropies.numpy() >= np.quantile(entropies.numpy(), 1 - share) - 1e-12
    assert top_entropy(entropies, entropies, entropies, share=share)[0].bool().tolist() == expected.tolist()


def test_covariances_by_hand() -> None:
    """Means -2 and 1."""
    found = covariances(
        torch.tensor([-1.0, -2.0, -3.0], dtype=torch.float64), torch.tensor([4.0, -2.0, 1.0]).double()
    )
    assert found.tolist() == pytest.approx([3.0, 0.0, 0.0])


def test_clip_cov_takes_the_loss_from_some_tokens_between_its_bounds() -> None:
    logprobs, advantages, entropies = tokens(2000)
    found = covariances(logprobs, advantages)
    factors, penalties = clip_cov(logprobs, advantages, entropies, seed=3, share=0.005)
    left_out = factors == 0
    assert int(left_out.sum()) == 10 and not penalties.any()
    assert ((found[left_out] >= 1) & (found[left_out] <= 5)).all()
    other = clip_cov(logprobs, advantages, entropies, seed=4, share=0.005)[0]
    assert not torch.equal(other, factors)
    every = clip_cov(logprobs, advantages, entropies, seed=3, share=1.0)[0]
    assert torch.equal(every == 0, (found >= 1) & (found <= 5))
    assert clip_cov(logprobs, advantages, entropies, seed=3, low=1e6, high=2e6)[0].all()


def test_kl_cov_holds_the_tokens_of_the_largest_covariance() -> None:
    logprobs, advantages, entropies = tokens(2000)
    found = covariances(logprobs, advantages)
    factors, penalties = kl_cov(logprobs, advantages, entropies, share=0.002, coef=0.5)
    assert factors.all() and sorted(penalties.unique().tolist()) == [0.0, 0.5]
    assert set(penalties.nonzero().flatten().tolist()) == set(found.topk(4).indices.tolist())


def test_several_selections_multiply_and_add() -> None:
    algorithm = AlgorithmConfig.model_validate(
        {
            "selections": [
                {"name": "top_entropy", "options": {"share": 0.5}},
                {"name": "clip_cov", "options": {"share": 0.1}},
                {"name": "kl_cov", "options": {"share": 0.1, "coef": 2}},
            ]
        }
    )
    given = tokens(300)
    factors, penalties = selected(*given, algorithm, seed=7)
    expected = top_entropy(*given, share=0.5)[0] * clip_cov(*given, seed=7, share=0.1)[0]
    assert torch.equal(factors, expected) and torch.equal(penalties, kl_cov(*given, share=0.1, coef=2)[1])


def test_a_function_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def mine(logprobs, advantages, entropies, *, floor):\n"
        "    return (logprobs > floor).double(), 0 * logprobs\n"
        "def bad(logprobs, advantages, entropies):\n    return logprobs > 1, logprobs > 1\n"
        "def negative(logprobs, advantages, entropies):\n    return logprobs, -logprobs\n"
    )
    logprobs, advantages, entropies = tokens(50)
    name = f"{tmp_path}/mine.py:mine"
    algorithm = AlgorithmConfig.model_validate({"selections": [{"name": name, "options": {"floor": -1}}]})
    assert torch.equal(selected(logprobs, advantages, entropies, algorithm, 0)[0], (logprobs > -1).double())
    for broken, words in (("bad", "must return factors as .50. floats"), ("negative", "not negative")):
        algorithm = AlgorithmConfig.model_validate({"selections": f"{tmp_path}/mine.py:{broken}"})
        with pytest.raises(ConfigError, match=words):
            selected(logprobs, advantages, entropies, algorithm, 0)
    assert check_function(name, {"floor": -1}, "selections")["ok"]


@pytest.mark.parametrize("name", BUILT_IN["selections"])
def test_what_is_built_in_keeps_the_contract(name: str) -> None:
    result = check_function(name, {})
    assert result["ok"], result["checks"]


BROKEN = {
    "two numbers": "return entropies > 1",
    "any order": "return (torch.arange(len(entropies)) % 2).double(), 0 * entropies",
    "same again": "return torch.rand(len(entropies)).double(), 0 * entropies",
    "ties": "kept = torch.zeros_like(entropies)\n    kept[entropies.argmax()] = 1\n    return kept, 0 * kept",
}
"""Clause → a selection that breaks it."""


@pytest.mark.parametrize("clause", BROKEN)
def test_a_selection_that_breaks_a_clause_is_told_which(clause: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        f"import torch\n\ndef mine(logprobs, advantages, entropies):\n    {BROKEN[clause]}\n"
    )
    result = check_function(f"{tmp_path}/mine.py:mine", {}, "selections")
    assert clause in [check["name"] for check in result["checks"] if check["status"] == "fail"]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["algorithm.selections=[top_entrop]"], "no selection is named 'top_entrop'; did you mean"),
        (["algorithm.selections=[top_entropy, top_entropy]"], "top_entropy is listed twice"),
        (["algorithm.selections=[{name: clip_cov, options: {shar: 1}}]"], "takes no option 'shar'"),
        (["algorithm.selections=kl_cov"], "kl_cov with algorithm.num_minibatches=1"),
    ],
)
def test_what_makes_no_sense_is_refused(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_a_name_alone_stands_for_a_list() -> None:
    found = config("algorithm.selections=kl_cov", "algorithm.num_minibatches=2").algorithm
    assert [chosen.name for chosen in found.selections] == ["kl_cov"] and found.surveys
