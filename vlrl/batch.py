"""What a trainer rank takes in: prefix trees laid out in rows, with everything the loss needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from vlrl.types import FloatArray, IntArray


@dataclass(slots=True)
class MicroBatch:
    """Rows of prefix trees for one forward pass. R rows of at most L tokens; M trained tokens.

    A row is one group: the shared prompt once, then every completion as a branch that sees the
    prompt and itself. Mask rule: q sees k if k is not after q and branch[k] is 0 or branch[q].

    Attributes:
        input_ids: [R, L] int64.
        position_ids: [3, R, L] int64, mRoPE; each branch goes on from the prompt.
        branch_ids: [R, L] int32: 0 prompt, 1..n branches, -1 padding.
        media_inputs: the vision tower's arrays by the names transformers gives them, each picture of a row
            once, in the order of their placeholders; of a blank picture if there is none.
        num_media: pictures and videos in them; 0 for the blank one.
        source_index: [M] int64, flat index r·L+l of the token whose logits predict the target.
        target_ids: [M] int64, trained tokens.
        sampler_logprobs: [M] float32, nats.
        advantages: [M] float32.
        weights: [M] float32, share of each token in the loss of the whole batch (they sum to 1 over
            all ranks' micro-batches of one optimizer step, see `vlrl.pack`).
        token_sample_ids: ids of the samples, for error messages; token_rows gives the row of each.
        token_rows: [M] int64, which sample (index into token_sample_ids) a trained token belongs to.

    Example: prompt P0 P1, completions A0 A1 and B0:
        input_ids   P0 P1 A0 A1 B0
        branch_ids   0  0  1  1  2
        positions    0  1  2  3  2
        source       1  2  1   (P1 predicts A0, A0 predicts A1, P1 predicts B0)
        target      A0 A1 B0
    """

    input_ids: IntArray
    position_ids: IntArray
    branch_ids: npt.NDArray[np.int32]
    media_inputs: Mapping[str, npt.NDArray[Any]]
    num_media: int
    source_index: IntArray
    target_ids: IntArray
    sampler_logprobs: FloatArray
    advantages: FloatArray
    weights: FloatArray
    token_rows: IntArray
    token_sample_ids: tuple[str, ...]


Batch: TypeAlias = list[list[MicroBatch]]
"""One optimizer step: for each rank its micro-batches; every rank has the same number of them."""
