"""Advantages of all ranks' tokens by a critic's values: episodes may lie on several ranks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vlrl.algorithm.critic.episodes import Estimates, TokenTable, estimates_of
from vlrl.config.algorithm import AlgorithmConfig, bound_credit
from vlrl.model.logprobs import DeviceBatch
from vlrl.trainer.objective import Terms, ValueTargets
from vlrl.trainer.regularizers.gather import of_all_ranks


def token_rows(batch: DeviceBatch, values: Tensor, penalties: Tensor) -> Tensor:
    """What `give_advantages` takes of a micro-batch: [M, 6] float64, which has whole numbers below 2^53.

    Args:
        batch: whose `advantages` are rewards of whole turns.
        values: [M] of the critic.
        penalties: [M] added to each token's reward.
    """
    assert batch.steps is not None, "packed without numbers_steps"
    columns = torch.stack([values.double(), batch.advantages.double(), penalties], dim=1)
    return torch.cat([columns, batch.steps.double()], dim=1)


def give_advantages(terms: Sequence[Terms], rows: Sequence[Tensor], algorithm: AlgorithmConfig) -> None:
    """Give each micro-batch its advantages and what the critic learns of it; every rank must call it.

    Every rank has the tokens of all, so that neither packing nor slices of a sequence make a difference.

    Args:
        terms: of this rank's micro-batches.
        rows: their tokens, see `token_rows`.
        algorithm: the config's, with a critic.
    """
    assert algorithm.critic is not None
    whole, begin = of_all_ranks(torch.cat(list(rows)))
    columns = whole.numpy()
    table = TokenTable(columns[:, 0], columns[:, 1], columns[:, 2], columns[:, 3:].astype(np.int64))
    found = estimates_of(table, bound_credit(algorithm).__call__, algorithm.critic.level)
    num_steps = max(1, int(found.begins.sum()))
    for of_batch, mine in zip(terms, rows, strict=True):
        end = begin + len(mine)
        _give(of_batch, mine, found, slice(begin, end), num_steps)
        begin = end


def _give(terms: Terms, rows: Tensor, found: Estimates, part: slice, num_steps: int) -> None:
    def on_device(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Tensor:
        return torch.from_numpy(values[part].copy()).to(terms.advantages)

    terms.advantages, returns = on_device(found.advantages), on_device(found.returns)
    weights = on_device(found.begins / num_steps)
    terms.targets = ValueTargets(rows[:, 0].to(terms.advantages), returns, weights)
