"""The contract of a selection: numbers for each token that do not depend on where tokens are packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from vlrl.algorithm.selections.chosen import selection_problem
from vlrl.check.algorithms.check import Clause, config_of, judged
from vlrl.config.algorithm import bound_selections

NUM_TOKENS, NUM_SEEDS = 400, 4
SelectionFn = Callable[..., Any]


def check_selection(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Try a selection; `ok` says whether it keeps the contract.

    Args:
        name: a registered one, or ./file.py:function.
        options: its own.

    Raises:
        ConfigError: for a name that is not there, a file that fails, or an option that is not read.
    """
    config = config_of({"selections": [{"name": name, "options": dict(options)}]}, "selections")
    (bound,) = bound_selections(config)
    return judged(name, options, CLAUSES, bound.__call__)


def two_numbers(selection: SelectionFn) -> str:
    """What it returns has its form, for many tokens and for one, and its arguments are left as they were."""
    for tokens in (_tokens(0), [column[:1] for column in _tokens(0)]):
        before = [column.clone() for column in tokens]
        if problem := selection_problem(selection(*tokens, seed=0), len(tokens[0])):
            return problem
        if not all(map(torch.equal, before, tokens)):
            return "changes its arguments in place; other selections are given them too"
    return ""


def any_order(selection: SelectionFn) -> str:
    """A token gets the same numbers wherever it stands."""
    for seed in range(NUM_SEEDS):
        tokens = _tokens(seed)
        order = torch.randperm(NUM_TOKENS, generator=torch.Generator().manual_seed(seed))
        shuffled = selection(*(column[order] for column in tokens), seed=seed)
        for before, after in zip(selection(*tokens, seed=seed), shuffled, strict=True):
            if not torch.allclose(before[order], after):
                return "what a token gets depends on the order of the tokens, so on packing and ranks"
    return ""


def same_again(selection: SelectionFn) -> str:
    """Two calls with one seed agree: each rank calls it, and a resumed run repeats it."""
    for seed in range(NUM_SEEDS):
        twice = [selection(*_tokens(seed), seed=seed) for _ in range(2)]
        if not all(map(torch.equal, *twice)):
            return "two calls with the same seed differ; ranks would train different tokens"
    return ""


def ties(selection: SelectionFn) -> str:
    """Tokens that are alike get the same numbers, in one place or another."""
    for seed in range(NUM_SEEDS):
        found = selection(*(torch.cat([column, column]) for column in _tokens(seed)), seed=seed)
        for values in found:
            if not torch.allclose(values[:NUM_TOKENS], values[NUM_TOKENS:]):
                return "two tokens that are alike get different numbers, so packing decides which is chosen"
    return ""


CLAUSES: Mapping[str, Clause] = {
    "two numbers": two_numbers,
    "any order": any_order,
    "same again": same_again,
    "ties": ties,
}


def _tokens(seed: int) -> list[Tensor]:
    """Log-probabilities, advantages and entropies of an update's tokens."""
    noise = torch.randn(3, NUM_TOKENS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return [-noise[0].abs(), noise[1].mul(2), noise[2].abs()]
