"""LLaVA-OneVision: ChatML, images cut into tiles on the best of some grids, a newline token a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape


class LlavaOnevisionProcessor(FamilyProcessor):
    """Every image is cut into tiles, also where a conversation has several.

    vLLM does so too. transformers' own processor gives each of several images one tile alone, so an image
    that comes later would change the tokens of an earlier one.
    """

    end_of_turn = "<|im_end|>"
    end_tokens: tuple[str, ...] = ("<|endoftext|>",)
    media_tokens: tuple[str, ...] = ("<image>", "<video>")

    @property
    def tile(self) -> Mapping[str, int]:
        """Height and width of a tile in pixels."""
        size: Mapping[str, int] = self._hf.image_processor.size
        return size

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Tiles, the whole image included."""
        from transformers.image_processing_utils import select_best_resolution

        tile = self.tile
        height, width = select_best_resolution(shape.size, self._hf.image_processor.image_grid_pinpoints)
        return height // tile["height"] * (width // tile["width"]) + 1, 1, 1

    def expand(self, shape: MediaShape) -> str:
        """Pads for the whole image, for the tiles without their margins, and for each row's end."""
        tile = self.tile
        inputs = {
            "batch_num_images": [1],
            "image_sizes": [shape.size],
            "pixel_values": np.zeros((1, 1, tile["height"], tile["width"]), np.float32),
        }
        return str(self._hf.replace_image_token(inputs, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [num_media, most_tiles, 3, side, side] float32; image_sizes [num_media, 2] int64."""
        out = self._hf.image_processor(
            images=[[np.array(m.frames[0])] for m in media or [self._blank()]],  # torch wants writable memory
            return_tensors="pt",
            input_data_format="channels_last",
        )
        return {name: out[name].numpy() for name in ("pixel_values", "image_sizes")}
