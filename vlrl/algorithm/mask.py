"""Law 2: the loss mask comes from turn spans, never from token values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vlrl.types import Turn


def loss_mask(turns: Sequence[Turn], num_tokens: int) -> npt.NDArray[np.bool_]:
    """True where the policy generated the token.

    Args:
        turns: spans in order, without gap or overlap, ending at num_tokens.
        num_tokens: length of the ledger.

    Returns:
        [num_tokens] bool.

    Raises:
        ValueError: if the spans do not tile [0, num_tokens).
    """
    mask = np.zeros(num_tokens, dtype=np.bool_)
    end = 0
    for turn in turns:
        if turn.context[0] != end or turn.action[0] != turn.context[1] or turn.action[1] < turn.action[0]:
            raise ValueError(f"turn {turn} does not follow on from token {end}")
        mask[slice(*turn.action)] = True
        end = turn.action[1]
    if end != num_tokens:
        raise ValueError(f"turns end at token {end}, the ledger at {num_tokens}")
    return mask
