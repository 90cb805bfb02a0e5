"""Rows of pairs and of labels: which completions they give to train, and whether these are good ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.errors import DataError
from vlrl.protocols import Processor
from vlrl.types import IntArray, Sample


@dataclass(frozen=True, slots=True)
class LabelledCompletion:
    """A completion of a row.

    Attributes:
        text: what the assistant says.
        token_ids: [num_tokens] int64, see `encoded_completion`.
        is_good: chosen, or labelled as good.
        margin: of its pair, at least 0.
    """

    text: str
    token_ids: IntArray
    is_good: bool
    margin: float = 0.0

    @property
    def advantage(self) -> float:
        """1 + margin if it is good, else -(1 + margin); see `vlrl.algorithm.preferences.tokens`."""
        return 1.0 + self.margin if self.is_good else -1.0 - self.margin


def encoded_completion(
    text: str, processor: Processor, options: PreferencesConfig, opened: str = ""
) -> IntArray:
    """Tokens of a completion as a loss takes them: [num_tokens] int64, with the token that ends the turn.

    For a reward model they end as the chat template ends a conversation, which is what an engine is shown of
    one, and there is one more: a trained token stands for the score that is read where it would be predicted.
    """
    if not options.is_scored:
        return processor.encode_target(text, opened)
    whole = processor.encode_target(text, opened, closed=True)
    return np.append(whole, whole[-1])


def completions_of(
    sample: Sample, processor: Processor, options: PreferencesConfig
) -> list[LabelledCompletion]:
    """The completions that a loss is given of a row: a pair's chosen one first, or one with its label.

    A loss of single completions takes a pair as two of them.

    Raises:
        DataError: naming the sample, if it is not what the loss needs, or chosen and rejected are the same.
    """
    given = [(sample.target, True), (sample.rejected, False)]
    what = f"sample {sample.id!r}"
    if options.is_unpaired and sample.rejected is None:
        if not isinstance(sample.label, bool):
            raise DataError(
                f"{what} has neither a 'label' (true or false) nor a 'rejected' completion, one of which "
                f"preferences.loss={options.loss.name} needs"
            )
        given = [(sample.target, sample.label)]
    elif sample.rejected is None:
        raise DataError(
            f"{what} has no 'rejected' completion, and preferences.loss={options.loss.name} compares two; "
            "for completions with a 'label' set preferences.loss=kto"
        )
    if any(not text for text, _ in given):
        raise DataError(f"{what} has an empty completion; there is nothing of it to train")
    margin = margin_of(sample, options.margin)
    found = [
        LabelledCompletion(
            text, encoded_completion(text, processor, options, sample.prompt.opened), is_good, margin
        )
        for text, is_good in given
        if text
    ]
    if len(found) == 2 and np.array_equal(found[0].token_ids, found[1].token_ids):
        raise DataError(
            f"{what}: 'chosen' and 'rejected' are the same, so neither is preferred; remove the row, or "
            "leave such rows out with data.on_broken=drop"
        )
    return found


def margin_of(sample: Sample, column: str | None) -> float:
    """A pair's margin, 0 without a column.

    Raises:
        DataError: naming the sample, if the column does not hold a number of at least 0.
    """
    if column is None:
        return 0.0
    value: Any = sample.metadata.get(column)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value < float("inf"):
        raise DataError(
            f"sample {sample.id!r} has {value!r} in column {column!r} (preferences.margin), where a number "
            "of at least 0 must be; swap chosen and rejected where it is negative, or set "
            "preferences.margin=null"
        )
    return float(value)
