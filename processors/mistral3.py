"""Mistral Small 3.1 and 3.2: images keep their shape, in merged patches whose rows end with a token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape

if TYPE_CHECKING:
    from vlrl.config import Config


class Mistral3Processor(FamilyProcessor):
    """Sides are multiples of a merged patch: the next larger ones, or the next smaller for lack of room."""

    end_of_turn = "</s>"
    media_tokens = ("[IMG]", "[IMG_BREAK]", "[IMG_END]")

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._token_side = int(self._hf.patch_size * self._hf.spatial_merge_size)
        self._longest = int(self._hf.image_processor.size["longest_edge"])

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """The next larger sides that max_pixels and the processor's longest side allow, or smaller ones."""
        side = self._token_side
        larger = -(-height // side) * side, -(-width // side) * side
        if larger[0] * larger[1] <= max_pixels and max(larger) <= self._longest:
            return larger
        scale = min(1.0, (max_pixels / (height * width)) ** 0.5, self._longest / max(height, width))
        high, wide = (max(side, int(x * scale) // side * side) for x in (height, width))
        # A side that came to be one patch is longer than its share of max_pixels.
        high, wide = (
            min(high, max_pixels // wide // side * side),
            min(wide, max_pixels // high // side * side),
        )
        if not (high and wide):
            raise ValueError(f"an image of {height}×{width} pixels does not fit into {max_pixels} pixels")
        return high, wide

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Patches, before they are merged."""
        height, width = shape.size
        return 1, height // self._hf.patch_size, width // self._hf.patch_size

    def expand(self, shape: MediaShape) -> str:
        """A pad for every merged patch, and what ends each row and the image."""
        return str(self._hf.replace_image_token({"image_sizes": [shape.size]}, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [num_media, 3, highest, widest] float32; image_sizes [num_media, 2] int64."""
        out = self._hf.image_processor(
            images=[np.array(m.frames[0]) for m in media or [self._blank()]],  # torch wants writable memory
            patch_size=self._token_side,
            return_tensors="pt",
            input_data_format="channels_last",
        )
        sizes = np.asarray(out["image_sizes"], np.int64).reshape(-1, 2)
        return {"pixel_values": out["pixel_values"].numpy(), "image_sizes": sizes}
