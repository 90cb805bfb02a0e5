"""Add handwritten digits: a small visual-reasoning task on real scans.

digit_scans.npz holds the test set of "Optical Recognition of Handwritten Digits" (Alpaydin and Kaynak, 1998,
UCI Machine Learning Repository, doi 10.24432/C50P49, CC BY 4.0), as scikit-learn's load_digits returns it:
`images` [1797, 8, 8] uint8, 0 to 16, and `labels` [1797] uint8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image

from vlrl.errors import ConfigError
from vlrl.seeds import derive_seed
from vlrl.types import ByteArray, IntArray, Row

SCANS = Path(__file__).with_name("digit_scans.npz")
"""The file."""
NUM_SCANS, NUM_HELDOUT = 1797, 360
"""Scans that there are, and those never seen in training."""

SPLIT_SEED = 0
"""Fixes which scans are held out, whatever the run's seed."""

INSTRUCTION = "Read the digits and add them: <think>a+b</think><answer>sum</answer>"


class DigitSum:
    """Rows of several digit scans, one image each; the answer is the sum of what they show.

    The think part names what was read, so a right answer needs every digit and the addition.
    """

    def __init__(
        self,
        split: Literal["train", "heldout"] = "train",
        num_rows: int = 4096,
        num_digits: int | Sequence[int] = 2,
        image_size: int = 56,
        max_shift: int = 0,
        seed: int = 0,
    ) -> None:
        """Choose the rows.

        Args:
            split: scans to draw from; the two never share one.
            num_rows: rows, each of freshly drawn digits.
            num_digits: digits to add, one image each; of a list each row has the next one, in turn.
            image_size: side of an image in pixels.
            max_shift: each scan is moved by up to this many pixels along both axes, so that few scans teach
                more; 0 leaves them centred.
            seed: of the draws.
        """
        if split not in ("train", "heldout"):
            raise ConfigError(f"digit_sum: split={split!r} is not one of train, heldout")
        self._scans, self._labels = scans_of(split)
        self._num_digits = [num_digits] if isinstance(num_digits, int) else list(num_digits)
        if not self._num_digits or min(self._num_digits) < 1:
            raise ConfigError(f"digit_sum: num_digits={num_digits!r} must be one or several of at least 1")
        self._split, self._num_rows = split, num_rows
        self._image_size, self._max_shift, self._seed = image_size, max_shift, seed

    def __len__(self) -> int:
        """Number of rows."""
        return self._num_rows

    def __getitem__(self, index: int) -> Row:
        """Row `index`, the same for the same seed on every machine."""
        rng = np.random.default_rng(derive_seed("digit_sum", self._seed, self._split, index))
        number = self._num_digits[index % len(self._num_digits)]
        chosen = rng.integers(0, len(self._labels), number)
        digits = [int(self._labels[i]) for i in chosen]
        shifts = rng.integers(-self._max_shift, self._max_shift + 1, (number, 2))
        images: list[dict[str, Any]] = [
            {"type": "image", "image": enlarged_scan(self._scans[i], self._image_size, *shift)}
            for i, shift in zip(chosen, shifts.tolist(), strict=True)
        ]
        reading = "+".join(str(d) for d in digits)
        return {
            "id": f"digit_sum/{self._split}/{index}",
            "messages": [{"role": "user", "content": [*images, {"type": "text", "text": INSTRUCTION}]}],
            "answer": str(sum(digits)),
            "target": f"<think>{reading}</think><answer>{sum(digits)}</answer>",
            "metadata": {"digits": digits, "num_digits": number},
        }

    def corpus(self, num_rows: int = 200) -> list[str]:
        """Texts of the first rows, for training a tiny model's tokenizer."""
        rows = [self[i] for i in range(min(num_rows, len(self)))]
        return [
            f"system\nYou are a helpful assistant.\nuser\n{INSTRUCTION}\nassistant\n{row['target']}"
            for row in rows
        ]


def scan_numbers(split: Literal["train", "heldout"]) -> IntArray:
    """[n] which of the scans a split has."""
    order: IntArray = np.random.default_rng(SPLIT_SEED).permutation(NUM_SCANS).astype(np.int64)
    return order[:-NUM_HELDOUT] if split == "train" else order[-NUM_HELDOUT:]


@cache
def scans_of(split: Literal["train", "heldout"]) -> tuple[ByteArray, IntArray]:
    """The scans of a split as [n, 8, 8] uint8 and their labels [n]; the two splits share none."""
    chosen = scan_numbers(split)
    with np.load(SCANS) as digits:
        images = (digits["images"][chosen] * (255.0 / 16.0)).round().astype(np.uint8)
        return images, digits["labels"][chosen].astype(np.int64)


def enlarged_scan(scan: ByteArray, size: int, right: int, down: int) -> ByteArray:
    """A scan enlarged to [size, size, 3] and moved by pixels; what moves out of sight is cut off."""
    enlarged = Image.fromarray(scan).resize((size, size), Image.Resampling.BICUBIC)
    grey = Image.new("L", (size, size))
    grey.paste(enlarged, (right, down))
    return np.repeat(np.asarray(grey)[:, :, None], 3, axis=2)
