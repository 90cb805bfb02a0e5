"""Rows of pairs and of labels: which completions they give to train, and whether these are good ones."""

from __future__ import annotations

from dataclasses import dataclass

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
        token_ids: [num_tokens] int64, with the token that ends the turn.
        is_good: chosen, or labelled as good.
    """

    text: str
    token_ids: IntArray
    is_good: bool

    @property
    def sign(self) -> float:
        """Its advantage: 1 if it is good, else -1."""
        return 1.0 if self.is_good else -1.0


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
    found = [
        LabelledCompletion(text, processor.encode_target(text, sample.prompt.opened), is_good)
        for text, is_good in given
        if text
    ]
    if len(found) == 2 and np.array_equal(found[0].token_ids, found[1].token_ids):
        raise DataError(
            f"{what}: 'chosen' and 'rejected' are the same, so neither is preferred; remove the row, or "
            "leave such rows out with data.on_broken=drop"
        )
    return found
